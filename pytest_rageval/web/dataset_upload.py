"""Uploaded files as cases: their first rows, their rows with the chosen fields, all problems by line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from pytest_rageval.cases.csv_rows import CsvRow, csv_rows
from pytest_rageval.cases.exchange.foreign_rows import columns_of, foreign_row, is_case
from pytest_rageval.cases.exchange.formats import format_of
from pytest_rageval.cases.exchange.reading import RowReading
from pytest_rageval.cases.exchange.row_files import rows_in
from pytest_rageval.cases.exchange.tables import RowReport
from pytest_rageval.cases.loading import MAX_LINE_BYTES, Partner, cases_of_rows
from pytest_rageval.errors import CaseError
from pytest_rageval.io.lines import FileLine, JsonRow, json_rows
from pytest_rageval.io.messages import MOST_OF_A_FILE, Findings, Report, shown_value
from pytest_rageval.io.messages import Path as Place
from pytest_rageval.model import EvalCase, Json
from pytest_rageval.text import cut
from pytest_rageval.views.spot_check import spot_check
from pytest_rageval.web.column_mapping import MappedColumn, mapped_record
from pytest_rageval.web.site import WebLimits
from pytest_rageval.web.tables import Part, check_yaml

MOST_COLUMNS = 1_000
MOST_BROKEN = 10_000
PREVIEWED, LOOKED_AT = 20, 200
"""The first rows: those that are shown, and those whose names are the columns of a file of JSON."""
_SHOWN = 300
"""Maximum characters of a cell in a preview."""
Row = JsonRow | CsvRow


class Look(NamedTuple):
    """The beginning of a file: its column names, and texts of the first rows.

    fields  the expressions of another tool's format, which needs no choice of columns; None for columns
    """

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    fields: Mapping[str, str] | None = None


# The steps of an import look at the same files again; its key holds path and format.
@lru_cache(maxsize=4)
def look(part: Part) -> Look:
    """Return the beginning of a file, or raise CaseError if it has too many columns."""
    rows = list(islice(_rows(part, Report(part.name)), LOOKED_AT))
    first = rows[0].record if rows else {}
    if not part.is_table and not is_case(first):
        tool = format_of(first)
        if tool is not None and (tool.fields or tool.name == "squad"):
            return Look(fields=tool.fields)
    names: dict[str, None] = {}
    for row in rows:
        names |= dict.fromkeys(row.columns if isinstance(row, CsvRow) else row.record)
    if len(names) > MOST_COLUMNS:
        raise CaseError(f"{part.name}: {len(names):,} columns, more than the {MOST_COLUMNS:,} that are taken")
    previewed = [_previewed(row, names) for row in rows[:PREVIEWED]]
    return Look([*names], previewed)


def _previewed(row: Row, names: Iterable[str]) -> list[str]:
    return [_cell_text(row.record.get(name)) for name in names]


def _cell_text(value: Json) -> str:
    if value is None:
        return ""
    return cut(value, _SHOWN) if isinstance(value, str) else shown_value(value, _SHOWN)


class DatasetReading(NamedTuple):
    """The result of reading an upload: the cases, one line per problem, and the number of cases by label format."""

    cases: Sequence[EvalCase]
    problems: tuple[str, ...]
    spellings: Mapping[tuple[str, ...], int]

    @property
    def spot_check(self) -> str:
        """Return the first case in a line, in which one sees what the columns were taken for."""
        return spot_check(self.cases)

    @property
    def labels_in_words(self) -> str:
        """Return the labels as `each with a reference answer`, or as counts: `12 with gold places, 3 with …`."""
        if len(self.spellings) == 1:
            return f"each {_label_words(next(iter(self.spellings)))}"
        return ", ".join(f"{number:,} {_label_words(names)}" for names, number in self.spellings.items())


_LABEL_WORDS = {
    "reference": "a reference answer",
    "anchors": "gold places in documents",
    "ids": "gold ids of documents",
    "layers": "labels of several layers",
    "canonical": "gold in rageval's own spelling",
}


def _label_words(names: Sequence[str]) -> str:
    if not names:
        return "without anything that an answer could be compared with"
    return "with " + " and ".join(_LABEL_WORDS[name] for name in names)


@lru_cache(maxsize=1)
def read_dataset(
    parts: tuple[Part, ...], columns: tuple[tuple[MappedColumn, ...], ...], limits: WebLimits
) -> DatasetReading:
    """Read a file of cases, or of questions and one of references, with the chosen fields of each. Store nothing.

    The last reading is kept, so that another look or the saving does not read the files again.
    """
    part, *references = parts
    chosen, *of_references = columns
    report = _report_of(part)
    partner: Partner | None = None
    for file, fields in zip(references, of_references, strict=True):
        report_of_file = _report_of(file)
        rows = _fitting_rows(_mapped_rows(file, report_of_file, fields), report_of_file, limits)
        partner = Partner(rows, report_of_file, report)
    rows = _fitting_rows(_mapped_rows(part, report, chosen), report, limits)
    loaded = cases_of_rows(part.path, rows, report, partner)
    return DatasetReading(loaded.cases, loaded.problems, loaded.spellings)


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


class _NumberedReport(Report):
    """Problems of a document, whose rows have numbers and no lines."""

    def add(self, line: int, column: int, message: str, case: str | None = None) -> None:  # noqa: ARG002
        whose = "" if case is None else f"case {shown_value(case)}: "
        if len(self) < MOST_OF_A_FILE:
            self.add_whole(f"row {line}: {whose}{message}")


def _report_of(part: Part) -> Report:
    return Report(part.name) if part.has_lines else _NumberedReport(part.name)


def _rows(part: Part, report: Report) -> Iterator[Row]:
    """Yield the rows of a file under its own names; report what cannot be read."""
    if part.is_table:
        lines = _until_broken(part.lines(report), report)
        separator = part.table.separator if part.table else ","
        yield from csv_rows(lines, report, {}, [], MAX_LINE_BYTES, _own_names, "text", separator)
    elif part.has_lines:
        yield from json_rows(_until_broken(part.lines(report), report), report)
    else:
        within = RowReport(part.name, has_lines=False)
        check_yaml(part, within)
        # Aliases and nesting are found in the events: loading such a document may fill the memory.
        is_safe = not len(within)
        number = 0
        for number, (_, record) in enumerate(rows_in(part.path, within) if is_safe else (), start=1):
            yield JsonRow(number, record, json.dumps(record))
        if not number and not len(within):
            within.add_whole("holds no case")
        report.include(within)


def _own_names(header: Sequence[str]) -> list[str]:
    """Return a name of its own for each column, also for those without one."""
    names: dict[str, None] = {}
    for position, written in enumerate(header, start=1):
        name = written.strip() or f"column {position}"
        names[f"{name} ({position})" if name in names else name] = None
    return [*names]


def _until_broken(lines: Iterable[FileLine], report: Report) -> Iterator[FileLine]:
    """Yield the lines of a file until too many are unreadable to fix them one by one."""
    for line in lines:
        if report.unread > MOST_BROKEN:
            report.add_unread(line[0], 1, f"more than {MOST_BROKEN:,} rows cannot be read: nothing below was looked at")
            return
        yield line


def _mapped_rows(part: Part, report: Report, columns: Sequence[MappedColumn]) -> Iterator[Row]:
    """Yield the rows as records of cases: by the format of another tool, or with the fields of their columns."""
    fields = look(part).fields
    names = [column.field for column in columns]
    if fields is not None:
        yield from _rows_of_format(part, report, fields)
        return
    for row in _rows(part, report):
        if isinstance(row, CsvRow):
            yield row._replace(record=mapped_record(row.record, columns, is_table=True), columns=names)
        else:
            yield row._replace(record=mapped_record(row.record, columns, is_table=False))


def _rows_of_format(part: Part, report: Report, fields: Mapping[str, str]) -> Iterator[Row]:
    """Yield the rows of another tool's file; what its members mean is decided once for all of them."""
    folder = part.path.parent
    rows = list(_rows(part, report))
    taken = [foreign_row(row.record, folder, may_be_own=not fields) for row in rows]
    decided = columns_of(taken, fields)
    for row, each in zip(rows, taken, strict=True):
        yield row._replace(record=RowReading(each, fields, folder, decided).case)


