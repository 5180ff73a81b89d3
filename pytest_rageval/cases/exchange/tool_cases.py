"""Cases as files that DeepEval, Ragas and promptfoo read, with what a system gave where they have room for it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pytest_rageval.cases.exchange.exchange import KEPT, Answers, ToolFiles, chunk_texts, kept_parts, unplaced
from pytest_rageval.model import EvalCase, Json

FEWEST = 1e-6
"""The threshold of a set of checks of which one is enough."""


def write_deepeval(cases: Sequence[EvalCase], answers: Answers) -> ToolFiles:
    """goldens.json, for `EvaluationDataset.add_goldens_from_json_file`."""
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


def write_ragas(cases: Sequence[EvalCase], answers: Answers) -> ToolFiles:
    """ragas.jsonl, for `EvaluationDataset.from_jsonl`: the fields of its SingleTurnSample."""
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


def write_promptfoo(cases: Sequence[EvalCase], answers: Answers) -> ToolFiles:
    """tests.json, for `tests: file://tests.json`: the question as a variable, right answers and key facts as checks."""
    rows = [_test(case) for case in cases]
    notes = unplaced("promptfoo", "answers of a system", list(answers)) if answers else ()
    return ToolFiles({"tests.json": [json.dumps(rows, ensure_ascii=False, indent=1)]}, tuple(notes))


def _test(case: EvalCase) -> dict[str, Json]:
    gold = case.gold
    variables: dict[str, Json] = {"question": case.question}
    checks: list[Json] = [{"type": "factuality", "value": text} for text in gold.answers or ()]
    if len(checks) > 1:
        checks = [{"type": "assert-set", "threshold": FEWEST, "assert": checks}]
    checks += [{"type": "icontains", "value": fact} for fact in gold.key_facts or ()]
    native: dict[str, Json] = {"question": case.question}
    if gold.answers:
        native["expected_answers"] = [text.strip() for text in gold.answers]
    if gold.key_facts:
        native["expected_key_facts"] = [fact.strip() for fact in gold.key_facts]
    if case.contexts:
        # One text: promptfoo makes a test of each member of a list.
        variables["context"] = "\n\n".join(case.contexts)
        native["contexts"] = [variables["context"]]
    kept = {"id": case.id, **kept_parts(case, native)}
    test: dict[str, Json] = {"description": case.id, "vars": variables, "metadata": {KEPT: kept}}
    return {**test, "assert": checks} if checks else test
