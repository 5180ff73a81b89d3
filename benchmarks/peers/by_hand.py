"""What somebody writes by hand with pytest and httpx: each case asked and judged, a few scores, a line of results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import httpx
import pytest

CASES = [json.loads(line) for line in Path(__file__).with_name("cases.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(base_url="http://localhost:8080", timeout=120) as client:
        yield client


@pytest.fixture(scope="session")
def results() -> Iterator[TextIO]:
    with Path(__file__).with_name("results.jsonl").open("w", encoding="utf-8") as file:
        yield file


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case: dict[str, Any], client: httpx.Client, results: TextIO) -> None:
    answer = client.post("/api/v1/ask?debug=true", json={"question": case["question"], "k": 5}).json()
    chunks = answer["debug"]["retrieved_chunks"]
    contexts = [{"chunk_id": chunk["chunk_id"], "text": chunk["text"]} for chunk in chunks]
    variables = {"question": case["question"], "answer": answer["answer"], "contexts": contexts}
    judged = client.post("/judge", json=variables).json()
    places = {(one["rel_path"], one["heading_path"]) for one in case["gold_supports"]}
    hits = [(chunk["rel_path"], chunk["heading_path"]) in places for chunk in chunks]
    scores = {
        "recall_any": float(any(hits)),
        "mrr": next((1 / rank for rank, hit in enumerate(hits, 1) if hit), 0.0),
        "groundedness": judged["score"],
    }
    results.write(json.dumps({"id": case["id"], "answer": answer, "judged": judged, "scores": scores}) + "\n")
    assert scores["recall_any"] == 1
    assert not answer["abstained"]
