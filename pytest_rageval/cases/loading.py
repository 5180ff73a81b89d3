"""Case files, read strictly as streams; all problems of a file are reported at once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from pytest_rageval.cases.conversations import cases_from_record
from pytest_rageval.cases.conversion import Converted, usual_case
from pytest_rageval.cases.discovery import (
    NO_CASES,
    REFERENCES,
    SUFFIXES,
    dead_end,
    has_references,
    is_reference_file,
)
from pytest_rageval.cases.keys import CELLS, CONVERSATION, Cell, Label
from pytest_rageval.io.collector import no_collection
from pytest_rageval.io.lines import JsonRow, json_rows, lines_of_stream, read_lines
from pytest_rageval.io.messages import Finding, Findings, Report, Unsound, invalid
from pytest_rageval.io.records import Name, RecordReader
from pytest_rageval.io.strict_json import parse
from pytest_rageval.model import EvalCase, Json, Source
from pytest_rageval.model.case_fields import OTHER_DESCRIPTIVE_NAMES

if TYPE_CHECKING:
    from pytest_rageval.cases.csv_rows import CsvRow

MAX_LINE_BYTES = 4 * 2**20
"""The longest line or CSV row in bytes, unless the caller sets another limit."""


@dataclass(frozen=True, slots=True)
class CaseFile:
    """The content of a file. `problems` are whole lines (`file:line:column: …`); a record with a problem gives no case.

    path       as given
    spellings  number of cases by combination of formats, e.g. ('anchors', 'layers'); () for a bare question
    """

    path: Path
    cases: Sequence[EvalCase]
    problems: tuple[str, ...]
    spellings: Mapping[tuple[str, ...], int] = field(default_factory=dict)


def load_file(path: Path, root: Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> CaseFile:
    """Read a case file, as CSV if its suffix says so, else as JSONL. Report bad content or a missing file; never raise.

    A file `X.questions.csv` or `.jsonl` is joined with `X.references.csv` or `.jsonl` in its folder.
    `source.file` is the path relative to `root`, with slashes; the given path if the file is elsewhere.
    """
    report = Report(shown_name(path, root))
    if is_reference_file(path):
        return CaseFile(path, (), ())  # read together with its questions, which report its problems
    if (why := dead_end(path)) is not None:
        report.add_whole(why)
        return CaseFile(path, (), report.problems)
    with no_collection():
        partner = _find_partner(path, report, root, max_line_bytes)
    read = _usual_case(report.file) if partner is None else _in_full
    return cases_of_rows(path, rows_of(path, report, max_line_bytes, read=read), report, partner)


def load_stream(stream: BinaryIO, name: str, *, max_line_bytes: int) -> CaseFile:
    """Read lines of JSON that are in no file, with the checks and messages of a case file of this name."""
    report = Report(name)
    lines = lines_of_stream(stream, report, max_line_bytes)
    return cases_of_rows(Path(name), json_rows(lines, report, _usual_case(name)), report)


def _in_full(_text: str, _number: int) -> None:
    """Read no line at once: all are joined with their references."""


def _usual_case(file: str) -> Callable[[str, int], Converted | None]:
    return lambda text, number: usual_case(text, Source(file, number))


def cases_of_rows(
    path: Path, rows: Iterable[JsonRow | CsvRow], report: Report, partner: Partner | None = None
) -> CaseFile:
    """Return the cases of a file's rows, joined with references if there is a partner, and all problems."""
    with no_collection():
        converted = list(_converted_rows(rows, report, partner))
    of_references = partner.problems() if partner else ()
    if not converted and not of_references and not len(report):
        report.add(1, 1, "the file holds no case")
    cases = tuple([case for case, _ in converted])
    spellings = Counter([spelling for _, spelling in converted])
    return CaseFile(path, cases, (*report.problems, *of_references), spellings)


def looks_like_cases(path: Path) -> bool:
    """Return True if the first record of a .jsonl or .csv file is a valid case. Reads no further."""
    if path.suffix.lower() not in (".jsonl", ".csv") or any(mark in path.name for mark in NO_CASES):
        return False
    report = Report(path.name)
    row = next(rows_of(path, report, MAX_LINE_BYTES), None)
    if row is None or len(report):
        return False
    try:
        cases_from_record(row.record, Source(path.name, row.line))
    except Unsound:
        return False
    return True


