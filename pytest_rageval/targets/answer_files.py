"""Files of uploaded answers: CSV or JSONL, one answer record with `id` or `question` per line.

All problems of a file are reported at once, each with `file:line:column`.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

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
from pytest_rageval.language.words import fold
from pytest_rageval.model import NOTHING, Answer, AskRequest, Chunk, EvalCase, Json
from pytest_rageval.targets.native_contract import RECORD_FIELDS, FlatResponse, ResponseReader, answer_in
from pytest_rageval.targets.target import BaseTarget, Surroundings
from pytest_rageval.targets.usual_answers import ASKING, asking, usual_line

LONGEST_LINE = 16 * 2**20
"""Longest line in bytes: the limit of one response over the network."""


class AnswerRecord(NamedTuple):
    """One line. `name` is its id as written, a case's id or its full key; without an id it is `asking(question)`."""

    name: str
    line: int
    question: str | None
    text: str | tuple[int, int]
    """The answer as JSON; without a key `extra` in it the place of its line in the file: offset and length in bytes."""


BLOCK = 1 << 18
"""Bytes that are read at a time."""


class AnswersFile:
    """The answers of one system by name, and notes for the user. An answer is read when it is asked for."""

    def __init__(
        self, path: Path, file: str, system: str | None, records: Mapping[str, AnswerRecord], notes: tuple[str, ...]
    ) -> None:
        self.file, self.system, self.records, self.notes = file, system, records, notes
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._descriptor)
        self._state = self._present_state()
        self._block = 0, b""

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
        lines = _while_few_broken(lines, report, most_rows)
    rows: Iterator[JsonRow | CsvRow] = (
        json_rows(lines, report, usual_line)
        if path.suffix == ".jsonl"
        else csv_rows(lines, report, _CELLS, _NEEDED, max_bytes, naming=_known_names, others="text")
    )
    with no_collection():
        for number, row in enumerate(rows):
            if most_rows is not None and number >= most_rows:
                raise _too_many(report, most_rows)
            reading.take(row)
    return reading.finished(system)


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
        self._path, self._report = path, report
        self._systems: dict[str | None, dict[str, AnswerRecord]] = {}
        self._unknown: dict[str, int] = {}
        """Keys that are not read, by the line where each stands first."""

    def take(self, row: JsonRow | CsvRow) -> None:
        """Add one row, or report its problems."""
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
        named = [f"{name}{did_you_mean(name, KNOWN)} (line {line})" for name, line in sorted(self._unknown.items())]
        if named:
            yield f"{self._report.file}: kept as metadata and not read: {listed(named)}"


def _record(row: JsonRow | CsvRow, is_as_written: bool) -> tuple[str | None, AnswerRecord]:
    """Return the system and the record of one line; one with other names keeps its answer under ours."""
    if isinstance(row, CsvRow):
        _complete(row)
    if isinstance(row, CsvRow) or not is_as_written:
        text: str | tuple[int, int] = json.dumps(row.record)
    else:
        text = (row.start, len(row.text.encode())) if row.value or '"extra"' not in row.text else row.text
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
    return answer if line.contexts is None else replace(answer, chunks=_chunks_of(line.contexts, answer.chunks))


def _is_empty_on_purpose(record: Mapping[str, Json]) -> bool:
    """Return True if a line says that there is no answer, as with `"answer": null`."""
    debug = record.get("debug")
    return bool(
        {"answer", "retrieved_chunks", "contexts"} & {*record, *(debug if isinstance(debug, dict) else NOTHING)}
    )


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
    taken, known = {name.strip() for name in names}, []
    for name in map(str.strip, names):
        field = None if name in KNOWN else field_of(name, is_exact=True)
        ours = _PEOPLE.get(GIVEN if field == ANSWER and is_plain_answer(name) else field or "", name)
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
        record["answer"] = ""
    if record.get("contexts", "").lstrip().startswith("["):
        try:
            record["contexts"] = parse(record["contexts"])
        except StrictJsonError as error:
            raise invalid(f"contexts: {error}") from None


# ── the target ──────────────────────────────────────────────────────────────────────────────────────────────────


