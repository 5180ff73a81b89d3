"""Records of a CSV file. The header gives the keys; a cell is text, a flag or JSON by its key, or absent if empty."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from pytest_rageval.cases.keys import CONVERSATION, Cell
from pytest_rageval.cases.names import column_hint, field_of
from pytest_rageval.io.expected import FLAG, flag_of
from pytest_rageval.io.lines import FileLine
from pytest_rageval.io.messages import Path, Report, shown_value
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.io.suggestions import KEY_CUTOFF, suggestion
from pytest_rageval.model import Json


class CsvRow(NamedTuple):
    """One record with its first line and its text."""

    line: int
    record: dict[str, Json]
    columns: Sequence[str]
    text: str
    separator: str = ","

    def column_finder(self) -> CsvRow:
        """Return the object that finds cells: the row itself."""
        return self

    def column(self, path: Path, at_key: bool) -> int:  # noqa: ARG002 because both kinds of rows share the signature
        """Return the 1-based column, in characters, of the cell of this path; 1 if it is on a later line."""
        if not path or path[0] not in self.columns:
            return 1
        return cell_column(self.text, self.columns.index(str(path[0])), self.separator)


Naming = Callable[[Sequence[str]], list[str]]
"""Maps the cells of a header to the names that select the columns' types."""


def own_names(header: Sequence[str]) -> list[str]:
    """Return the names without surrounding white space."""
    return [name.strip() for name in header]


def csv_rows(
    lines: Iterator[FileLine],
    report: Report,
    columns: Mapping[str, Cell],
    needed: Sequence[Sequence[str]],
    max_bytes: int,
    naming: Naming = own_names,
    others: Cell | None = None,
    separator: str = ",",
) -> Iterator[CsvRow]:
    """Yield the records of a CSV file with a header. An open or misplaced quote ends the reading and is reported.

    columns  the type of each known column's cells
    needed   groups of names; the header must have one of each group
    naming   maps the header to column names
    others   the type of other columns' cells; None if there may be none
    """
    with cells_up_to(max_bytes):
        table = _Table(lines, report, max_bytes, separator)
        try:
            header = table.next_row()
            if header is None or not _is_separated(header, table):
                return
            names = naming(header)
            if not _is_header(names, table, columns, needed, may_have_others=others is not None):
                return
            while (cells := table.next_row()) is not None:
                if not table.is_sound or not any(cell and not cell.isspace() for cell in cells):
                    continue  # reported already, or a blank line, as spreadsheets write them
                if len(cells) != len(names):
                    expected = f"expected {len(names)} ({', '.join(names)[:200]})"
                    problem = f"the row has {_cell_count(len(cells))}, {expected}"
                    report.add_unread(table.start, 1, f"{problem}; quote cells that hold commas or line breaks")
                    continue
                if cells == header:
                    problem = "repeats the header, as two joined files have it; remove the row"
                    report.add_unread(table.start, 1, problem)
                    continue
                record = _record(names, cells, table, [columns.get(name, others) for name in names])
                if record is not None:
                    yield CsvRow(table.start, record, names, table.text, separator)
        finally:
            table.close()


def _cell_count(number: int) -> str:
    return "1 cell" if number == 1 else f"{number} cells"


class _Table:
    """The rows of a CSV text, each with its first line and its text."""

    def __init__(self, lines: Iterator[FileLine], report: Report, max_bytes: int, separator: str) -> None:
        self.report = report
        self.separator = separator
        self.start = 0
        self._last = 0
        self.is_sound = True
        self._lines = lines
        self._max = max_bytes
        self._buffer: list[str] = []
        self._size = 0
        # Strict: else a stray quote would join cells or rows without a word.
        self._reader = csv.reader(self._texts(), delimiter=separator, strict=True)

    @property
    def text(self) -> str:
        """Return the text of the current row."""
        return "".join(self._buffer)

    def close(self) -> None:
        """Let go of the file: the reader and this table refer to each other, and would keep it open for a while."""
        del self._reader

    def next_row(self) -> list[str] | None:
        """Return the next row that is not empty; None at the end or if the rest is unreadable."""
        while True:
            self._buffer.clear()
            self._size = 0
            self.is_sound = True
            self.start = self._last + 1
            try:
                row = next(self._reader)
            except StopIteration:
                return None
            except _TooLongError as error:
                self.report.add_unread(self.start, 1, f"{error}; the rest of the file was not read")
                return None
            except csv.Error as error:
                self.report.add_unread(self.start, 1, f"{_reworded(error)}; the rest of the file was not read")
                return None
            if row:
                return row

    def _texts(self) -> Iterator[str]:
        for number, text, is_sound, _ in self._lines:
            self._last = number
            if not text:
                raise _TooLongError("a quote may be open in the long line")
            if "\0" in text:
                self.report.add_unread(
                    number, text.index("\0") + 1, "holds a NUL character; save the file as UTF-8 text"
                )
                is_sound = False
            self.is_sound = self.is_sound and is_sound
            self._buffer.append(text)
            self._size += len(text)
            if self._size > self._max:
                raise _TooLongError(f"the row is longer than {self._max:,} bytes (is a quote left open?)")
            yield text


