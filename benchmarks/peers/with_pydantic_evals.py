"""The same questions with pydantic-evals: `python with_pydantic_evals.py URL CASES IN_FLIGHT`.

Needs pydantic-evals and httpx in the environment that runs it.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import Any

import httpx
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext


@dataclass
class RecallAny(Evaluator[str, dict[str, Any], None]):
    """Did the chunk that answers come at all?"""

    def evaluate(self, ctx: EvaluatorContext[str, dict[str, Any], None]) -> float:
        chunks = ctx.output["debug"]["retrieved_chunks"]
        return float(any(chunk["heading_path"] == "# Pump > ## Priming" for chunk in chunks))


@dataclass
class Groundedness(Evaluator[str, dict[str, Any], None]):
    """What the judge behind HTTP says."""

    client: httpx.AsyncClient

    async def evaluate(self, ctx: EvaluatorContext[str, dict[str, Any], None]) -> float:
        chunks = ctx.output["debug"]["retrieved_chunks"]
        contexts = [{"chunk_id": chunk["chunk_id"], "text": chunk["text"]} for chunk in chunks]
        variables = {"question": ctx.inputs, "answer": ctx.output["answer"], "contexts": contexts}
        score: float = (await self.client.post("/judge", json=variables)).json()["score"]
        return score


async def main(url: str, cases: int, in_flight: int) -> None:
    limits = httpx.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=120) as client:

        async def ask(question: str) -> dict[str, Any]:
            body = {"question": question, "k": 5}
            answer: dict[str, Any] = (await client.post("/api/v1/ask?debug=true", json=body)).json()
            return answer

        questions = (f"How is pump number {number} primed?" for number in range(cases))
        dataset = Dataset(
            name="loopback",
            cases=[Case(name=f"case-{number}", inputs=question) for number, question in enumerate(questions)],
            evaluators=[RecallAny(), Groundedness(client)],
        )
        report = await dataset.evaluate(ask, max_concurrency=in_flight, progress=False)
    assert len(report.cases) == cases, f"{len(report.failures)} failures"
    with open("report.txt", "w", encoding="utf-8") as file:  # noqa: ASYNC230 because nothing else waits by now
        file.write(report.render(width=200))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
