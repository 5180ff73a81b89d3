"""Rows of Ragas: JSON lines that `EvaluationDataset.from_jsonl` reads, with the field names of its SingleTurnSample."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pytest_rageval.cases.exchange.exchange import KEPT, Answers, ToolFiles, chunk_texts, kept_parts
from pytest_rageval.model import EvalCase, Json


def write_ragas(cases: Sequence[EvalCase], answers: Answers) -> ToolFiles:
    """ragas.jsonl: `user_input`, `reference`, `reference_contexts`, and what the system gave."""
    return ToolFiles({"ragas.jsonl": [json.dumps(_row(case, answers), ensure_ascii=False) for case in cases]})


def _row(case: EvalCase, answers: Answers) -> dict[str, Json]:
    gold, answer = case.gold, answers.get(case.id)
    row: dict[str, Json] = {"id": case.id, "user_input": case.question}
    native: dict[str, Json] = {"question": case.question}
    if gold.answers:
        row["reference"] = native["reference"] = gold.answers[0]
    if case.contexts:
        row["reference_contexts"] = native["contexts"] = list(case.contexts)
    if gold.chunk_ids:
        row["reference_context_ids"] = list(gold.chunk_ids)
        native["gold"] = {"chunk_ids": list(gold.chunk_ids)}
    if answer is not None and answer.text is not None:
        row["response"] = answer.text
    if (texts := chunk_texts(answer)) is not None:
        row["retrieved_contexts"] = texts
        ids = [chunk.chunk_id for chunk in (answer.chunks if answer else None) or ()]
        if ids and all(ids):
            row["retrieved_context_ids"] = ids
    if kept := kept_parts(case, native):
        row[KEPT] = kept
    return row
