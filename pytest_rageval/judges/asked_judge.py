"""A judge as a run asks it: within the time of a call, its verdicts checked, and kept where there is a cache."""

from __future__ import annotations

import asyncio
from typing import Any

from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import JudgeError
from pytest_rageval.io.masking import Mask
from pytest_rageval.judges.cache.cached_judge import CachedJudge
from pytest_rageval.judges.judge import Judge, JudgementCache
from pytest_rageval.model import Judgement, JudgeRequest


def asked_judge(judge: Judge, cache: JudgementCache | None, settings: Settings, mask: Mask) -> Judge:
    """The judge with its cache; one that is not of this package may take no longer than a call."""
    if not type(judge).__module__.startswith("pytest_rageval."):
        judge = TimeBoundJudge(judge, settings.longest_call, settings.longest_call_in_words)
    # In mode `off` as well: it checks what a judge says before anybody sees it.
    mode = settings.judge_cache if cache is not None else "off"
    return CachedJudge(judge, cache, mode, mask)


class TimeBoundJudge:
    """The judge itself, but for judgements that take longer than `seconds`: they are errors of kind timeout.

    `limit` is how messages name it.
    """

    answers_at_once = False

    def __init__(self, judge: Judge, seconds: float, limit: str) -> None:
        self._judge, self._seconds, self._limit = judge, seconds, limit
        self.model, self.heuristic, self.rubrics = judge.model, judge.heuristic, judge.rubrics

    async def judge(self, request: JudgeRequest) -> Judgement:
        try:
            async with asyncio.timeout(self._seconds) as limit:
                return await self._judge.judge(request)
        except TimeoutError:
            if not limit.expired():
                raise
            message = f"judge {self.model!r}, rubric {request.rubric!r}: no judgement within {self._limit}"
            raise JudgeError("timeout", message) from None

    async def aclose(self) -> None:
        await self._judge.aclose()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._judge, name)
