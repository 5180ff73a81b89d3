"""The same questions with ragas: `python with_ragas.py URL CASES IN_FLIGHT`.

ragas scores answers that are there; they are asked before, as many at once.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from typing import Any

import httpx
from loopback_calls import ask_all, client_of, judge, question, recall_any
from ragas import EvaluationDataset, SingleTurnSample, evaluate
from ragas.metrics.base import MetricType, SingleTurnMetric
from ragas.run_config import RunConfig

NEEDED = {MetricType.SINGLE_TURN: {"user_input", "response", "retrieved_contexts", "retrieved_context_ids"}}


def chunks_of(sample: SingleTurnSample) -> list[dict[str, Any]]:
    ids, texts = sample.retrieved_context_ids, sample.retrieved_contexts
    return [{"chunk_id": id, "heading_path": id, "text": text} for id, text in zip(ids, texts, strict=True)]


@dataclass
class RecallAny(SingleTurnMetric):
    name: str = "recall_any"
    _required_columns: dict[MetricType, set[str]] = field(default_factory=lambda: dict(NEEDED))

    def init(self, run_config: RunConfig) -> None:
        pass

    async def _single_turn_ascore(self, sample: SingleTurnSample, callbacks: Any) -> float:
        return recall_any(chunks_of(sample))


@dataclass
class Groundedness(SingleTurnMetric):
    name: str = "groundedness"
    _required_columns: dict[MetricType, set[str]] = field(default_factory=lambda: dict(NEEDED))
    url: str = ""
    in_flight: int = 0
    client: httpx.AsyncClient | None = None

    def init(self, run_config: RunConfig) -> None:
        pass

    async def _single_turn_ascore(self, sample: SingleTurnSample, callbacks: Any) -> float:
        self.client = self.client or client_of(self.url, self.in_flight)
        return await judge(self.client, sample.user_input, sample.response, chunks_of(sample))


def main(url: str, cases: int, in_flight: int) -> None:
    samples = []
    for number, answer in enumerate(asyncio.run(ask_all(url, cases, in_flight))):
        chunks = answer["debug"]["retrieved_chunks"]
        samples.append(
            SingleTurnSample(
                user_input=question(number),
                response=answer["answer"],
                retrieved_contexts=[chunk["text"] for chunk in chunks],
                retrieved_context_ids=[chunk["heading_path"] for chunk in chunks],
            )
        )
    result = evaluate(
        EvaluationDataset(samples),
        [RecallAny(), Groundedness(url=url, in_flight=in_flight)],
        run_config=RunConfig(max_workers=in_flight),
        show_progress=False,
        raise_exceptions=True,
    )
    assert sum(score["groundedness"] == 5 for score in result.scores) == cases
    result.to_pandas().to_csv("results.csv")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