class _TooLongError(Exception):
    pass


@contextmanager
def cells_up_to(size: int) -> Iterator[None]:
    """Allow cells of this size. The csv module's limit is global to the process: never lower another's value."""
    before = csv.field_size_limit()
    csv.field_size_limit(max(before, size))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _reworded(error: csv.Error) -> str:
    message = str(error)
    if "unexpected end of data" in message:
        return "the row has a quote that is never closed"
    if "expected after" in message:
        return 'a closing quote is followed by text; double the quotes inside a cell ("")'
    if "new-line character" in message:
        return "a line ends with CR alone; end lines with LF or CRLF"
    return f"not valid CSV: {message}"


# ── the header ────────────────────────────────────────────────────────────────────────────────────────────────


def _is_separated(header: Sequence[str], table: _Table) -> bool:
    """Return True unless the header is separated by semicolons or tabs, or is Excel's `sep=;`, which is reported."""
    if header[0].strip().lower().startswith("sep="):
        problem = "is Excel's line about the separator, not the header; delete it, and separate cells by commas"
        table.report.add_unread(table.start, 1, problem)
        return False
    for mark, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and mark in header[0] and mark != table.separator:
            table.report.add_unread(table.start, 1, f"the header is separated by {word}; separate cells by commas")
            return False
    return True


def _is_header(
    names: Sequence[str],
    table: _Table,
    columns: Mapping[str, Cell],
    needed: Sequence[Sequence[str]],
    *,
    may_have_others: bool,
) -> bool:
    """Return True if the header names usable columns; report every reason if not."""
    report = table.report
    line = table.start
    before = len(report)
    # Bounded: each name is compared with the names of all earlier columns.
    for position, name in enumerate(names[:200]):
        if not name:
            report.add_unread(line, 1, f"column {position + 1} of the header has no name")
        elif name not in columns and not may_have_others:
            meaning = column_hint(name)
            close = None if meaning else suggestion(name, columns, cutoff=KEY_CUTOFF)
            remedy = f"did you mean {close!r}?" if close else meaning or "the first row must name the columns"
            report.add_unread(line, 1, f"{shown_value(name)} is not a known column; {remedy}")
        elif name in names[:position]:
            report.add_unread(line, 1, f"column {shown_value(name)} stands twice in the header")
    meant: set[str | None] = {*names}
    if not may_have_others:  # others may have meant anything
        meant |= {suggestion(name, columns, cutoff=KEY_CUTOFF) for name in names[:200]}
        meant |= {field_of(name, is_exact=True) for name in names}
    for choices in needed:
        if meant.isdisjoint(choices):
            usual = [name for name in choices if name not in CONVERSATION]
            report.add_unread(line, 1, f"the header has no column {' or '.join(map(repr, usual))}")
    return len(report) == before


# ── the cells ─────────────────────────────────────────────────────────────────────────────────────────────────


def _record(
    names: Sequence[str], cells: Sequence[str], table: _Table, kinds: Sequence[Cell | None]
) -> dict[str, Json] | None:
    """Return the non-empty cells by column; None if one of them cannot be read."""
    record: dict[str, Json] = {}
    is_sound = True
    for position, (name, cell, written) in enumerate(zip(names, cells, kinds, strict=True)):
        if not cell or cell.isspace():
            continue
        if written == "text":
            record[name] = cell
            continue
        problem, value = _flag(cell) if written == "flag" else _json(cell)
        if problem:
            column = cell_column(table.text, position, table.separator)
            named = record.get("id")
            table.report.add(table.start, column, f"{name} {problem}", named if isinstance(named, str) else None)
            table.report.unread += is_sound
            is_sound = False
        record[name] = value
    return record if is_sound else None


def _flag(cell: str) -> tuple[str, Json]:
    flag = flag_of(cell)
    problem = "" if flag is not None else f"is {shown_value(cell)}, expected {FLAG}"
    return problem, flag


def _json(cell: str) -> tuple[str, Json]:
    """Return the error message for a cell of JSON, or an empty one, and its value."""
    try:
        return "", parse(cell)
    except StrictJsonError as error:
        offset, message = error.oddities[0]
        if error.kind == "size":
            return message, None
        if error.kind == "strictness":
            return f"is not strict JSON: {message} (at character {offset + 1} of the cell)", None
        line, column = error.place(offset)
        place = f"line {line}, column {column} of the cell"
        return f"is {shown_value(cell, 40)}, expected JSON: {message} at {place}", None


def cell_column(text: str, position: int, separator: str) -> int:
    """Return the 1-based column of a row's cell, by 0-based position; 1 if it begins on a later line."""
    is_quoted = False
    separators = 0
    for at, character in enumerate(text):
        if separators == position:
            return at + 1
        if character == '"':
            is_quoted = not is_quoted
        elif character == separator and not is_quoted:
            separators += 1
        elif character == "\n":
            break
    return 1
