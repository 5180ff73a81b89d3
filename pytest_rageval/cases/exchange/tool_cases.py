"""Cases as files that DeepEval, Ragas, promptfoo and spreadsheets read, with what a system gave where there is room."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence

from pytest_rageval.cases.canonical import case_to_mapping
from pytest_rageval.cases.exchange.exchange import KEPT, Answers, ToolFiles, chunk_texts, kept_parts, unplaced
from pytest_rageval.cases.keys import CELLS
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


# ── CSV of our own names ────────────────────────────────────────────────────────────────────────────────────────


COLUMNS = ("id", "question", "reference", "answerable", "category", "difficulty", "domain", "tags", "vaults", "folders",
           "requires_kg", "history", "contexts", "metadata", "gold")  # fmt: skip


def write_csv(cases: Sequence[EvalCase], answers: Answers, shown: Callable[[str], str] = str) -> ToolFiles:
    """cases.csv and, where answers are given, cases.answers.csv; only columns that some case fills.

    shown  what stands in the table for a text of a case; by itself the text, so that it reads back as it was
    """
    rows = [_csv_row(case) for case in cases]
    columns = [name for name in COLUMNS if name in ("id", "question") or any(name in row for row in rows)]
    written: set[str] = set()
    files = {
        "cases.csv": [_csv_line(columns), *(_csv_line([shown(row.get(name, "")) for name in columns]) for row in rows)]
    }
    if answers:
        written = {case_id for case_id, answer in answers.items() if (answer.text or "").strip() or answer.abstained}
        lines = [_csv_line([case.id, *_answer_cells(case.id, answers)]) for case in cases if case.id in written]
        files["cases.answers.csv"] = [_csv_line(["id", "answer", "abstained", "retrieved_chunks"]), *lines]
    blank = [case.id for case in cases if answers and case.id in answers and case.id not in written]
    return ToolFiles(files, tuple(unplaced("CSV", "blank answers", blank)))


def _csv_row(case: EvalCase) -> dict[str, str]:
    mapping = case_to_mapping(case)
    del mapping["source"]
    gold = mapping.get("gold", {})
    if isinstance(gold.get("answer"), str):
        mapping["reference"] = gold.pop("answer")
    if not gold:
        mapping.pop("gold", None)
    return {name: _csv_cell(name, value) for name, value in mapping.items()}


def _csv_cell(name: str, value: Json) -> str:
    return value if CELLS[name] == "text" else json.dumps(value, ensure_ascii=False)


def _answer_cells(case_id: str, answers: Answers) -> list[str]:
    answer = answers[case_id]
    names = ("chunk_id", "doc_id", "rel_path", "heading_path", "rank", "score_final", "text")
    chunks = [
        {name: value for name in names if (value := getattr(chunk, name)) is not None} for chunk in answer.chunks or ()
    ]
    abstained = "" if answer.abstained is None else str(answer.abstained).lower()
    return [answer.text or "", abstained, "" if answer.chunks is None else json.dumps(chunks, ensure_ascii=False)]


def _csv_line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)  # what ends a line is quoted inside of cells
    return text.getvalue().removesuffix("\r\n")
