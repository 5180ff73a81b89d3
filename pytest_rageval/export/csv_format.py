"""A run as CSV, in cells that no spreadsheet runs as formulas."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from io import StringIO

from pytest_rageval.export.export_source import ExportSource
from pytest_rageval.text import printable

Cell = str | bool | int | float | None
# Spreadsheets ignore leading blanks, and in East Asian locales treat full-width signs like plain ones.
_FORMULA = re.compile(r"[\s\x00-\x20\ufeff\u200b-\u200f\u2060]*[=+\-@＝＋－＠﹦﹢﹣﹫\t\r]")


def csv_lines(source: ExportSource) -> Iterator[str]:
    """Yield a row of names, then a row for each case and trial."""
    yield csv_line(source.columns())
    for record in source.flat_records():
        yield csv_line(source.row(record))


def csv_line(cells: Iterable[Cell]) -> str:
    """Return a row without line end: texts in quotation marks, bare numbers, empty cells for None.

    Texts may hold line breaks, as CSV allows; other control characters in them are escaped.
    """
    row: list[str | int | float] = []
    for cell in cells:
        if isinstance(cell, bool):
            row.append(str(cell).lower())
        elif isinstance(cell, str):
            row.append(printable(as_text(cell)))
        else:
            row.append("" if cell is None else cell)
    buffer = StringIO()
    csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="").writerow(row)
    return buffer.getvalue()


def as_text(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run as a formula.

    Such a text begins, after blanks, with one of `=`, `+`, `-`, `@` or their full-width forms, or with a tab or a
    carriage return.
    """
    return f"'{text}" if _FORMULA.match(text) else text
