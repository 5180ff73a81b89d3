"""Abstention by phrasing: the judgement on whether an answer declines, where no language model decides."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_rageval.abstention.detector import declines
from pytest_rageval.model import Judgement, JudgeRequest

PHRASING = "phrasing"
"""What a judgement made here says in `extra`, as `decided_by`."""


def phrasing_judgement(request: JudgeRequest, *, model: str, heuristic: bool, phrases: Sequence[str] = ()) -> Judgement:
    """The answer of a request for the rubric `abstention`: 1 where it declines, 0 where it does not.

    `model` and `heuristic` are those of the judge in whose name it is made; `phrases` the project's own refusals.
    """
    declined = declines(request.variables["answer"], request.variables.get("question") or "", phrases)
    where = f"declines, most of all in {declined.phrase!r}" if declined.phrase else "does not decline"
    return Judgement(
        rubric=request.rubric,
        scores={"abstained": float(declined.abstained)},
        reasoning=f"heuristic: the answer {where}",
        model=model,
        prompt_version=request.prompt_version,
        tokens_in=0,
        tokens_out=0,
        cost_usd=0.0,
        heuristic=heuristic,
        extra={"confidence": declined.confidence, "decided_by": PHRASING},
    )
