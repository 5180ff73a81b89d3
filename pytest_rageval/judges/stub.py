"""The judge that always says the same: for trying gates, reports and caches without a model."""

from __future__ import annotations

import math

from pytest_rageval.errors import SettingsError
from pytest_rageval.judges.rubrics import rubric_names, rubric_of
from pytest_rageval.model import Judgement, JudgeRequest


class StubJudge:
    """Gives every score as `score`, or as the nearest end of a scale that ends before.

    It stands in for a model: gates and the cache treat it as one. It has no rubric that asks for yes or no, such as the
    classifier of abstention: a constant would turn every answer into an abstention or none.
    """

    heuristic = False
    rubrics = frozenset(rubric_names()) - {"abstention", "claim_split", "claim_support", "conflict_acknowledged"}

    def __init__(self, score: float) -> None:
        """A score is a finite number of at least 0; anything else is a SettingsError."""
        if not math.isfinite(score) or score < 0:
            raise SettingsError(f"judge 'stub:{score:g}': the score is a number from 0 to 5, as in stub:4")
        self.score = float(score)
        self.model = f"stub/{self.score:g}"

    async def judge(self, request: JudgeRequest) -> Judgement:
        """The constant, on the rubric's scale."""
        rubric = rubric_of(request)
        low, high = rubric.scale
        return Judgement(
            rubric=rubric.name,
            scores=dict.fromkeys(rubric.scores, min(max(self.score, low), high)),
            scale=rubric.scale,
            reasoning="constant",
            model=self.model,
            prompt_version=request.prompt_version,
            tokens_in=0,
            tokens_out=0,
            cost_usd=0.0,
        )

    async def aclose(self) -> None:
        """Nothing to give back."""
