"""Files of uploaded answers: CSV or JSONL, one answer record with `id` or `question` per line.

All problems of a file are reported at once, each with `file:line:column`.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_rageval.cases.csv_rows import CsvRow, csv_rows
from pytest_rageval.cases.keys import Cell
from pytest_rageval.cases.names import ANSWER, CONTEXTS, GIVEN, QUESTION, RETRIEVED, field_of, is_plain_answer
from pytest_rageval.errors import CaseError, SettingsError, TargetError
from pytest_rageval.io.collector import no_collection
from pytest_rageval.io.lines import FileLine, JsonRow, json_rows, read_lines
from pytest_rageval.io.messages import Report, Unsound, describe, invalid, shown_value
from pytest_rageval.io.records import Name
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.io.suggestions import did_you_mean, listed
from pytest_rageval.model import NOTHING, Answer, Chunk, Json
from pytest_rageval.targets.answer_records import AnswerRecord, CheckedAnswers
from pytest_rageval.targets.native_contract import RECORD_FIELDS, ResponseReader, answer_in
from pytest_rageval.targets.native_shapes import FlatResponse
from pytest_rageval.targets.usual_answers import ASKING, asking, usual_line

LONGEST_LINE = 16 * 2**20
"""Longest line in bytes: the limit of one response over the network."""


BLOCK = 1 << 18
"""Bytes that are read at a time."""


class AnswersFile:
    """The answers of one system by name, and notes for the user. An answer is read when it is asked for."""

    def __init__(
        self, path: Path, file: str, system: str | None, records: Mapping[str, AnswerRecord], notes: tuple[str, ...]
    ) -> None:
        self.file = file
        self.system = system
        self.records = records
        self.notes = notes
        self._path = path
        # Kept open, so that answers come from the file that was checked, even if another one takes its name.
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._descriptor)
        self._state = self._present_state()
        self._block = 0, b""

    @classmethod
    def without_records(cls, checked: CheckedAnswers) -> AnswersFile:
        """Open a file that was checked before; raise SettingsError if it was changed since."""
        try:
            answers = cls(Path(checked.path), checked.file, checked.system, {}, checked.notes)
        except OSError as error:
            raise SettingsError(f"{checked.file} cannot be read: {error.strerror}") from None
        # Places of lines are offsets: in a changed file they would be parts of other answers.
        if answers._state != checked.state:
            raise SettingsError(f"{checked.file} was changed while it was used; run again")
        return answers

    def checked(self, name: str) -> CheckedAnswers:
        """Describe this file for another process; `name` is that of the target."""
        return CheckedAnswers(name, str(self._path.absolute()), self.file, self.system, self._state, self.notes)

    def _present_state(self) -> tuple[int, int]:
        now = os.fstat(self._descriptor)
        return now.st_size, now.st_mtime_ns

    def answer(self, record: AnswerRecord) -> Answer:
        """Read an answer; raise TargetError if the file was changed since it was checked."""
        if isinstance(record.text, str):
            return _answer_of(_LINES.checked(record.text))
        offset, length = record.text
        if not self._block[0] <= offset <= offset + length <= self._block[0] + len(self._block[1]):
            if self._present_state() != self._state:
                raise TargetError("invalid_response", f"{self.file} was changed while it was used; run again")
            # A call of the system for each answer would cost a third of reading it.
            self._block = offset, os.pread(self._descriptor, max(length, BLOCK), offset)
        start = offset - self._block[0]
        return _answer_of(_LINES.checked(self._block[1][start : start + length]))


def load_answers(
    path: Path,
    system: str | None = None,
    *,
    shown_as: str | None = None,
    max_bytes: int = LONGEST_LINE,
    most_rows: int | None = None,
) -> AnswersFile:
    """Read the answers of one system; a file with several needs `system`.

    Raises CaseError with every problem of the file. `shown_as` is its name in messages, `max_bytes` the longest line,
    `most_rows` the largest number of answers.
    """
    name = shown_as or path.name
    if path.suffix not in (".csv", ".jsonl"):
        raise CaseError(f"{name}: an answers file is .jsonl or .csv; `rageval answers convert` reads others")
    report = Report(name)
    reading = _Reading(path, report)
    lines = read_lines(path, report, max_bytes)
    if most_rows is not None:
        # Unreadable lines give no row, so the limit on rows would never stop a file of them.
        lines = _while_few_broken(lines, report, most_rows)
    is_table = path.suffix == ".csv"
    # Many small objects that all live on: the garbage collector would go through them again and again.
    with no_collection():
        for number, row in enumerate(_rows(lines, report, max_bytes, is_table=is_table)):
            if most_rows is not None and number >= most_rows:
                raise _too_many(report, most_rows)
            reading.take(row)
    return reading.finished(system)


def _rows(lines: Iterator[FileLine], report: Report, max_bytes: int, *, is_table: bool) -> Iterator[JsonRow | CsvRow]:
    if is_table:
        return csv_rows(lines, report, _CELLS, _NEEDED, max_bytes, naming=_known_names, others="text")
    return json_rows(lines, report, usual_line)


def _while_few_broken(lines: Iterator[FileLine], report: Report, most_rows: int) -> Iterator[FileLine]:
    """Yield rows until too many are unreadable, since each of them would become a message."""
    for line in lines:
        if report.unread >= most_rows:
            raise _too_many(report, most_rows)
        yield line


def _too_many(report: Report, most_rows: int) -> CaseError:
    return CaseError(f"{report.file}: more answers than the {most_rows:,} that are taken; split it")


@dataclass(frozen=True)
class _AnswerLine(FlatResponse):
    """The fields of a line: the answer, its case, its system and its origin."""

    id: Name | None = None
    question: str | None = None
    contexts: Json = None
    system: str | None = None
    model_name: str | None = None
    timestamp: Json = None
    meta: Mapping[str, Json] | None = None


_LINES = ResponseReader(_AnswerLine)
_LINE_KEYS = ("id", "question", "contexts", "system", "model_name", "timestamp", "meta")
KNOWN = RECORD_FIELDS | {*_LINE_KEYS}
"""Keys of a line that are read."""


class _Reading:
    """One pass over a file: its records by system and id, and its problems."""

    def __init__(self, path: Path, report: Report) -> None:
        self._path = path
        self._report = report
        self._systems: dict[str | None, dict[str, AnswerRecord]] = {}
        self._unknown: dict[str, int] = {}
        """Keys that are not read, by the line where each stands first."""

    def take(self, row: JsonRow | CsvRow) -> None:
        """Add one row, or report its problems."""
        # Only a line without renamed keys can be read again from its bytes in the file.
        is_as_written = isinstance(row, JsonRow) and row.record.keys() <= KNOWN
        if isinstance(row, JsonRow) and not is_as_written:
            names = _known_names([*row.record])
            row = row._replace(record=dict(zip(names, row.record.values(), strict=True)))
        try:
            system, record = _record(row, is_as_written)
        except Unsound as unsound:
            case_id = row.record.get("id")
            named = case_id if isinstance(case_id, str) else None
            self._report.add_findings(row.line, unsound.findings, named, row.column_finder().column)
            return
        records = self._systems.setdefault(system, {})
        if record.name in records:
            key = "question" if record.name.startswith(ASKING) else "id"
            written = record.name if key == "id" else record.question
            message = f"{key} {shown_value(written)} already has an answer at line {records[record.name].line}"
            self._report.add(row.line, row.column_finder().column((key,), False), message)
            return
        records[record.name] = record
        if not row.record.keys() <= KNOWN:
            for name in row.record.keys() - KNOWN:
                self._unknown.setdefault(name, row.line)

    def finished(self, system: str | None) -> AnswersFile:
        """Return the answers of the chosen system; raise CaseError if there are problems or no such system."""
        report = self._report
        named = sorted(name for name in self._systems if name is not None)
        if named and None in self._systems:
            first = min(record.line for record in self._systems[None].values())
            report.add(first, 1, "has no system, though other lines do; give it one")
        if not self._systems and not len(report):
            report.add_whole("holds no answers")
        elif not self._systems and report.unread and self._path.suffix == ".csv":
            report.add_whole("`rageval answers convert` reads tables of other names and separators")
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
        return AnswersFile(self._path, report.file, chosen, self._systems[chosen], tuple(self._notes()))

    def _notes(self) -> Iterator[str]:
        """Yield one note for each ignored key, with the known key that was probably meant."""
        if not self._unknown:
            return
        first_lines = sorted(self._unknown.items())
        named = [f"{name}{did_you_mean(name, KNOWN)} (line {line})" for name, line in first_lines]
        yield f"{self._report.file}: kept as metadata and not read: {listed(named)}"


def _record(row: JsonRow | CsvRow, is_as_written: bool) -> tuple[str | None, AnswerRecord]:
    """Return the system and the record of one line; one with other names keeps its answer under ours."""
    if isinstance(row, CsvRow):
        _complete(row)
    text: str | tuple[int, int]
    if isinstance(row, CsvRow) or not is_as_written:
        text = json.dumps(row.record)
    else:
        # Usually its place alone, from which it is read again as bytes; those are taken to have no key `extra`.
        is_by_place = bool(row.value) or '"extra"' not in row.text
        text = (row.start, len(row.text.encode())) if is_by_place else row.text
        if row.value is not None:
            system, name, question = row.value
            return system, AnswerRecord(name, row.line, question, text)
    line = _LINES.response(row.record, row.text if isinstance(row, JsonRow) and is_as_written else None)
    answer = _answer_of(line)
    if answer.text is None and answer.chunks is None and not _is_empty_on_purpose(row.record):
        raise invalid("holds neither 'answer' nor 'retrieved_chunks'")
    if line.id is None and not (line.question or "").strip():
        raise invalid("has no id, and no question to find its case by")
    name = line.id if line.id is not None else asking(line.question or "")
    return line.system, AnswerRecord(name, row.line, line.question, text)


def _answer_of(line: _AnswerLine) -> Answer:
    """Return the answer in a line; fields unknown to a record go to `meta`."""
    named = {"model_name": line.model_name, "timestamp": line.timestamp, "meta": line.meta}
    extra = {name: value for name, value in named.items() if value is not None}
    if others := {name: value for name, value in line.extra.items() if value is not None}:
        extra["meta"] = {**(line.meta or NOTHING), **others}
    answer = answer_in(line, extra)
    if line.contexts is None:
        return answer
    return replace(answer, chunks=_chunks_of(line.contexts, answer.chunks))


def _is_empty_on_purpose(record: Mapping[str, Json]) -> bool:
    """Return True if a line says that there is no answer, as with `"answer": null`."""
    keys = set(record)
    debug = record.get("debug")
    if isinstance(debug, dict):
        keys |= debug.keys()
    return not keys.isdisjoint(("answer", "retrieved_chunks", "contexts"))


def _chunks_of(contexts: Json, chunks: tuple[Chunk, ...] | None) -> tuple[Chunk, ...]:
    """Return the texts that an answer rests on as retrieved chunks."""
    texts = [contexts] if isinstance(contexts, str) else contexts
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise invalid(f"contexts is {describe(contexts)}, expected a text or a list of texts")
    if chunks is not None:
        raise invalid("holds both contexts and retrieved_chunks; keep one")
    return tuple([Chunk(text=text) for text in texts])


# ── CSV ───────────────────────────────────────────────────────────────────────────────────────────────────────

_CELLS: Mapping[str, Cell] = {
    **dict.fromkeys(RECORD_FIELDS, "json"),
    **dict.fromkeys(("answer", "abstain_reason", *_LINE_KEYS), "text"),
    "meta": "json",
    "abstained": "flag",
}
_PEOPLE = {QUESTION: "question", GIVEN: "answer", RETRIEVED: "contexts", CONTEXTS: "contexts", "id": "id"}


def _known_names(names: Sequence[str]) -> list[str]:
    """Return the names of columns or keys as they are read: those of people and other tools take ours, once each."""
    stripped = [name.strip() for name in names]
    taken = set(stripped)
    known = []
    for name in stripped:
        field = None if name in KNOWN else field_of(name, is_exact=True)
        if field == ANSWER and is_plain_answer(name):
            field = GIVEN
        ours = _PEOPLE.get(field or "", name)
        known.append(name if ours in taken else ours)
        taken.add(ours)
    return known


_NEEDED = (("id", "question"), ("answer", "retrieved_chunks", "contexts"))
"""Required columns: one of each group."""


def _complete(row: CsvRow) -> None:
    """Restore what a table's cell cannot express: a blank answer, or a list of contexts instead of one text."""
    record = row.record
    if "answer" in row.columns and "answer" not in record:
        if not record.get("abstained"):
            raise invalid("answer is empty; where the system declined, say so with abstained = true")
        # An empty cell is also how spreadsheets leave an answer out, so that only a stated abstention is a blank
        # answer.
        record["answer"] = ""
    if record.get("contexts", "").lstrip().startswith("["):
        try:
            record["contexts"] = parse(record["contexts"])
        except StrictJsonError as error:
            raise invalid(f"contexts: {error}") from None
