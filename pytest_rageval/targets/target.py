"""The one protocol of every target: an async question, an answer; and what a target may say of itself beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.importing import described_exception, import_object
from pytest_rageval.model import Answer, AskRequest

if TYPE_CHECKING:
    from pytest_rageval.config.tables import TargetMapping


@runtime_checkable
class Target(Protocol):
    """A system under test.

    `name` stands in config.json and in messages: no credentials in it. `ask` raises `TargetError` with a kind for
    anything that goes wrong. `aclose` gives back connections and files; whoever made the target calls it, once.

    Two attributes may be missing: `is_called`, False where the answers are there already, and `answers_at_once`, True
    where `ask` never waits, not even for a loop to run.
    """

    name: str

    async def ask(self, request: AskRequest) -> Answer: ...

    async def aclose(self) -> None: ...


def is_called(target: Target) -> bool:
    """Whether there is a system behind it that is asked; else there is nothing to time, and no k to ask for."""
    return getattr(target, "is_called", True)


def asks_at_once(target: Target) -> bool:
    """Whether it never waits, so that it may be asked where no loop runs."""
    return getattr(target, "answers_at_once", False)


@dataclass(frozen=True, slots=True)
class Connection:
    """The same for every target that is asked over HTTP.

    timeout      seconds for one attempt; a question with its retries takes at most `timeout` × (`retries` + 1)
    retries      further attempts where that is safe
    concurrency  requests under way at the same time
    max_bytes    the largest reply that is read
    headers      sent with every question, already resolved; an `authorization` among them replaces the key
    app          an ASGI application of this process to ask in place of the network
    backoff      seconds before the first retry
    environment  where the key or token for the target is looked up; None: in that of this process
    """

    timeout: float = 120.0
    retries: int = 2
    concurrency: int = 16
    max_bytes: int = 16 * 2**20
    headers: Mapping[str, str] = field(default_factory=dict)
    app: Any = None
    backoff: float = 0.5
    environment: Mapping[str, str] | None = field(default=None, repr=False)

    @property
    def of_client(self) -> dict[str, Any]:
        """The arguments of `SlottedClient` but for its headers, which each kind of target has its own way with."""
        return {
            "slots": self.concurrency,
            "timeout": self.timeout,
            "retries": self.retries,
            "max_bytes": self.max_bytes,
            "app": self.app,
            "backoff": self.backoff,
        }


USUAL = Connection()


class Surroundings(NamedTuple):
    """What a target is made with beside its spec, as `from_spec` of each module takes it.

    root        the project: on `sys.path` for Python targets, and where relative files are looked for
    reports     the folder whose `runs/` holds earlier runs
    connection  how a target behind HTTP is reached; its time limit holds for Python targets too
    mapping     for a URL: what is sent and where the answer stands; None for the native contract
    """

    root: Path
    reports: Path
    connection: Connection = USUAL
    mapping: TargetMapping | None = None


OBJECT = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
"""`package.module:name`."""


def imported_target(place: str, root: Path) -> Any:
    """Import the object at `package.module:name`; SettingsError in one line if there is none."""
    module, _, attributes = place.partition(":")
    try:
        return import_object(f"target {place}", module, attributes, root)
    except ModuleNotFoundError as error:
        raise SettingsError(f"target {place}: {module} cannot be imported: {described_exception(error)}") from None
