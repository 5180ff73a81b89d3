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
    where no model is behind it. A judge that tells abstentions by phrases, as a heuristic does, says so in an attribute
    `abstention_by_phrasing`: the phrases of the project then count as well. One that goes by the prompt that a rubric
    brings says so in an attribute `takes_own_rubrics`: it can answer those as well that a project adds. One that never
    waits, not even for a loop to run, says so in an attribute `answers_at_once`.
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


def can_judge(judge: Judge, rubric: str) -> bool:
    """Whether a judge can answer a rubric, which may be one that the project adds to the shipped ones."""
    if rubric in judge.rubrics:
        return True
    return getattr(judge, "takes_own_rubrics", False) and rubric not in rubric_names()


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
