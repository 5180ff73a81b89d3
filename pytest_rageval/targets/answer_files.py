"""Files of uploaded answers: CSV or JSONL, `id` or `question` and an answer record a line.

All that is wrong with a file is said together, each problem with `file:line:column`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pytest_rageval.errors import CaseError
from pytest_rageval.io.collector import no_collection
from pytest_rageval.io.expected import FLAG, flag_of
from pytest_rageval.io.json_lines import JsonRow, json_rows
from pytest_rageval.io.lines import Line, read_lines
from pytest_rageval.io.messages import Report, Unsound, bad, found, shown_value
from pytest_rageval.io.records import Name, RecordReader
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.io.suggestions import did_you_mean, listed
from pytest_rageval.model import NOTHING, Answer, Json
from pytest_rageval.targets.native_contract import RECORD_FIELDS, read_record
from pytest_rageval.words import fold

LONGEST_LINE = 16 * 2**20
"""Bytes: as much as one response over the network may hold."""


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """One line. `name` is its id as written, a case's id or its full key; without an id it is `asking(question)`."""

    name: str
    line: int
    answer: Answer
    question: str | None = None


ASKING = "\0"


def asking(question: str) -> str:
    """Return the name of an answer that has no id: its question, whatever its case and white space."""
    return ASKING + fold(question)


@dataclass(frozen=True, slots=True)
class AnswersFile:
    """The answers of one system by name, and what a person should know of the file."""

    shown: str
    system: str | None
    records: Mapping[str, AnswerRecord]
    notes: tuple[str, ...] = ()


def load_answers(
    path: Path, system: str | None = None, *, shown_as: str | None = None, max_bytes: int = LONGEST_LINE,
    most_rows: int | None = None,
) -> AnswersFile:  # fmt: skip
    """Read the answers of one system; a file with several needs `system`.

    Raises CaseError with every problem of the file. `shown_as` is how messages name it, `max_bytes` the longest line,
    `most_rows` how many answers are read at most.
    """
    name = shown_as or path.name
    if path.suffix not in (".csv", ".jsonl"):
        raise CaseError(f"{name}: an answers file is .jsonl or .csv")
    report = Report(name)
    reading = _Reading(report)
    lines = read_lines(path, report, max_bytes)
    if most_rows is not None:
        lines = _while_few_broken(lines, report, most_rows)
    rows = json_rows(lines, report) if path.suffix == ".jsonl" else _csv_rows(lines, report)
    with no_collection():
        for number, row in enumerate(rows, start=1):
            if most_rows is not None and number > most_rows:
                raise _too_many(report, most_rows)
            reading.take(row)
    return reading.finished(system)


def _while_few_broken(lines: Iterator[Line], report: Report, most_rows: int) -> Iterator[Line]:
    """Rows that cannot be read count as well: of a large file of them each would become a message."""
    for line in lines:
        if report.unread >= most_rows:
            raise _too_many(report, most_rows)
        yield line


def _too_many(report: Report, most_rows: int) -> CaseError:
    return CaseError(f"{report.file}: more answers than the {most_rows:,} that are taken; split it")


@dataclass(frozen=True, slots=True)
class _About:
    """What a line says beside the answer: whose it is."""

    id: Name | None = None
    question: str | None = None
    contexts: Json = None
    system: str | None = None
    model_name: str | None = None
    timestamp: Json = None
    meta: Mapping[str, Json] | None = None


_ABOUT: RecordReader[_About] = RecordReader(_About)
_OF_ABOUT = tuple(member.name for member in fields(_About))
KNOWN = RECORD_FIELDS | {*_OF_ABOUT}
"""Keys of a line that are read."""
_KEPT = ("model_name", "timestamp", "meta")
"""What of it stands among the extra fields of the answer."""


