"""The same questions with deepeval: `python with_deepeval.py URL CASES IN_FLIGHT`.

deepeval scores answers that are there; they are asked before, as many at once.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import httpx
from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase
from loopback_calls import ask_all, client_of, judge, question, recall_any

Chunks = list[dict[str, Any]]


class RecallAny(BaseMetric):
    threshold = 1.0

    def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        self.score = recall_any(test_case.metadata["chunks"])
        self.success = self.score >= self.threshold
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "recall_any"


class Groundedness(BaseMetric):
    threshold = 3.0

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        raise NotImplementedError

    async def a_measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        chunks = test_case.metadata["chunks"]
        self.score = await judge(self.client, test_case.input, test_case.actual_output, chunks)
        self.success = self.score >= self.threshold
        return self.score

    def is_successful(self) -> bool:
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "groundedness"


def main(url: str, cases: int, in_flight: int) -> None:
    answers = asyncio.run(ask_all(url, cases, in_flight))
    test_cases = [
        LLMTestCase(
            input=question(number),
            actual_output=answer["answer"],
            metadata={"chunks": answer["debug"]["retrieved_chunks"]},
        )
        for number, answer in enumerate(answers)
    ]
    result = evaluate(
        test_cases,
        [RecallAny(), Groundedness(client_of(url, in_flight))],
        async_config=AsyncConfig(run_async=True, throttle_value=0, max_concurrent=in_flight),
        display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
        cache_config=CacheConfig(write_cache=False, use_cache=False),
    )
    assert sum(bool(each.success) for each in result.test_results) == cases


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
