"""Rows of tables: CSV with various separators and encodings, and workbooks."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from itertools import chain, islice, repeat, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.cases.csv_rows import cells_up_to
from pytest_rageval.cases.exchange.case_rows import PlacedRow, case_rows, is_header
from pytest_rageval.cases.exchange.printed import printed_value
from pytest_rageval.cases.exchange.workbook_bounds import bounded_rows, check_workbook, is_wide
from pytest_rageval.cases.keys import CELLS
from pytest_rageval.cases.names import QUESTION, field_of
from pytest_rageval.errors import CaseError
from pytest_rageval.io.encodings import ENCODINGS, decoded
from pytest_rageval.io.lines import read_lines
from pytest_rageval.io.messages import Finding, Report
from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import Json
from pytest_rageval.text import counted

SEPARATORS = {".csv": ",;\t", ".tsv": "\t", ".xlsx": ","}
"""Possible CSV separators by suffix, the default first: spreadsheets write `;` in locales with decimal commas."""


class RowReport(Report):
    """Problems by row: by line (`has_lines`), by number, or by path in a JSON document; and notes for the user."""

    def __init__(self, file: str, *, has_lines: bool) -> None:
        super().__init__(file)
        self.has_lines = has_lines
        self.notes: list[str] = []

    def add_row(self, place: int | str, findings: Iterable[Finding], case_id: Json = None) -> None:
        named = case_id if isinstance(case_id, str) else None
        for finding in findings:
            if self.has_lines and isinstance(place, int):
                self.add(place, 1, str(finding), named)
            else:
                shown_place = place if isinstance(place, str) else f"row {place}"
                self.add_whole(f"{shown_place}: {finding}")


def table_rows(path: Path, report: RowReport, longest: int) -> Iterator[PlacedRow]:
    """Yield the rows of a table with their lines."""
    suffix = path.suffix.lower()
    text = _table_text(path, report, longest)
    separators = SEPARATORS[suffix]
    lines_before = 0
    if named := _SEP.match(text):
        separators = named[1]
        text = text[named.end() :]
        lines_before = 1
        report.notes.append(f"{report.file}: the first line, sep={separators}, was read as the separator of the cells")
    above = _rows_above_header(text, separators, longest)
    is_sheet = suffix == ".xlsx"
    rows = list(_csv_rows(text, separators, report, above, lines_before, longest, is_sheet=is_sheet))
    header = list(rows[0][1]) if rows else []
    yield from case_rows(rows, header, lambda note: report.notes.append(f"{report.file}: {note}"))


_SEP = re.compile(r"\ufeff?\"?sep=([,;|\t])\"?[,;\t]*\r?\n", re.IGNORECASE)
"""Excel's line that names the separator."""
_TITLE_ROWS = 20
"""Rows among which the header is looked for."""


def _rows_above_header(text: str, separators: str, longest: int) -> int:
    """Return how many rows stand above the header: titles, dates, blank rows.

    The header is the first row unless it names no question, and one of the next names one and has several cells.
    """
    delimiter = _separator(text.partition("\n")[0], separators)
    with cells_up_to(longest):
        # A title above the header may hold commas: the first line does not decide about the separator.
        for separator in dict.fromkeys((delimiter, *separators)):
            try:
                if above := _titles(csv.reader(io.StringIO(text, newline=""), delimiter=separator)):
                    return above
            except csv.Error:
                continue  # reported where the rows are read
    return 0


def _titles(reader: Iterable[Sequence[str]]) -> int:
    """Return how many rows stand above the header; a title in its first cell may name a question, too."""
    for number, cells in enumerate(reader):
        names = [cell for cell in cells if cell.strip()]
        questions = [name for name in names if field_of(name.strip(), is_exact=True) == QUESTION]
        has_question = bool(questions) or is_header(names)
        is_title = number == 0 and has_question and len(names) == 1 < len(cells)
        if has_question and not is_title and (number == 0 or len(names) > 1):
            return number
        if number >= _TITLE_ROWS or (number == 0 and len(names) > 1 and any(map(_is_known, names))):
            return 0
    return 0


def _is_known(name: str) -> bool:
    return field_of(name.strip(), is_exact=True) is not None


def _table_text(path: Path, report: RowReport, longest: int) -> str:
    """Return the text of a table, noting its encoding unless that is UTF-8; wrong bytes are reported by their lines."""
    if path.suffix.lower() == ".xlsx":
        sheet = questions_sheet(path, report.file, longest, most_rows=2**20)  # more has no sheet
        if sheet.others:
            others = listed([repr(title) for title in sheet.others], 3)
            report.notes.append(f"{report.file}: only the sheet {sheet.title!r} was read, not {others}")
        return sheet.text
    if path.is_file() and path.stat().st_size <= longest:
        encoding, text = decoded(path.read_bytes())
        if encoding != "utf-8" and text is not None:
            report.notes.append(f"{report.file} was read as {dict(ENCODINGS)[encoding]}, since it is not UTF-8")
            return text
    return "".join(line.text for line in read_lines(path, report, longest))