class _Reading:
    """One pass over a file: records by system and id, and everything that is wrong."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._systems: dict[str | None, dict[str, AnswerRecord]] = {}
        self._unknown: dict[str, int] = {}
        """Keys that are not read, by the line where each stands first."""

    def take(self, row: JsonRow) -> None:
        """Add one row, or report its problems."""
        try:
            system, record = _record(row)
        except Unsound as unsound:
            case_id = row.record.get("id")
            named = case_id if isinstance(case_id, str) else None
            self._report.add_findings(row.line, unsound.findings, named, row.column_finder().column)
            return
        records = self._systems.setdefault(system, {})
        if record.name in records:
            key = "question" if record.name.startswith(ASKING) else "id"
            message = f"{key} {shown_value(row.record[key])} already has an answer at line {records[record.name].line}"
            self._report.add(row.line, row.column_finder().column((key,), False), message)
            return
        records[record.name] = record
        for name in row.record.keys() - KNOWN - self._unknown.keys():
            self._unknown[name] = row.line

    def finished(self, system: str | None) -> AnswersFile:
        """The answers of the system that is meant; CaseError if there are problems, or no such system."""
        report = self._report
        named = sorted(name for name in self._systems if name is not None)
        if named and None in self._systems:
            first = min(record.line for record in self._systems[None].values())
            report.add(first, 1, "has no system, though other lines do; give it one")
        if not self._systems and not len(report):
            report.add_whole("holds no answers")
        listed = ", ".join(named)
        if system is not None and system not in named and self._systems:
            there = f"it has {listed}" if named else "its lines have no field 'system'"
            report.add_whole(f"no system {shown_value(system)}; {there}")
        if system is None and len(named) > 1:
            example = f"answers:{report.file}#{named[0]}"
            report.add_whole(f"holds several systems ({listed}); choose one, as in {example}")
        if len(report):
            raise CaseError(*report.problems)
        chosen = system if system is not None else next(iter(self._systems))
        return AnswersFile(report.file, chosen, self._systems[chosen], tuple(self._notes()))

    def _notes(self) -> Iterator[str]:
        """Name the keys that are not read once, each with the known key that was probably meant."""
        named = [f"{name}{did_you_mean(name, KNOWN)} (line {line})" for name, line in sorted(self._unknown.items())]
        if named:
            yield f"{self._report.file}: kept as metadata and not read: {listed(named)}"


def _record(row: JsonRow) -> tuple[str | None, AnswerRecord]:
    """The system and the record of one line; what the fields of a record do not cover goes to `meta`."""
    data = row.record
    about = _ABOUT.read({name: data[name] for name in _OF_ABOUT if name in data})
    debug = data.get("debug")
    if not {"answer", "retrieved_chunks", "contexts"} & {*data, *(debug if isinstance(debug, dict) else NOTHING)}:
        raise bad("holds neither 'answer' nor 'retrieved_chunks'")
    if about.id is None and not (about.question or "").strip():
        raise bad("has no id, and no question to find its case by")
    extra = {name: value for name in _KEPT if (value := getattr(about, name)) is not None}
    members = {name: value for name, value in data.items() if name not in _OF_ABOUT and value is not None}
    if others := {name: value for name, value in members.items() if name not in RECORD_FIELDS}:
        extra["meta"] = {**(about.meta or NOTHING), **others}
    record = {name: value for name, value in data.items() if name in RECORD_FIELDS}
    if about.contexts is not None:
        record["retrieved_chunks"] = _chunks_of(about.contexts, record)
    name = about.id if about.id is not None else asking(about.question or "")
    return about.system, AnswerRecord(name, row.line, read_record(extra | record), about.question)


def _chunks_of(contexts: Json, record: Mapping[str, Json]) -> list[Json]:
    """Return the texts that an answer rests on as retrieved chunks."""
    texts = [contexts] if isinstance(contexts, str) else contexts
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise bad(f"contexts is {found(contexts)}, expected a text or a list of texts")
    debug = record.get("debug")
    if "retrieved_chunks" in {*record, *(debug if isinstance(debug, dict) else NOTHING)}:
        raise bad("holds both contexts and retrieved_chunks; keep one")
    return [{"text": text} for text in texts]


# ── CSV ───────────────────────────────────────────────────────────────────────────────────────────────────────

_TEXT_CELLS = {"id", "question", "answer", "abstain_reason", "system", "model_name", "timestamp"}


def _csv_rows(lines: Iterator[Line], report: Report) -> Iterator[JsonRow]:
    """Rows by the names of the header, empty cells left out; structured cells hold JSON."""
    # The limit is global to the csv module; its default of 128 kB is less than the chunks of one answer may take.
    before = csv.field_size_limit(LONGEST_LINE)
    try:
        yield from _cells(csv.reader((text for _, text, _ in lines), strict=True), report)
    finally:
        csv.field_size_limit(before)


def _cells(rows: Any, report: Report) -> Iterator[JsonRow]:
    header: list[str] | None = None
    while True:
        start = rows.line_num + 1
        try:
            row = next(rows, None)
        except csv.Error as error:
            report.add(start, 1, f"not valid CSV: {error}")
            return
        if row is None:
            return
        if not any(cell.strip() for cell in row):
            continue
        if header is None:
            header = [name.strip() for name in row]
            if problem := _header_problem(header):
                report.add(start, 1, problem)
                return
        elif len(row) != len(header):
            report.add(start, 1, f"has {len(row)} cells, the header has {len(header)}")
        else:
            try:
                yield JsonRow(start, _typed(dict(zip(header, row, strict=True))), text="")
            except Unsound as unsound:
                report.add_findings(start, unsound.findings, None, JsonRow(start, {}, text="").column_finder().column)


def _header_problem(header: list[str]) -> str:
    if not {"id", "question"} & {*header} or not {"answer", "retrieved_chunks", "contexts"} & {*header}:
        names = shown_value(",".join(header))
        return f"the header is {names}, expected at least id (or question) and answer (or retrieved_chunks)"
    repeated = {name for name in header if header.count(name) > 1}
    return f"the header names {shown_value(min(repeated))} twice" if repeated else ""


def _typed(cells: dict[str, str]) -> dict[str, Json]:
    """The values that the cells of a row stand for."""
    data: dict[str, Json] = {}
    for name, cell in cells.items():
        if name == "answer" or not cell.strip():
            continue
        is_one_text = name == "contexts" and not cell.lstrip().startswith("[")
        if name == "abstained":
            data[name] = flag_of(cell)
            if data[name] is None:
                raise bad(f"abstained is {shown_value(cell)}, expected {FLAG}")
        elif is_one_text or name in _TEXT_CELLS or name not in RECORD_FIELDS | {"meta", "contexts"}:
            data[name] = cell
        else:
            try:
                data[name] = parse(cell.strip())
            except StrictJsonError as error:
                raise bad(f"{name}: {error}") from None
    if "answer" in cells:
        if not cells["answer"].strip() and not data.get("abstained"):
            raise bad("answer is empty; where the system declined, say so with abstained = true")
        data["answer"] = cells["answer"]
    return data
