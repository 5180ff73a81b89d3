"""The protocol of every target: an async question and its answer, with optional attributes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from pytest_rageval.errors import SettingsError
from pytest_rageval.http.call_limit import SYSTEM, USUAL_LIMITS, Limits, shared_limit
from pytest_rageval.io.importing import described_exception, import_object
from pytest_rageval.model import Answer, AskRequest, EvalCase, Json

if TYPE_CHECKING:
    from pytest_rageval.config.settings import Settings
    from pytest_rageval.config.tables import TargetMapping


@runtime_checkable
class Target(Protocol):
    """A system under test.

    `name` appears in config.json and in messages, so it contains no credentials. `ask` raises `TargetError` with a kind
    for every failure. `aclose` releases connections and files; the owner of the target calls it once. The other members
    of `BaseTarget` are optional.
    """

    name: str

    async def ask(self, request: AskRequest) -> Answer: ...

    async def aclose(self) -> None: ...


class BaseTarget(Target):
    """A target with all optional members, at their defaults: what the rest of this package reads.

    A target of the project's own that lacks some gets them from `OwnTarget`, when it comes in.
    """

    is_called: bool = True
    """It calls a system; False if the answers exist already: then timings and k do not apply."""
    answers_at_once: bool = False
    """`ask` never waits, so that it needs no event loop."""
    keeps_conversations: bool = False
    """It is told the id of a conversation, so that the system itself may remember the turns before."""
    takes_turns: bool = False
    """Each of its requests waits for its turn at the system's limit by itself."""
    without_history: str = ""
    """Why what was said before in a conversation does not reach the system, with the remedy; empty if it does."""
    url: str | None = None
    """The address of its server, if it has one."""
    notes: Sequence[str] = ()
    """Notes for the end of the run."""

    def params_problem(self, names: Sequence[str]) -> str:  # noqa: ARG002 because by default all may
        """Return why some of these parameters of a request cannot reach the system; empty if all may."""
        return ""

    def check_coverage(
        self,
        cases: Sequence[EvalCase],  # noqa: ARG002 because most systems are asked to know
        *,
        is_partial_allowed: bool = False,  # noqa: ARG002
    ) -> Sequence[str]:
        """Return why these cases have no answer, one line each, as far as that is known before they are asked."""
        return ()


def conversation_id_of(request: AskRequest) -> str:
    """Return the id of a turn's conversation; a single case is a conversation of its own."""
    return request.conversation_id or uuid.uuid4().hex


def messages_of_chat(request: AskRequest) -> list[dict[str, Json]]:
    """Return what was said and the question, as a chat service takes them."""
    said = [{"role": turn.role, "content": turn.text} for turn in request.history or ()]
    return [*said, {"role": "user", "content": request.question}]


def limits_of_system(settings: Settings) -> Limits:
    """Return the limits on questions to the system, in this process."""
    return Limits(
        settings.concurrency,
        settings.requests_per_minute,
        is_adaptive=settings.adaptive_concurrency,
        patience=settings.rate_limit_patience,
    )


@dataclass(frozen=True, slots=True)
class Connection:
    """Settings shared by every target over HTTP.

    timeout      seconds for one attempt; a question with its retries takes at most `timeout` × (`retries` + 1)
    retries      further attempts if retrying is safe
    limits       how many requests may be sent, at the same time and a minute
    max_bytes    the largest accepted reply
    headers      sent with every question, already resolved; an `authorization` among them replaces the key
    app          an ASGI application of this process to call in place of the network
    backoff      seconds before the first retry
    environment  source of the target's key or token; None for the environment of this process
    """

    timeout: float = 120.0
    retries: int = 2
    limits: Limits = USUAL_LIMITS
    max_bytes: int = 16 * 2**20
    headers: Mapping[str, str] = field(default_factory=dict)
    app: Any = None
    backoff: float = 0.5
    environment: Mapping[str, str] | None = field(default=None, repr=False)

    @property
    def of_client(self) -> dict[str, Any]:
        """Return the arguments of `SlottedClient` except headers, which differ by kind of target."""
        return {
            "limit_of": shared_limit(SYSTEM, self.limits),
            "timeout": self.timeout,
            "retries": self.retries,
            "max_bytes": self.max_bytes,
            "app": self.app,
            "backoff": self.backoff,
        }


USUAL = Connection()


class Surroundings(NamedTuple):
    """The arguments of each module's `from_spec` besides the spec.

    root        the project: on `sys.path` for Python targets, and the base of relative paths
    reports     the folder whose `runs/` holds earlier runs
    connection  settings of targets over HTTP; its time limit applies to Python targets too
    mapping     for a URL: the request's template and the answer's expressions; None for the native contract
    """

    root: Path
    reports: Path
    connection: Connection = USUAL
    mapping: TargetMapping | None = None


def imported_target(place: str, root: Path) -> Any:
    """Import the object at `package.module:name`; SettingsError in one line if there is none."""
    module, _, attributes = place.partition(":")
    try:
        return import_object(f"target {place}", module, attributes, root)
    except ModuleNotFoundError as error:
        raise SettingsError(f"target {place}: {module} cannot be imported: {described_exception(error)}") from None