def rows_of(
    path: Path,
    report: Report,
    max_bytes: int,
    columns: Mapping[str, Cell] = CELLS,
    needed: Sequence[Sequence[str]] = (("question", "query", *CONVERSATION),),
    read: Callable[[str, int], Converted | None] = _in_full,
) -> Iterator[JsonRow] | Iterator[CsvRow]:
    """Return the rows of a file, as CSV if its suffix says so; report the others. `read`: as for `json_rows`."""
    lines = read_lines(path, report, max_bytes)
    if path.suffix.lower() == ".csv":
        from pytest_rageval.cases.csv_rows import csv_rows  # here, because most cases are lines of JSON

        return _without_words_for_nothing(csv_rows(lines, report, columns, needed, max_bytes))
    return json_rows(lines, report, read)


def _without_words_for_nothing(rows: Iterable[CsvRow]) -> Iterator[CsvRow]:
    """Leave out cells such as `nan` and `N/A`, which pandas and spreadsheets write for an empty cell; an id is one."""
    from pytest_rageval.cases.exchange.printed import is_nothing

    for row in rows:
        texts = {name: cell for name, cell in row.record.items() if name != "id" and isinstance(cell, str)}
        nothing = [name for name, cell in texts.items() if is_nothing(cell)]
        if nothing:
            row = row._replace(record={name: cell for name, cell in row.record.items() if name not in nothing})
        yield row


def _converted_rows(rows: Iterable[JsonRow | CsvRow], report: Report, partner: Partner | None) -> Iterator[Converted]:
    """Yield the cases of the valid rows; report the others."""
    lines_by_id: dict[str, int] = {}
    for row in rows:
        if isinstance(row, JsonRow) and row.value is not None:
            usual: Converted = row.value
            if usual[0].id not in lines_by_id:
                lines_by_id[usual[0].id] = row.line
                yield usual
                continue
            # Read once more, in full: the message about the double needs the record.
            row = row._replace(record=parse(row.text), value=None)
        converted: list[Converted] = []
        problems: list[Findings] = []
        is_blank = _has_blank_reference(row)
        if is_blank:
            row = row._replace(record={name: cell for name, cell in row.record.items() if name != "reference"})
        if partner is not None:
            try:
                partner.join(row.record)
            except Unsound as unsound:
                problems.append(unsound.findings)
        elif _lacks_reference(row, is_blank=is_blank):
            problems.append(Findings(Finding(("reference",), MISSING)))
        try:
            text = row.text if partner is None and isinstance(row, JsonRow) and not is_blank else None
            converted = cases_from_record(row.record, Source(report.file, row.line), text)
        except Unsound as unsound:
            problems.append(unsound.findings)
        written = row.record.get("id")
        line_id = written if isinstance(written, str) else None
        if problems:
            for findings in problems:
                report.add_findings(row.line, findings, line_id, row.column_finder().column)
            ids = [line_id]
        else:
            # A conversation takes its own id too: that of a case beside it would select both.
            ids = [case.conversation or case.id for case, _ in converted[:1]]
            ids += [case.id for case, _ in converted if case.turn is not None]
        taken = [case_id for case_id in ids if case_id is not None and case_id in lines_by_id]
        if taken:
            report.add(row.line, 1, _used_at(lines_by_id[taken[0]], row.record), taken[0])
            continue
        lines_by_id |= {case_id: row.line for case_id in ids if case_id is not None}
        if not problems:
            yield from converted


_OF_A_REFERENCE_ROW = frozenset(
    {
        "id", "question", "tag", "tags", "contexts", *OTHER_DESCRIPTIVE_NAMES, "vaults", "folders", "history",
        "metadata", "pass_rule",
    }
)  # fmt: skip
"""Keys beside which a blank reference is an answer that was forgotten; a category may say that there is none."""
MISSING = "is missing; write it, or say that the case has no answer with answerable = false"


def _has_blank_reference(row: JsonRow | CsvRow) -> bool:
    """Return True for white space as a reference in JSON; a table has no value for a blank cell."""
    written = row.record.get("reference")
    return isinstance(written, str) and not written.strip()


def _lacks_reference(row: JsonRow | CsvRow, *, is_blank: bool) -> bool:
    """Return True for a row with a blank reference and no other label."""
    is_empty_cell = not isinstance(row, JsonRow) and "reference" in row.columns and "reference" not in row.record
    return (is_blank or is_empty_cell) and row.record.keys() <= _OF_A_REFERENCE_ROW


def _used_at(line: int, record: Mapping[str, Json]) -> str:
    if record.get("id") is None:
        return f"an equal row without id stands at line {line}; give them ids, or remove one"
    return f"id already used at line {line}; ids are unique in a file"


