"""Labels that people gave to answers, read from JSONL or CSV; all problems are reported together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, cast

from pydantic import AfterValidator, BeforeValidator, ValidationInfo

from pytest_rageval.cases.csv_rows import CsvRow, csv_rows
from pytest_rageval.cases.keys import Cell
from pytest_rageval.errors import CaseError
from pytest_rageval.io.expected import FLAG, Expects, flag_of, known_keys
from pytest_rageval.io.lines import JsonRow, json_rows, read_lines
from pytest_rageval.io.messages import Finding, Findings, Report, Unsound, shown_value
from pytest_rageval.io.records import Name, RecordReader
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import Json, Source

MOST_LABELS = 100_000


def _number(value: Json) -> Json:
    """Convert a text that is a number, as in a CSV cell."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _within(score: float, info: ValidationInfo) -> float:
    low, high = cast("tuple[float, float]", info.context)
    if low <= score <= high:
        return score
    raise ValueError(f"is {score:g}, outside the rubric's scale {low:g} to {high:g}")


def _flag(value: Json) -> Json:
    flag = flag_of(str(value)) if isinstance(value, int | str) else None
    return value if flag is None else flag


def _texts(value: Json) -> Json:
    """Read a text as a JSON list of texts, or else as one passage."""
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, str):
        return value
    if not value.lstrip().startswith("["):
        return (value,)
    try:
        written = parse(value)
    except StrictJsonError:  # a passage may begin with a bracket: [1] …
        return (value,)
    if isinstance(written, list) and all(isinstance(text, str) for text in written):
        return tuple(written)
    return (value,)


_Score = Annotated[float, BeforeValidator(_number), AfterValidator(_within)]


@dataclass(frozen=True, kw_only=True)
class LabelLine:
    """One line of a label file.

    human_pass   pass or fail, if given outright
    human_score  on the rubric's scale, if given
    judge_score  a judge's score on the same scale, if it was recorded with the label
    case_key     the case of a stored run whose answer is labelled, and `run` which run, if named
    question, answer, contexts
                 what is to be judged; None and empty if it is in a run, or is judged already
    """

    id: Name | None = None
    question: str | None = None
    answer: str | None = None
    contexts: Annotated[tuple[str, ...], BeforeValidator(_texts), Expects("a list of texts")] = ()
    human_score: _Score | None = None
    human_pass: Annotated[bool, BeforeValidator(_flag), Expects(FLAG)] | None = None
    judge_score: _Score | None = None
    run: Name | None = None
    case_key: Name | None = None


@dataclass(frozen=True, kw_only=True)
class Label(LabelLine):
    """One person's label of one answer, and its line."""

    id: str
    source: Source


_LINES = RecordReader[LabelLine](LabelLine)
_LABELS = ("human_score", "human_pass")
_COLUMNS: Mapping[str, Cell] = dict.fromkeys(known_keys(LabelLine), "text")


def read_labels(path: Path, scale: tuple[float, float], max_line_bytes: int) -> tuple[Label, ...]:
    """Read the labels of a file in order; CSV by its suffix, else one JSON object a line.

    Raises CaseError with every problem, each with file, line and column, or if there are no labels. Scores must lie on
    the rubric's `scale`.
    """
    report = Report(str(path))
    labels: dict[str, Label] = {}
    for number, row in enumerate(_rows(path, report, max_line_bytes)):
        if number >= MOST_LABELS:
            report.add(row.line, 1, f"more than {MOST_LABELS:,} labels; the rest was not read")
            break
        label = _label(row, path, scale, report)
        if label is None:
            continue
        earlier = labels.get(label.id)
        if earlier is not None:
            twice = f"is labelled twice, first at line {earlier.source.line}; keep one label for each answer"
            report.add(row.line, 1, f"{shown_value(label.id)} {twice}")
            continue
        labels[label.id] = label
    if not labels and not len(report):
        report.add_whole("holds no labels")
    if len(report):
        raise CaseError(*report.problems)
    return tuple(labels.values())


def _rows(path: Path, report: Report, max_line_bytes: int) -> Iterator[JsonRow | CsvRow]:
    lines = read_lines(path, report, max_line_bytes)
    if path.suffix.lower() == ".csv":
        return csv_rows(lines, report, _COLUMNS, [_LABELS], max_line_bytes)
    return json_rows(lines, report)


def _label(row: JsonRow | CsvRow, path: Path, scale: tuple[float, float], report: Report) -> Label | None:
    """Read the label of one record; report its problems and return None if there are any."""
    record = {key: value for key, value in row.record.items() if value is not None}
    names = (record.get(key) for key in ("id", "case_key"))
    named = next((name for name in names if isinstance(name, str)), None)
    try:
        line = _LINES.read(record, context=scale)
        findings = Findings(*(Finding((), message) for message in _lacking(record)))
    except Unsound as unsound:
        findings = unsound.findings
    if findings:
        report.add_findings(row.line, findings, named, row.column_finder().column)
        return None
    written = {field.name: getattr(line, field.name) for field in fields(line)}
    if not line.id:
        written["id"] = f"{line.run} {line.case_key}" if line.run else str(line.case_key)
    return Label(**written, source=Source(str(path), row.line))


def _lacking(record: Mapping[str, Json]) -> list[str]:
    """Return what a record lacks, as ends of a message."""
    problems = []
    if "human_score" not in record and "human_pass" not in record:
        problems.append("neither human_score nor human_pass is given; label the answer, or leave its line out")
    if "case_key" in record:
        keys = [key for key in ("question", "answer", "contexts") if key in record]
        if keys:
            problems.append(f"{keys[0]} stands beside case_key; the run has it already, so leave it out")
        return problems
    if "id" not in record:
        problems.append("id is missing; or name a case of a run by case_key")
    if "run" in record:
        problems.append("case_key is missing: which case of the run is meant?")
    elif "judge_score" not in record and not {"question", "answer"} <= record.keys():
        problems.append("question and answer are both needed to be judged; or give judge_score")
    return problems
