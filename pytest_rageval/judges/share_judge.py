"""The common part of judges that score by a share in [0, 1], and the judgement on abstention from the wording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.abstention.detector import declines
from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.judge import Judge
from pytest_rageval.judges.rubrics import rubric_of
from pytest_rageval.model import Judgement, JudgeRequest

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


class ShareJudge:
    """A judge whose `share` is mapped to the rubric's scale; from `supported` on, a claim counts as supported."""

    model: str
    heuristic = True
    rubrics: frozenset[str]
    supported = 1.0

    async def judge(self, request: JudgeRequest) -> Judgement:
        """Judge one request; raise JudgeError for a rubric not in `rubrics`, or if judging fails."""
        check_rubric(self, request)
        if request.rubric == "abstention":
            return phrasing_judgement(request, model=self.model, heuristic=True)
        rubric, share = rubric_of(request), await self.share(request)
        low, high = rubric.scale
        return Judgement(
            rubric=rubric.name,
            scores={} if share.value is None else {rubric.name: round(low + share.value * (high - low), 4)},
            scale=rubric.scale,
            reasoning=share.reasoning,
            supported_claims=tuple(claim for claim, value in share.rated if value >= self.supported),
            unsupported_claims=tuple(claim for claim, value in share.rated if value < self.supported),
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
        message = f"judge {judge.model!r} has no rubric {request.rubric!r}; it has {', '.join(sorted(judge.rubrics))}"
        raise JudgeError("invalid_request", message)


def phrasing_judgement(request: JudgeRequest, *, model: str, heuristic: bool, phrases: Sequence[str] = ()) -> Judgement:
    """Answer a request for the rubric `abstention` from the wording: 1 if the answer declines, else 0.

    `model` and `heuristic` are those of the judge on whose behalf it is made; `phrases` are the project's own refusals.
    """
    declined = declines(request.variables["answer"], request.variables.get("question") or "", phrases)
    where = f"declines, most of all in {declined.phrase!r}" if declined.phrase else "does not decline"
    return Judgement(
        rubric=request.rubric,
        scores={"abstained": float(declined.abstained)},
        reasoning=f"heuristic: the answer {where}",
        model=model,
        prompt_version=request.prompt_version,
        heuristic=heuristic,
        extra={"confidence": declined.confidence, "decided_by": PHRASING},
        **FREE,
    )
