"""The one protocol of every judge, and of the cache in front of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol, runtime_checkable

from pytest_rageval.io.masking import public_params
from pytest_rageval.judges.rubrics import rubric_names
from pytest_rageval.model import Judgement, JudgeRequest
from pytest_rageval.text import printable


@runtime_checkable
class Judge(Protocol):
    """Scores what no formula can.

    `model` names what judges, with its build where known. It is part of every cache key, unless the judge has an
    attribute `identity`, which then names the server as well. `rubrics` are those it can answer. `heuristic` is True
    where no model is behind it.

    These attributes may be missing, and are False then, `is_local` what `heuristic` is:
    is_local                judging costs nothing, needs no network and comes out the same every time
    answers_at_once         it never waits, not even for a loop to run
    abstention_by_phrasing  it tells abstentions by phrases, as a heuristic does: those of the project count as well
    takes_own_rubrics       it goes by the prompt that a rubric brings: it can answer those that a project adds
    """

    model: str
    heuristic: bool
    rubrics: frozenset[str]

    async def judge(self, request: JudgeRequest) -> Judgement: ...

    async def aclose(self) -> None: ...


@runtime_checkable
class JudgementCache(Protocol):
    """Keeps judgements by key; both are quick and safe to call from several processes."""

    def get(self, key: str) -> Judgement | None: ...

    def put(self, key: str, judgement: Judgement) -> None: ...


def is_local(judge: Judge) -> bool:
    """Whether judging costs nothing, needs no network and comes out the same every time."""
    return getattr(judge, "is_local", judge.heuristic)


def judges_at_once(judge: Judge) -> bool:
    """Whether it never waits, so that it may be asked where no loop runs."""
    return getattr(judge, "answers_at_once", False)


def tells_by_phrasing(judge: Judge) -> bool:
    """Whether it tells abstentions by phrases."""
    return getattr(judge, "abstention_by_phrasing", False)


def takes_own_rubrics(judge: Judge) -> bool:
    """Whether it goes by the prompt that a rubric brings."""
    return getattr(judge, "takes_own_rubrics", False)


def can_judge(judge: Judge, rubric: str) -> bool:
    """Whether a judge can answer a rubric, which may be one that the project adds to the shipped ones."""
    return rubric in judge.rubrics or (takes_own_rubrics(judge) and rubric not in rubric_names())


def identity_of(judge: Judge) -> str:
    """What a judge is, its server included: its `identity` where it has one, else its model."""
    identity: str = getattr(judge, "identity", judge.model)
    return identity


def served_model(judgement: Judgement) -> str | None:
    """What the server said that it is, where one was asked and said so."""
    served = judgement.extra.get("served_model")
    return served if isinstance(served, str) and served else None


def several_served(judge: str, served: Collection[str]) -> str | None:
    """The note that judgements come from models which the server called by different names; None where they do not."""
    if len(served) < 2:
        return None
    names = " and ".join(printable(name[:80]) for name in sorted(served))
    return (
        f"judge {printable(judge)!r}: the server called its model {names} in judgements that were taken together, kept "
        "ones among them; --rageval-judge-cache refresh judges anew"
    )


def described_judge(judge: Judge, temperature: float) -> dict[str, Any]:
    """The judge as config.json names it."""
    description: dict[str, Any] = {"model": judge.model, "heuristic": judge.heuristic}
    if identity_of(judge) != judge.model:
        description["identity"] = identity_of(judge)
    if not judge.heuristic:
        description |= {"temperature": temperature, "pinned": getattr(judge, "is_pinned", None)}
        if options := getattr(judge, "options", None):
            description["options"] = public_params(options)
    return description