def from_spec(spec: str, given: Surroundings) -> AnswersTarget | None:
    """Make the target of `answers:FILE#SYSTEM`; the file's own name may contain `#`."""
    rest = spec.partition(":")[2]
    name, hash_sign, system = (rest, "", "") if (given.root / rest).is_file() else rest.rpartition("#")
    path = given.root / (name if hash_sign else rest)
    if not rest:
        return None
    if not path.is_file():
        raise SettingsError(f"target answers:{rest}: there is no file {path}")
    answers = load_answers(
        path, system or None, shown_as=name if hash_sign else rest, max_bytes=given.connection.max_bytes
    )
    return AnswersTarget(answers, spec)


class AnswersTarget(BaseTarget):
    """Looks up the answer of a case by its full key (`path::id`), its id, or its question."""

    is_called = False
    """Nothing is asked, so there is nothing to time."""
    answers_at_once = True

    def __init__(self, answers: AnswersFile, name: str | None = None) -> None:
        of_system = f"#{answers.system}" if answers.system is not None else ""
        self.name = name or f"answers:{answers.file}{of_system}"
        self.notes = list(answers.notes)
        self._answers = answers

    async def ask(self, request: AskRequest) -> Answer:
        """Return the answer to the case with this key; TargetError if the file has none or its question differs."""
        name = self._name(request.case_key, request.question)
        if name is None:
            raise TargetError("missing", f"{self._answers.file}: no answer for {request.case_key}")
        record = self._answers.records[name]
        if record.question is not None and fold(record.question) != fold(request.question):
            raise TargetError(
                "invalid_response",
                f"{self._answers.file}:{record.line}: question is {shown_value(record.question)}, but the case asks "
                f"{shown_value(request.question)}; answer that one, or leave question out",
            )
        return self._answers.answer(record)

    async def aclose(self) -> None:
        """Do nothing: the target holds no resources."""

    def check_coverage(self, cases: Sequence[EvalCase], *, is_partial_allowed: bool = False) -> list[str]:
        """Return all mismatches between the file and the cases, one line each.

        These are cases without an answer (unless `is_partial_allowed`), ids and questions that no case or several cases
        have, and cases with two answers.
        """
        by_name: dict[str, list[str]] = {}
        for case in cases:
            for name in (case.key, case.id, asking(case.question)):
                by_name.setdefault(name, []).append(case.key)
        answered: dict[str, int] = {}
        problems = []
        for name, record in self._answers.records.items():
            line, keys = record.line, by_name.get(name, [])
            problem = _mismatch(name, keys, by_name)
            if not problem and keys[0] in answered:
                problem = f"{keys[0]} already has an answer at line {answered[keys[0]]}"
            if problem:
                problems.append(f"{self._answers.file}:{line}: {problem}")
            else:
                answered[keys[0]] = line
        if not is_partial_allowed:
            missing = (case.key.removeprefix("::") for case in cases if self._name(case.key, case.question) is None)
            problems += [f"{self._answers.file}: no answer for {name}" for name in missing]
        return problems

    def of(self, case: EvalCase) -> Answer | None:
        """Return the answer to a case; None if the file has none."""
        name = self._name(case.key, case.question)
        return None if name is None else self._answers.answer(self._answers.records[name])

    def _name(self, case_key: str, question: str) -> str | None:
        """Return the name of the answer to a case."""
        records = self._answers.records
        for name in (case_key, case_key.partition("::")[2]):
            if name in records:
                return name
        by_question = asking(question)
        return by_question if by_question in records else None


def _mismatch(name: str, keys: Sequence[str], names: Iterable[str]) -> str:
    """Describe why an answer of this name does not belong to exactly one case; empty if it does."""
    is_question = name.startswith(ASKING)
    quoted = shown_value(name.removeprefix(ASKING))
    if not keys and is_question:
        return f"no case asks the question {quoted}"
    if not keys:
        known = (other for other in names if not other.startswith(ASKING))
        return f"no case has the id {quoted}{did_you_mean(name, known)}"
    if len({*keys}) < 2:
        return ""
    several = f"{len(keys)} cases ask the question {quoted}; give it an id:"
    return f"{several if is_question else f'id {quoted} stands in {len(keys)} case files; write'} {' or '.join(keys)}"