def _line_of(text: str, number: int) -> str:
    """Return a line of a text, by its number from 0."""
    for _ in range(number):
        text = text.partition("\n")[2]
    return text.partition("\n")[0]


def _separator(header: str, separators: str) -> str:
    """Return the separator that gives a column of questions, else the one that gives most columns."""

    def fitness(separator: str) -> tuple[bool, int]:
        columns = [cell.strip(' "\r') for cell in header.split(separator)]
        return QUESTION in map(field_of, columns), len(columns)

    return max(separators, key=fitness)


_PREFIXED = re.compile(r"(inputs?|outputs?|reference|expected)[._](.+)")


def _nested(row: Mapping[str, Json], header: Sequence[str]) -> dict[str, Json]:
    """Join columns such as `input_question` and `output_answer` to objects, as LangSmith and Phoenix export them."""
    heads = {match[1] for name in header if (match := _PREFIXED.fullmatch(name))}
    has_input = not heads.isdisjoint(("input", "inputs"))
    has_output = not heads.isdisjoint(("output", "outputs", "reference", "expected"))
    if not (has_input and has_output):
        return dict(row)
    nested: dict[str, Json] = {}
    for name, value in row.items():
        if match := _PREFIXED.fullmatch(name):
            nested.setdefault(match[1].rstrip("s") + "s", {})[match[2]] = value
        else:
            nested[name] = value
    return nested


def _csv_rows(
    text: str, separators: str, report: RowReport, above: int, lines_before: int, longest: int, *, is_sheet: bool
) -> Iterator[PlacedRow]:
    """Yield the rows of a CSV text below its header, which stands below `above` rows."""
    delimiter = _separator(_line_of(text, above), separators)
    try:
        with cells_up_to(longest):
            file = io.StringIO(text, newline="")
            skipped = csv.reader(file, strict=True, delimiter=delimiter)
            for _ in range(above):
                next(skipped)
            if above:
                was = "was" if above == 1 else "were"
                report.notes.append(f"{report.file}: {counted(above, 'row')} above the header {was} not read")
            # Strict: an unclosed quotation mark is an error, and not one cell up to the end of the file.
            reader = csv.reader(file, strict=True, delimiter=delimiter)
            numbered = enumerate(reader, start=above + 1)
            header = next((cells for _, cells in numbered if cells), [])
            if not _has_one_column_a_field(header, report):
                return
            is_deepeval = {*_OF_DEEPEVAL} <= {*header}
            lines_above = lines_before + skipped.line_num
            for number, written_cells in numbered:
                if not written_cells:
                    continue
                # A cell of a sheet may hold several lines: its row is known by its number alone.
                place = number if is_sheet else lines_above + reader.line_num
                if written_cells == header:
                    problem = "the row repeats the header, as two joined files have it; remove it"
                    report.add_row(place, [Finding((), problem)])
                    continue
                if len(written_cells) > len(header):
                    problem = "the row has more cells than the header; quote commas"
                    report.add_row(place, [Finding((), problem)])
                    continue
                cells = dict(zip_longest(header, written_cells))
                row: dict[str, Json] = {}
                for written, cell in cells.items():
                    if name := written.strip():
                        row[name] = value_of_cell(name, cell)
                if is_deepeval:
                    for name in _JOINED:
                        joined = row.get(name)
                        if isinstance(joined, str):
                            row[name] = joined.split("|")
                yield place, _nested(row, header)
    except csv.Error as error:
        report.add_whole(f"not valid CSV: {error}")


def _has_one_column_a_field(header: Sequence[str], report: RowReport) -> bool:
    """Return True unless two columns of a name that means something are in the header; of other names, say so."""
    names = [name.strip() for name in header if name.strip()]
    twice = [name for name, count in Counter(names).items() if count > 1]
    meant = [name for name in twice if _is_known(name)]
    for name in meant:
        report.add_whole(f"column {name!r} stands twice in the header; rename or remove one")
    if twice and not meant:
        report.notes.append(f"{report.file}: of columns with the same name ({listed(twice, 3)}) only the last was read")
    return not meant


_OF_DEEPEVAL = ("input", "actual_output", "expected_output", "retrieval_context", "context", "source_file")
_JOINED = ("context", "retrieval_context")
"""Columns in which DeepEval's `EvaluationDataset.save_as("csv")` joins texts by a bar; they identify its files."""


