"""The protocol of judges and of the cache in front of them, and the base of judges that score by a share in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from pytest_rageval.abstention.detector import declines
from pytest_rageval.errors import JudgeError
from pytest_rageval.io.masking import public_params
from pytest_rageval.judges.rubrics import rubric_names, rubric_of
from pytest_rageval.model import NOTHING, Json, Judgement, JudgeRequest
from pytest_rageval.text import printable

if TYPE_CHECKING:
    from pytest_rageval.llm.endpoint_options import EndpointOptions, Tariff


@runtime_checkable
class Judge(Protocol):
    """A judge, which scores what no formula can.

    `model` names the model, with its build if known. It is part of every cache key, unless the judge has an attribute
    `identity`, which also names the server. `rubrics` are the names of those it can answer. `heuristic` is True for a
    judge without a model. The attributes of `BaseJudge` are optional.
    """

    model: str
    heuristic: bool
    rubrics: frozenset[str]

    async def judge(self, request: JudgeRequest) -> Judgement: ...

    async def aclose(self) -> None: ...


JudgeTogether = Callable[[Sequence[JudgeRequest]], Awaitable[list[Judgement | JudgeError]]]
"""Judges one answer by several rubrics: requests to the judgement or the error of each."""


class BaseJudge(Judge):
    """A judge with all optional attributes, at their defaults: what the rest of this package reads.

    A judge of the project's own that lacks some gets them from `OwnJudge`, when it comes in.
    """

    is_local: bool = False
    """Judging is free, needs no network and always gives the same result. A heuristic's default is True."""
    answers_at_once: bool = False
    """It never waits, not even for a running event loop."""
    is_foreign: bool = False
    """It calls code from outside this package, so its calls are limited in time and refused ones repeated."""
    takes_turns: bool = False
    """Each of its requests waits for its turn by itself."""
    takes_own_rubrics: bool = False
    """It uses the prompt of a rubric, so it can answer those that a project adds."""
    compares_texts: bool = False
    """It gives the similarity of an answer and another text, as a share in [0, 1]."""
    abstention_by_phrasing: bool = False
    """It detects abstentions from the wording; the project's own phrases count as well."""
    judge_together: JudgeTogether | None = None
    """Judges one answer by several rubrics at once."""
    identity: str = ""
    """Names the judge in cache keys, with its server; empty if its model does."""
    sampling: Mapping[str, Json] = NOTHING
    """What else judgements depend on: part of cache keys."""
    is_pinned: bool | None = None
    """Whether its name always means the same model; None if that is unknown."""
    options: Any = None
    """The user's own parameters of its server."""
    tariff: Tariff | None = None
    """The price of its model, if it has one."""
    notes: Sequence[str] = ()
    """Notes for the end of the run."""

    async def check(self) -> str | None:
        """Return why this judge cannot be asked, in one line, or None; costs nothing."""
        return None


@runtime_checkable
class JudgementCache(Protocol):
    """A store of judgements by key; both methods are quick and safe to call from several processes."""

    def get(self, key: str) -> Judgement | None: ...

    def put(self, key: str, judgement: Judgement) -> None: ...


class JudgeSpec(NamedTuple):
    """A parsed judge spec `KIND:REST`, with the folder of its files and the options of its server."""

    kind: str
    rest: str
    root: Path | None = None
    options: EndpointOptions | None = None


def can_judge(judge: BaseJudge, rubric: str) -> bool:
    """Return True if the judge can answer a rubric, shipped or added by the project."""
    return rubric in judge.rubrics or (judge.takes_own_rubrics and rubric not in rubric_names())


class Cost(NamedTuple):
    """The cost and time of one request, or of a part of it; None: unknown."""

    tokens_in: float | None
    tokens_out: float | None
    cost_usd: float | None
    latency_ms: float | None


def sum_costs(parts: Iterable[Any]) -> dict[str, Any]:
    """Add up tokens, cost and time of judgements or replies; a sum with an unknown part is None."""
    sums: dict[str, Any] = {}
    parts = list(parts)
    for name in ("tokens_in", "tokens_out", "cost_usd", "latency_ms"):
        values = [getattr(part, name) for part in parts]
        # Not 0: a sum without an unknown part would look like the whole cost.
        if None in values:
            sums[name] = None
        elif all(type(value) is int for value in values):
            sums[name] = sum(values)
        else:
            # The sum of floats differs between versions of Python; fsum is the same on all.
            sums[name] = math.fsum(values)
    return sums


def asked_of(judgements: Iterable[Judgement]) -> dict[str, float]:
    """Return the `requests` that a model was sent for judgements, and the `tokens_cached` of them, without zeros."""
    counts = {"requests": 0.0, "tokens_cached": 0}
    for judgement in judgements:
        counts["requests"] += _requests_of(judgement)
        counts["tokens_cached"] += judgement.extra.get("tokens_cached") or 0
    return {name: round(count, 3) for name, count in counts.items() if count}


def _requests_of(judgement: Judgement) -> float:
    """Return the requests of one judgement: its share of a joint one, else one, or two with a repair."""
    if stated := judgement.extra.get("requests"):
        return float(stated)
    is_free = judgement.tokens_in == 0 and judgement.tokens_out == 0
    if is_free or judgement.error is not None:
        return 0
    return 2 if judgement.extra.get("repaired") else 1


