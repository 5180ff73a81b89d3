"""What did people say? Labels of answers, read from JSONL or CSV; whatever is wrong with them is said all at once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_rageval.cases.csv_rows import CsvRow, csv_rows
from pytest_rageval.cases.fields import Field
from pytest_rageval.cases.shapes import Shape
from pytest_rageval.errors import CaseError
from pytest_rageval.io.json_lines import JsonRow, json_rows
from pytest_rageval.io.lines import read_lines
from pytest_rageval.io.messages import Findings, Report, Unsound, bad, quoted, wrong
from pytest_rageval.model import Json, Source

MOST_LABELS = 100_000


@dataclass(frozen=True, slots=True)
class Label:
    """What one person said of one answer, and where it is written.

    passes       pass or fail, if said outright
    score        on the rubric's scale, if given
    judge_score  what a judge scored, on the same scale, where it was recorded with the label
    case_key     the case of a stored run whose answer this is about, and `run` which run, if named
    question, answer, contexts
                 what is to be judged; None and empty where it stands in a run, or is judged already
    """

    id: str
    source: Source
    passes: bool | None = None
    score: float | None = None
    judge_score: float | None = None
    run: str | None = None
    case_key: str | None = None
    question: str | None = None
    answer: str | None = None
    contexts: tuple[str, ...] = ()


def read_labels(path: Path, scale: tuple[float, float], max_line_bytes: int) -> tuple[Label, ...]:
    """The labels of a file in its order; CSV by its suffix, else one JSON object a line.

    A CaseError with every problem, each with file, line and column, where one is wrong or there is none. Scores must
    lie on the rubric's `scale`.
    """
    report = Report(str(path))
    lines = read_lines(path, report, max_line_bytes)
    rows: Iterator[JsonRow | CsvRow] = (
        csv_rows(lines, report, _COLUMNS, [_LABELS], max_line_bytes)
        if path.suffix.lower() == ".csv"
        else json_rows(lines, report)
    )
    labels: dict[str, Label] = {}
    for number, row in enumerate(rows):
        if number >= MOST_LABELS:
            report.add(row.line, 1, f"more than {MOST_LABELS:,} labels; the rest was not read")
            break
        label = _label(row, path, scale, report)
        if label is not None and (known := labels.setdefault(label.id, label)) is not label:
            where = f"is labelled twice, first at line {known.source.line}; keep one label for each answer"
            report.add(row.line, 1, f"{quoted(label.id)} {where}")
    if not labels and not len(report):
        report.add_whole("holds no labels")
    if len(report):
        raise CaseError(*report.problems)
    return tuple(labels.values())


def _label(row: JsonRow | CsvRow, path: Path, scale: tuple[float, float], report: Report) -> Label | None:
    """The label of one record; None where it has problems, which are reported."""
    record = {key: value for key, value in row.record.items() if value is not None}
    findings, found = _read(record)
    for key in ("human_score", "judge_score"):
        score = found.get(key)
        if isinstance(score, float) and not scale[0] <= score <= scale[1]:
            findings.add((key,), f"is {score:g}, outside the rubric's scale {scale[0]:g} to {scale[1]:g}")
    if not findings:
        for message in _lacking(record):
            findings.add((), message)
    named = found.get("id", found.get("case_key"))
    if findings:
        finder = row.column_finder()
        report.add_findings(row.line, findings, named if isinstance(named, str) else None, finder.column)
        return None
    of_run = f"{found['run']} {named}" if "run" in found and "id" not in found else named
    values = {field: found[key] for key, field in _FIELDS.items() if key in found}
    return Label(**{**values, "id": of_run, "source": Source(str(path), row.line)})


def _read(record: Mapping[str, Json]) -> tuple[Findings, dict[str, Any]]:
    """The values of a record as far as they can be read, and what is wrong with the others."""
    findings, found = Findings(), dict[str, Any]()
    for key, value in record.items():
        if key not in _READERS:
            findings.unknown((key,), _READERS)
            continue
        try:
            found[key] = _READERS[key](value)
        except Unsound as unsound:
            findings.include((key,), unsound.findings)
    return findings, found


def _lacking(record: Mapping[str, Json]) -> list[str]:
    """What a record must have besides, as ends of a message."""
    said = []
    if "human_score" not in record and "human_pass" not in record:
        said.append("neither human_score nor human_pass is given; label the answer, or leave its line out")
    if "case_key" in record:
        given = [key for key in ("question", "answer", "contexts") if key in record]
        if given:
            said.append(f"{given[0]} stands beside case_key; the run has it already, so leave it out")
        return said
    if "id" not in record:
        said.append("id is missing; or name a case of a run by case_key")
    if "run" in record:
        said.append("case_key is missing: which case of the run is meant?")
    elif "judge_score" not in record and not {"question", "answer"} <= record.keys():
        said.append("question and answer are both needed to be judged; or give judge_score")
    return said


# ── values ────────────────────────────────────────────────────────────────────────────────────────────────────


def _name(value: Json) -> str:
    if not isinstance(value, str):
        raise wrong(value, "a string")
    if not value.strip():
        raise bad("is blank")
    return value


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise wrong(value, "a string")
    return value


def _number(value: Json) -> float:
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        number = float(value)
    except (ValueError, OverflowError):
        raise wrong(value, "a number") from None
    if not math.isfinite(number):
        raise wrong(value, "a finite number")
    return number


_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _flag(value: Json) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, int | str) else ""
    if word not in _FLAGS:
        raise wrong(value, "true or false (or yes, no, 1, 0)")
    return _FLAGS[word]


def _texts(value: Json) -> tuple[str, ...]:
    """A list of texts; a text is such a list written as JSON, or else one passage."""
    if isinstance(value, str):
        try:
            written = json.loads(value) if value.lstrip().startswith("[") else None
        except (ValueError, RecursionError):  # a passage may begin with a bracket: [1] …
            written = None
        is_list = isinstance(written, list) and all(isinstance(text, str) for text in written)
        value = written if is_list else [value]
    if not isinstance(value, list):
        raise wrong(value, "a list of texts")
    findings = Findings()
    for position, text in enumerate(value):
        findings.include_from(position, text, _text)
    if findings:
        raise Unsound(findings)
    return tuple(value)


_READERS: Mapping[str, Callable[[Json], object]] = {
    "id": _name,
    "question": _text,
    "answer": _text,
    "contexts": _texts,
    "human_score": _number,
    "human_pass": _flag,
    "judge_score": _number,
    "run": _name,
    "case_key": _name,
}
_FIELDS = {key: key for key in _READERS} | {"human_score": "score", "human_pass": "passes"}
_LABELS = ("human_score", "human_pass")
_COLUMNS = {key: Field(key, Shape(reader, {}, "text"), "") for key, reader in _READERS.items()}
