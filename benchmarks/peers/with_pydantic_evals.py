"""The same questions with pydantic-evals: `python with_pydantic_evals.py URL CASES IN_FLIGHT`."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
from loopback_calls import ask, client_of, judge, question, recall_any
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext


@dataclass
class RecallAny(Evaluator[str, dict[str, Any], None]):
    """Did the chunk that answers come at all?"""

    def evaluate(self, ctx: EvaluatorContext[str, dict[str, Any], None]) -> float:
        return recall_any(ctx.output["debug"]["retrieved_chunks"])


@dataclass
class Groundedness(Evaluator[str, dict[str, Any], None]):
    """What the judge behind HTTP says."""

    client: httpx.AsyncClient

    async def evaluate(self, ctx: EvaluatorContext[str, dict[str, Any], None]) -> float:
        return await judge(self.client, ctx.inputs, ctx.output["answer"], ctx.output["debug"]["retrieved_chunks"])


async def main(url: str, cases: int, in_flight: int) -> None:
    async with client_of(url, in_flight) as client:
        dataset = Dataset(
            name="loopback",
            cases=[Case(name=f"case-{number}", inputs=question(number)) for number in range(cases)],
            evaluators=[RecallAny(), Groundedness(client)],
        )
        report = await dataset.evaluate(partial(ask, client), max_concurrency=in_flight, progress=False)
    assert len(report.cases) == cases, f"{len(report.failures)} failures"
    with open("report.txt", "w", encoding="utf-8") as file:  # noqa: ASYNC230 because nothing else waits by now
        file.write(report.render(width=200))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