def shown_name(path: Path, root: Path) -> str:
    """Return the file's name in messages, keys and node ids; bytes that are not UTF-8 are escaped."""
    name = path.as_posix()
    # A link keeps its own name if that is inside; else the real paths may be, as with a linked project.
    for absolute in (os.path.abspath, os.path.realpath):
        inner = Path(absolute(path))
        outer = Path(absolute(root))
        if inner.is_relative_to(outer):
            name = inner.relative_to(outer).as_posix()
            break
    return path_text(name)


def path_text(path: Path | str) -> str:
    """Return a path that can be written: bytes that are not UTF-8 are escaped."""
    name = path if isinstance(path, str) else path.as_posix()
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


# ── questions and references in two files, joined on id ────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Reference:
    """A line of a file of references."""

    id: Name | None = None
    reference: Label | None = None


_REFERENCES = RecordReader[_Reference](_Reference)
_CELLS: Mapping[str, Cell] = {"id": "text", "reference": "text"}


def _find_partner(questions: Path, report: Report, root: Path, max_bytes: int) -> Partner | None:
    """Read the references of a file `X.questions.csv` or `X.questions.jsonl`; return None for other names.

    Also return None, and report it, if there is no such file or more than one; `questions.csv` itself needs none.
    """
    start, dot, _ = questions.name.rpartition("questions.")
    if not dot or not (start == "" or start.endswith(".")) or questions.suffix not in SUFFIXES:
        return None
    beside = [questions.with_name(f"{start}{name}{suffix}") for name in REFERENCES for suffix in SUFFIXES]
    there = [path for path in beside if path.exists() and (_is_named_so(path) or has_references(path))]
    if not there and start:
        names = " or ".join(path.name for path in beside if _is_named_so(path))
        report.add_whole(f"needs its references beside it, in {names}; or give the file another name")
    if len(there) > 1:
        report.add_whole(f"both {' and '.join(path.name for path in there)} stand beside it; keep one")
    if len(there) != 1:
        return None
    references = Report(shown_name(there[0], root))
    rows = rows_of(there[0], references, max_bytes, _CELLS, [("id",), ("reference",)])
    return Partner(rows, references, report)


def _is_named_so(path: Path) -> bool:
    """Return True for `X.references.csv` or `.jsonl`; a file of answers may be a system's output."""
    return path.name.endswith(tuple(f".references{suffix}" for suffix in SUFFIXES))


class Partner:
    """The references of a file of questions, by id."""

    def __init__(self, rows: Iterable[JsonRow | CsvRow], report: Report, of_questions: Report) -> None:
        self._report = report
        self._of_questions = of_questions
        self._lines: dict[str, int] = {}
        self._references: dict[str, Json] = {}
        self._asked: set[str] = set()
        for row in rows:
            self._take(row)

    def join(self, record: dict[str, Json]) -> None:
        """Add the reference to a question's record; raise Unsound if there is none or a conflict."""
        case_id = record.get("id")
        if case_id is None:
            raise invalid(f"id is missing; it joins the question with its reference in {self._report.file}")
        if not isinstance(case_id, str):
            return  # the question reports it
        self._asked.add(case_id)
        if record.get("reference") is not None:
            raise invalid(f"reference belongs into {self._report.file}; leave it out here")
        if case_id in self._lines:
            record["reference"] = self._references[case_id]
        # The reference may stand in a line that could not be read, which is reported itself.
        elif not self._report.unread:
            raise invalid(f"id has no reference in {self._report.file}")

    def problems(self) -> tuple[str, ...]:
        """Return all problems of the references; call it after all questions are joined."""
        # As above: a question that could not be read may have this id.
        if not self._of_questions.unread:
            for case_id, line in self._lines.items():
                if case_id not in self._asked:
                    self._report.add(line, 1, f"no question has this id in {self._of_questions.file}", case_id)
        return self._report.problems

    def _take(self, row: JsonRow | CsvRow) -> None:
        findings = Findings()
        try:
            _REFERENCES.read(row.record)
        except Unsound as unsound:
            findings = unsound.findings
        reference = row.record.get("reference")
        if reference is None or (isinstance(reference, str) and not reference.strip()):
            findings.add((), "reference is missing")
        case_id = row.record.get("id")
        if case_id is None:
            findings.add((), "id is missing")
        elif isinstance(case_id, str) and case_id in self._lines:
            findings.add((), f"id already used at line {self._lines[case_id]}; ids are unique in a file")
        known_id = case_id if isinstance(case_id, str) else None
        if findings:
            self._report.add_findings(row.line, findings, known_id, row.column_finder().column)
        if known_id is None:
            self._report.unread += 1
        elif known_id not in self._lines:
            self._lines[known_id] = row.line
            self._references[known_id] = row.record.get("reference") if not findings else None
