"""Cases as one CSV file of our own names, for spreadsheets; what has no column of its own is JSON in `gold`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence

from pytest_rageval.cases.canonical import case_to_mapping
from pytest_rageval.cases.exchange.exchange import Answers, ToolFiles, unplaced
from pytest_rageval.cases.keys import CELLS
from pytest_rageval.model import EvalCase, Json

COLUMNS = ("id", "question", "reference", "answerable", "category", "difficulty", "domain", "tags", "vaults", "folders",
           "requires_kg", "history", "contexts", "metadata", "gold")  # fmt: skip


def write_csv(cases: Sequence[EvalCase], answers: Answers, shown: Callable[[str], str] = str) -> ToolFiles:
    """cases.csv and, where answers are given, cases.answers.csv; only columns that some case fills.

    shown  what stands in the table for a text of a case; by itself the text, so that it reads back as it was
    """
    rows = [_row(case) for case in cases]
    columns = [name for name in COLUMNS if name in ("id", "question") or any(name in row for row in rows)]
    written: set[str] = set()
    files = {"cases.csv": [_line(columns), *(_line([shown(row.get(name, "")) for name in columns]) for row in rows)]}
    if answers:
        written = {case_id for case_id, answer in answers.items() if (answer.text or "").strip() or answer.abstained}
        lines = [_line([case.id, *_answer_cells(case.id, answers)]) for case in cases if case.id in written]
        files["cases.answers.csv"] = [_line(["id", "answer", "abstained", "retrieved_chunks"]), *lines]
    blank = [case.id for case in cases if answers and case.id in answers and case.id not in written]
    return ToolFiles(files, tuple(unplaced("CSV", "blank answers", blank)))


def _row(case: EvalCase) -> dict[str, str]:
    mapping = case_to_mapping(case)
    del mapping["source"]
    gold = mapping.get("gold", {})
    if isinstance(gold.get("answer"), str):
        mapping["reference"] = gold.pop("answer")
    if not gold:
        mapping.pop("gold", None)
    return {name: _cell(name, value) for name, value in mapping.items()}


def _cell(name: str, value: Json) -> str:
    return value if CELLS[name] == "text" else json.dumps(value, ensure_ascii=False)


def _answer_cells(case_id: str, answers: Answers) -> list[str]:
    answer = answers[case_id]
    names = ("chunk_id", "doc_id", "rel_path", "heading_path", "rank", "score_final", "text")
    chunks = [
        {name: value for name in names if (value := getattr(chunk, name)) is not None} for chunk in answer.chunks or ()
    ]
    abstained = "" if answer.abstained is None else str(answer.abstained).lower()
    return [answer.text or "", abstained, "" if answer.chunks is None else json.dumps(chunks, ensure_ascii=False)]


def _line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)  # what ends a line is quoted inside of cells
    return text.getvalue().removesuffix("\r\n")
