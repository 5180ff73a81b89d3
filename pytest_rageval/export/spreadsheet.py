"""Tables as CSV, a run among them: texts that a spreadsheet would run as formulas are quoted."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from io import StringIO

from pytest_rageval.export.export_source import ExportSource
from pytest_rageval.text import printable

Cell = str | bool | int | float | None

# Spreadsheets of East Asian locales take the full-width signs for the plain ones, and leading blanks are passed over.
_FORMULA = re.compile(r"[\s\x00-\x20\ufeff\u200b-\u200f\u2060]*[=+\-@＝＋－＠﹦﹢﹣﹫\t\r]")


def csv_lines(source: ExportSource) -> Iterator[str]:
    """A row with the names, then a row a case and trial, line by line: it need not be in memory."""
    yield csv_line(source.columns())
    for record in source.records():
        yield csv_line(source.row(record))


def csv_line(cells: Iterable[Cell]) -> str:
    """A row, without the end of its line: texts in quotation marks, numbers bare, nothing where there is no value.

    A text may hold line breaks, as CSV allows; control characters in it are escaped.
    """
    buffer = StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="")
    writer.writerow([_cell(cell) for cell in cells])
    return buffer.getvalue()


def as_text(text: str) -> str:
    """The text, behind an apostrophe where a spreadsheet would otherwise run it: it begins, after blanks, with one of
    `=`, `+`, `-`, `@` or their full-width forms, or with a tab or a carriage return."""
    return f"'{text}" if _FORMULA.match(text) else text


def _cell(cell: Cell) -> str | int | float:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    return printable(as_text(cell)) if isinstance(cell, str) else cell
