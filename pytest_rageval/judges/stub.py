"""The judge that always says the same: for trying gates, reports and caches without a model."""

from __future__ import annotations

import math

from pytest_rageval.errors import SettingsError
from pytest_rageval.judges.judge import FREE, JudgeSpec
from pytest_rageval.judges.rubrics import rubric_names, rubric_of
from pytest_rageval.model import Judgement, JudgeRequest

STUB_SCORE = (
    "the score is a number of at least 0: up to 1 a share of each scale, as in stub:0.9, above it points, as in stub:4"
)


class StubJudge:
    """Gives every score as `score`: up to 1 a share of each scale, above it points, or the nearest end of a scale.

    It stands in for a model: gates and the cache treat it as one. It has no rubric that asks for yes or no, such as the
    classifier of abstention: a constant would turn every answer into an abstention or none.
    """

    heuristic = False
    takes_own_rubrics = True
    rubrics = frozenset(rubric_names()) - {"abstention", "claim_split", "claim_support", "conflict_acknowledged"}

    def __init__(self, score: float) -> None:
        """A score is a finite number of at least 0; anything else is a SettingsError."""
        if not math.isfinite(score) or score < 0:
            raise SettingsError(STUB_SCORE)
        self.score = float(score)
        self.model = f"stub/{self.score:g}"

    async def judge(self, request: JudgeRequest) -> Judgement:
        """The constant, on the rubric's scale."""
        rubric = rubric_of(request)
        low, high = rubric.scale
        return Judgement(
            rubric=rubric.name,
            scores=dict.fromkeys(rubric.scores, self._on(low, high)),
            scale=rubric.scale,
            reasoning="constant",
            model=self.model,
            prompt_version=request.prompt_version,
            **FREE,
        )

    def _on(self, low: float, high: float) -> float:
        return low + self.score * (high - low) if self.score <= 1 else min(max(self.score, low), high)

    async def aclose(self) -> None:
        """Nothing to give back."""


def stub_judge(spec: JudgeSpec) -> StubJudge:
    """The judge of `stub:SCORE`."""
    try:
        return StubJudge(float(spec.rest))
    except ValueError:
        raise SettingsError(STUB_SCORE) from None