def value_of_cell(name: str, cell: str | None) -> Json:
    """Convert a CSV cell: a list or object, in JSON or as Python or numpy print it; None if it is blank; else text."""
    if cell is None or not cell.strip():
        return None
    if CELLS.get(name) == "flag" and cell.strip().lower() in ("true", "false"):
        return cell.strip().lower() == "true"
    value = printed_value(cell)
    return cell if value is None else value


class Sheet(NamedTuple):
    """The sheet of a workbook that holds the questions, else the first one, as CSV, and its title.

    others  the titles of the other sheets that hold something
    """

    text: str
    title: str
    others: tuple[str, ...]


def workbook_as_csv(path: Path, name: str, most_bytes: int, most_rows: int) -> str:
    """Return the sheet of questions of a workbook as CSV, or raise CaseError if it cannot be read."""
    return questions_sheet(path, name, most_bytes, most_rows).text


def questions_sheet(path: Path, name: str, most_bytes: int, most_rows: int) -> Sheet:
    """Return the sheet of a workbook that holds the questions, or raise CaseError if it cannot be read."""
    try:
        from openpyxl import load_workbook  # here, because the extra may be missing
    except ImportError:
        raise CaseError(f"{name}: openpyxl is not installed; save the sheet as CSV") from None
    try:
        check_workbook(path, name, most_bytes)
        with path.open("rb") as opened:  # by its name openpyxl would refuse it: ours says nothing of its kind
            # The values that formulas came to, and row by row: a sheet is not held as a whole.
            book = load_workbook(opened, read_only=True, data_only=True)
            written = io.StringIO(newline="")
            sheet = _sheet_of_questions(book.worksheets)
            csv.writer(written, lineterminator="\n").writerows(_cells(sheet, name, most_rows))
            others = [other for other in book.worksheets if other is not sheet]
            # Excel used to begin each workbook with three sheets: empty ones are nothing that was left out.
            filled = [other.title for other in others if _holds_something(other)]
            return Sheet(written.getvalue(), sheet.title, tuple(filled))
    except CaseError:
        raise
    except Exception as error:  # noqa: BLE001 because openpyxl raises whatever a torn file makes it stumble over
        raise CaseError(f"{name}: no workbook that can be read ({type(error).__name__}); save it as CSV") from None


def _sheet_of_questions(sheets: Sequence[Any]) -> Any:
    """Return the first sheet whose header names a question and something beside it, else the first one.

    A sheet of instructions may mention questions; its rows have no header of several known names.
    """
    for sheet in sheets:
        if any(is_header(_texts_of(row)) for row in islice(_rows_of(sheet), _TITLE_ROWS)):
            return sheet
    return sheets[0]


def _texts_of(row: Iterable[Any]) -> list[str]:
    return [cell.value for cell in row if isinstance(cell.value, str)]


def _holds_something(sheet: Any) -> bool:
    """Return True if one of the first rows of a sheet has a value."""
    cells = chain.from_iterable(islice(_rows_of(sheet), _TITLE_ROWS))
    return any(cell.value is not None for cell in cells)


def _rows_of(sheet: Any) -> Iterator[Any]:
    """Return the rows of a sheet, as wide as they are where it declares to be wider than any sheet can be."""
    if is_wide(sheet.max_column):
        sheet.reset_dimensions()
    rows: Iterator[Any] = sheet.iter_rows()
    return rows


def _cells(sheet: Any, name: str, most_rows: int) -> Iterator[list[object]]:
    """Yield the rows up to the last filled one; a blank row has no cells, so that the others keep their numbers."""
    blank_rows = 0
    for row in bounded_rows(_rows_of(sheet), name, most_rows):
        cells = [_shown(cell.value, cell.number_format) for cell in row]
        if any(cell != "" for cell in cells):
            yield from repeat([], blank_rows)
            blank_rows = 0
            yield cells
        else:
            blank_rows += 1


def _shown(value: object, number_format: str) -> object:
    """Return a value as the sheet shows it: a share as a percentage, dates and times without zeros."""
    if value is None:
        return ""
    # Before numbers: True is an int to Python.
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        if not math.isfinite(value):
            return ""  # 1E400, which no sheet shows either
        if "%" in number_format:
            return f"{100 * value:.10g}%"
        # A number has no kind in a workbook: the id 7 may come as 7.0.
        return int(value) if value == int(value) else value
    return _shown_time(value) if isinstance(value, (date, time, timedelta)) else value


def _shown_time(value: date | time | timedelta) -> str:
    """Return a date or a time without seconds that are 0: nobody answers 09:30:00 to a question for a time."""
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00").removesuffix(":00")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, time):
        return value.isoformat().removesuffix(":00")
    minutes, seconds = divmod(round(value.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}".removesuffix(":00")