def identity_of(judge: BaseJudge) -> str:
    """Return the judge's `identity`, which includes its server, or else its model."""
    return judge.identity or judge.model


def served_model(judgement: Judgement) -> str | None:
    """Return the model name that the server reported, or None."""
    served = judgement.extra.get("served_model")
    return served if isinstance(served, str) and served else None


def several_served(judge: str, served: Collection[str]) -> str | None:
    """Return a note if the server reported several model names, or None."""
    if len(served) < 2:
        return None
    names = " and ".join(printable(name[:80]) for name in sorted(served))
    return (
        f"judge {printable(judge)!r}: the server called its model {names} in judgements that were taken together, kept "
        "ones among them; --rageval-judge-cache refresh judges anew"
    )


def recorded_identity(judge: Mapping[str, Any] | None) -> str | None:
    """Return a judge's identity in config.json, its server included; None without a judge, or for a fixture's."""
    identity = (judge or {}).get("identity") or (judge or {}).get("model")
    return identity if isinstance(identity, str) else None


def described_judge(judge: BaseJudge, temperature: float) -> dict[str, Any]:
    """Describe the judge for config.json."""
    description: dict[str, Any] = {"model": judge.model, "heuristic": judge.heuristic}
    if identity_of(judge) != judge.model:
        description["identity"] = identity_of(judge)
    if not judge.heuristic:
        description |= {"temperature": temperature, "pinned": judge.is_pinned}
        if judge.options:
            description["options"] = public_params(judge.options)
    return description


# ── judges that score by a share ────────────────────────────────────────────────────────────────────────────────

FREE: Mapping[str, Any] = {"tokens_in": 0, "tokens_out": 0, "cost_usd": 0.0}
"""The cost of a judgement without a server."""
PHRASING = "phrasing"
"""The value of `extra["decided_by"]` for a judgement from the wording."""
UNSUPPORTED = "the system reported no passage that the answer could rest on"


class Share(NamedTuple):
    """A share of a rubric's scale, or None if it does not apply.

    rated   compared claims, each with its support
    fields  further fields of the judgement, such as its cost
    """

    value: float | None
    reasoning: str
    rated: Sequence[tuple[str, float]] = ()
    fields: Mapping[str, Any] = FREE


class ShareJudge(BaseJudge):
    """A judge whose `share` is mapped to the rubric's scale; from `supported` on, a claim counts as supported."""

    model: str
    heuristic = True
    is_local = True
    rubrics: frozenset[str]
    supported = 1.0

    async def judge(self, request: JudgeRequest) -> Judgement:
        """Judge one request; raise JudgeError for a rubric not in `rubrics`, or if judging fails."""
        check_rubric(self, request)
        if request.rubric == "abstention":
            return phrasing_judgement(request, model=self.model, heuristic=True)
        rubric = rubric_of(request)
        share = await self.share(request)
        scores: dict[str, float] = {}
        if share.value is not None:
            low, high = rubric.scale
            scores[rubric.name] = round(low + share.value * (high - low), 4)
        supported: list[str] = []
        unsupported: list[str] = []
        for claim, value in share.rated:
            (supported if value >= self.supported else unsupported).append(claim)
        return Judgement(
            rubric=rubric.name,
            scores=scores,
            scale=rubric.scale,
            reasoning=share.reasoning,
            supported_claims=tuple(supported),
            unsupported_claims=tuple(unsupported),
            model=self.model,
            prompt_version=request.prompt_version,
            heuristic=self.heuristic,
            **share.fields,
        )

    async def share(self, request: JudgeRequest) -> Share:
        """Return the share for a rubric other than abstention."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Release what the judge holds; most hold nothing."""


def check_rubric(judge: Judge, request: JudgeRequest) -> None:
    """Raise JudgeError if the judge lacks the rubric of a request."""
    if request.rubric not in judge.rubrics:
        known = ", ".join(sorted(judge.rubrics))
        raise JudgeError("invalid_request", f"judge {judge.model!r} has no rubric {request.rubric!r}; it has {known}")


def phrasing_judgement(
    request: JudgeRequest,
    *,
    model: str,
    heuristic: bool,
    phrases: Sequence[str] = (),
    passages: Sequence[str] = (),
    golds: Sequence[str] = (),
) -> Judgement:
    """Answer a request for the rubric `abstention` from the wording: 1 if the answer declines, 0 if it answers.

    In the zone of doubt there is no score, and `extra["undecided"]` is true.

    model, heuristic  those of the judge on whose behalf it is made
    phrases           the project's own refusals
    passages          the texts that were retrieved for the answer
    golds             gold answers of the question, if it has an answer
    """
    question = request.variables.get("question") or ""
    declined = declines(request.variables["answer"], question, phrases, passages, golds)
    extra: dict[str, Json] = {"confidence": declined.confidence, "decided_by": PHRASING}
    if declined.abstained is None:
        scores = {}
        extra["undecided"] = True
        verdict = "neither answers plainly nor declines plainly"
    else:
        scores = {"abstained": float(declined.abstained)}
        verdict = f"declines, most of all in {declined.phrase!r}" if declined.phrase else "does not decline"
    return Judgement(
        rubric=request.rubric,
        scores=scores,
        reasoning=f"heuristic: the answer {verdict}",
        model=model,
        prompt_version=request.prompt_version,
        heuristic=heuristic,
        extra=extra,
        **FREE,
    )
