"""A judge of the user's own within a limit of time: judges that ask servers keep limits of their own."""

from __future__ import annotations

import asyncio
from typing import Any

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.judge import Judge
from pytest_rageval.model import Judgement, JudgeRequest


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