def _fitting_rows(rows: Iterable[Row], report: Report, limits: WebLimits) -> Iterator[Row]:
    """Yield the rows with trimmed texts. Report and skip rows with a text that is too long."""
    for number, row in enumerate(rows, start=1):
        if number > limits.upload_rows:
            report.add_unread(row.line, 1, f"the file has more than {limits.upload_rows:,} rows; split it")
            return
        record = trimmed(row.record)
        findings = Findings()
        for path, message in long_texts(record, limits.field_characters):
            findings.add(path, message)
        if findings:
            case_id = record.get("id")
            named = case_id if isinstance(case_id, str) else None
            report.add_findings(row.line, findings, named, row.column_finder().column)
            report.unread += 1
            continue
        yield row._replace(record=record)


def trimmed(record: Mapping[str, Json]) -> dict[str, Json]:
    """Return a record without white space around its texts. Metadata stay unchanged."""
    return {name: value if name == "metadata" else _trimmed(value) for name, value in record.items()}


def _trimmed(value: Json) -> Json:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return [_trimmed(item) for item in value]
    if isinstance(value, dict):
        return {name: _trimmed(item) for name, item in value.items()}
    return value


def long_texts(record: Json, most: int, path: Place = ()) -> Iterator[tuple[Place, str]]:
    """Yield the path and the problem of each text that is too long."""
    if isinstance(record, str):
        if len(record) > most:
            yield path, f"has {len(record):,} characters, expected at most {most:,}; shorten it"
    elif isinstance(record, dict):
        for name, item in record.items():
            yield from long_texts(item, most, (*path, name))
    elif isinstance(record, list):
        for position, item in enumerate(record):
            yield from long_texts(item, most, (*path, position))
