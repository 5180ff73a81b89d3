"""Questions in one file and references in another, joined on id; what stands in one of them only is a problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_rageval.cases.csv_rows import CsvRow, csv_rows
from pytest_rageval.cases.discovery import REFERENCES, SUFFIXES, holds_references
from pytest_rageval.cases.keys import Cell, Label
from pytest_rageval.io.expected import known_keys
from pytest_rageval.io.json_lines import JsonRow, json_rows
from pytest_rageval.io.lines import read_lines
from pytest_rageval.io.messages import Findings, Report, Unsound, bad
from pytest_rageval.io.records import Name, RecordReader
from pytest_rageval.model import Json


@dataclass(frozen=True, slots=True)
class _Reference:
    """A line of a file of references."""

    id: Name | None = None
    reference: Label | None = None


_REFERENCES = RecordReader[_Reference](_Reference)
_CELLS: Mapping[str, Cell] = dict.fromkeys(known_keys(_Reference), "text")


def find_partner(questions: Path, report: Report, name: Callable[[Path], str], max_bytes: int) -> Partner | None:
    """The references that belong to a file `X.questions.csv` or `X.questions.jsonl`, read; None for other names.

    None too, and a problem, if there is no such file, or more than one. A file called `questions.csv` alone may do
    without.
    """
    start, dot, _ = questions.name.rpartition("questions.")
    if not dot or not (start == "" or start.endswith(".")) or questions.suffix not in SUFFIXES:
        return None
    beside = [questions.with_name(f"{start}{name}{suffix}") for name in REFERENCES for suffix in SUFFIXES]
    there = [path for path in beside if path.exists() and (_is_named_so(path) or holds_references(path))]
    if not there and start:
        names = " or ".join(path.name for path in beside if _is_named_so(path))
        report.add_whole(f"needs its references beside it, in {names}; or give the file another name")
    if len(there) > 1:
        report.add_whole(f"both {' and '.join(path.name for path in there)} stand beside it; keep one")
    if len(there) != 1:
        return None
    references = Report(name(there[0]))
    return Partner(_reference_rows(there[0], references, max_bytes), references, report)


def _reference_rows(path: Path, report: Report, max_bytes: int) -> Iterator[JsonRow] | Iterator[CsvRow]:
    """The rows of a file of `id` and `reference`."""
    lines = read_lines(path, report, max_bytes)
    if path.suffix.lower() == ".csv":
        return csv_rows(lines, report, _CELLS, [("id",), ("reference",)], max_bytes)
    return json_rows(lines, report)


def _is_named_so(path: Path) -> bool:
    """Is this `X.references.csv` or `.jsonl`, which holds nothing else? Answers may be those of a system."""
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
        """Put its reference into a question's record; Unsound says why that cannot be."""
        case_id = record.get("id")
        if case_id is None:
            raise bad(f"id is missing; it joins the question with its reference in {self._report.file}")
        if not isinstance(case_id, str):
            return  # the question's own problem
        self._asked.add(case_id)
        if record.get("reference") is not None:
            raise bad(f"reference belongs into {self._report.file}; leave it out here")
        if case_id in self._lines:
            record["reference"] = self._references[case_id]
        elif not self._report.unread:
            raise bad(f"id has no reference in {self._report.file}")

    def problems(self) -> tuple[str, ...]:
        """All that is wrong with the references; to be asked when all questions have been joined."""
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
