"""Goldens of DeepEval: a JSON list that `EvaluationDataset.add_goldens_from_json_file` reads."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pytest_rageval.cases.exchange.exchange import KEPT, Answers, ToolFiles, chunk_texts, kept_parts
from pytest_rageval.model import EvalCase, Json


def write_deepeval(cases: Sequence[EvalCase], answers: Answers) -> ToolFiles:
    """goldens.json: `input`, `expected_output`, `context`, and what the system gave."""
    rows = [_golden(case, answers) for case in cases]
    return ToolFiles({"goldens.json": [json.dumps(rows, ensure_ascii=False, indent=1)]})


def _golden(case: EvalCase, answers: Answers) -> dict[str, Json]:
    answer = answers.get(case.id)
    expected = case.gold.answers[0] if case.gold.answers else None
    native: dict[str, Json] = {"question": case.question}
    if expected is not None:
        native["reference"] = expected
    if case.contexts:
        native["contexts"] = list(case.contexts)
    metadata: dict[str, Json] = {KEPT: {"id": case.id, **kept_parts(case, native)}}
    return {
        "input": case.question,
        "actual_output": answer.text if answer else None,
        "expected_output": expected,
        "retrieval_context": chunk_texts(answer),
        "context": list(case.contexts) if case.contexts else None,
        "name": case.id,
        "comments": None,
        "source_file": case.source.file or None,
        "additional_metadata": metadata,
    }
