"""A judge that is counted, what it is asked, and a cache of somebody's own."""

from __future__ import annotations

import asyncio
from typing import Any

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.judge import BaseJudge, Judge
from pytest_rageval.model import Judgement, JudgeRequest


class Counting(BaseJudge):
    """A judge that counts how often it is asked, and says what it is given to say."""

    model, heuristic, rubrics = "counting/1", False, frozenset({"groundedness"})
    sampling: Any

    def __init__(self, *says: Judgement | JudgeError | object) -> None:
        self.says, self.asked = list(says), 0

    async def judge(self, request: JudgeRequest) -> Judgement:
        self.asked += 1
        await asyncio.sleep(0)
        said = self.says.pop(0) if self.says else a_judgement(float(self.asked))
        if isinstance(said, Exception):
            raise said
        return said  # type: ignore[return-value]

    async def aclose(self) -> None: ...


def a_judgement(score: float = 4.0, **fields) -> Judgement:
    return Judgement(**{"rubric": "groundedness", "scores": {"groundedness": score}, "scale": (0.0, 5.0), **fields})


def a_request(question: str = "why?", **variables) -> JudgeRequest:
    contexts = [{"chunk_id": "c1", "text": "text"}]
    return JudgeRequest(
        "groundedness", "1+abc", {"question": question, "answer": "so", "contexts": contexts, **variables}
    )


def ask(judge: Judge, *requests: JudgeRequest) -> list[Judgement]:
    async def all_at_once() -> list[Judgement]:
        return await asyncio.gather(*(judge.judge(request) for request in requests))

    return asyncio.run(all_at_once())


class Remembering(dict):
    """A cache of somebody's own: it gets and puts, and knows nothing of parts."""

    def put(self, key: str, judgement: Judgement) -> None:
        self[key] = judgement
