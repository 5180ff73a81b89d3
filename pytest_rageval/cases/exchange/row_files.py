"""Rows of other tools' files: JSON, JSON lines, CSV with various separators, Parquet."""

from __future__ import annotations

import ast
import csv
import io
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from pytest_rageval.cases.conversion import ANSWER, CONTEXTS, OTHER_NAMES, QUESTION
from pytest_rageval.cases.csv_rows import cells_up_to
from pytest_rageval.cases.keys import CELLS
from pytest_rageval.io.lines import FileLine, json_rows, read_lines
from pytest_rageval.io.messages import Finding, Report, describe
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import Json

LONGEST = 2**26
"""Largest file, in bytes, that is read at once."""
PASSAGES = ("retrieval_context", "retrieved_contexts")
"""Names of fields with retrieved texts."""
QUESTION_NAMES = frozenset({"question", "query", *(name for name, part in OTHER_NAMES.items() if part == QUESTION)})
SEPARATORS = {".csv": ",;\t", ".tsv": "\t"}
"""Possible CSV separators by suffix, the default first: spreadsheets write `;` in locales with decimal commas."""


def is_table(path: Path) -> bool:
    """Return True if the first line of a tab-separated file names a column of questions."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        return not QUESTION_NAMES.isdisjoint(file.readline(LONGEST).strip().lower().split("\t"))


PlacedRow = tuple[int | str, dict[str, Json]]
"""A row with its line, its number or its path in a document."""


class RowReport(Report):
    """Problems by row: by line (`has_lines`), by number, or by path in a JSON document."""

    def __init__(self, file: str, *, has_lines: bool) -> None:
        super().__init__(file)
        self.has_lines = has_lines

    def add_row(self, place: int | str, findings: Iterable[Finding], case_id: Json = None) -> None:
        named = case_id if isinstance(case_id, str) else None
        for finding in findings:
            if self.has_lines and isinstance(place, int):
                self.add(place, 1, str(finding), named)
            else:
                self.add_whole(f"{place if isinstance(place, str) else f'row {place}'}: {finding}")


_LISTS = ("goldens", "samples", "test_cases", "tests", "examples", "data", "dataset", "rows", "cases")
"""Keys of the list of rows in other tools' documents."""


def tool_file_rows(path: Path, report: RowReport) -> Iterator[PlacedRow]:
    """Yield the rows of a file with their lines; rows of a JSON document with their numbers."""
    suffix = path.suffix.lower()
    if suffix in (".yaml", ".yml"):
        command = f"npx js-yaml {shlex.quote(path.name)} > {shlex.quote(f'{path.stem}.json')}"
        report.add_whole(f"is YAML; save it as JSON with `{command}`, and convert that")
        return
    if suffix == ".parquet":
        yield from _parquet_rows(path, report)
        return
    lines = read_lines(path, report, LONGEST)
    if suffix in SEPARATORS:
        yield from _csv_rows("".join(line.text for line in lines), SEPARATORS[suffix], report)
        return
    read = list(lines)
    report.has_lines |= suffix == ".jsonl" or _is_line_by_line(read)
    if report.has_lines:
        yield from ((row.line, row.record) for row in json_rows(iter(read), report))
    else:
        yield from _document_rows("".join(line.text for line in read), report)


def _is_line_by_line(lines: Sequence[FileLine]) -> bool:
    """Return True if these are JSON objects, one per line, as pandas and datasets write them whatever the suffix."""
    written = [line.text for line in lines if line.text.strip()]
    try:
        return len(written) > 1 and isinstance(parse(written[0]), dict)
    except StrictJsonError:
        return False


def _separator(header: str, separators: str) -> str:
    """Return the separator that gives a column of questions, or the default."""
    named = (
        separator
        for separator in separators
        if not QUESTION_NAMES.isdisjoint(cell.strip(' "\r').lower() for cell in header.split(separator))
    )
    return next(named, separators[0])


def _csv_rows(text: str, separators: str, report: RowReport) -> Iterator[PlacedRow]:
    delimiter = _separator(text.partition("\n")[0], separators)
    try:
        with cells_up_to(LONGEST):
            reader = csv.DictReader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
            is_deepeval = {*_OF_DEEPEVAL} <= {*(reader.fieldnames or ())}
            for cells in reader:
                if None in cells:
                    problem = "the row has more cells than the header; quote commas"
                    report.add_row(reader.line_num, [Finding((), problem)])
                    continue
                named = {name.strip(): cell for name, cell in cells.items() if isinstance(name, str) and name.strip()}
                row = {name: _cell(name, cell) for name, cell in named.items() if cell and cell.strip()}
                if is_deepeval:
                    row |= {name: cell.split("|") for name in _JOINED if isinstance(cell := row.get(name), str)}
                yield reader.line_num, row
    except csv.Error as error:
        report.add_whole(f"not valid CSV: {error}")


_OF_DEEPEVAL = ("input", "actual_output", "expected_output", "retrieval_context", "context", "source_file")
_JOINED = ("context", "retrieval_context")
"""Columns in which DeepEval's `EvaluationDataset.save_as("csv")` joins texts by a bar; they identify its files."""


def _cell(name: str, cell: str) -> Json:
    """Convert a CSV cell: a list, in JSON or Python syntax, for columns of lists; else text."""
    part = OTHER_NAMES.get(name.lower())
    is_list = CELLS.get(name) == "json" or part in (ANSWER, CONTEXTS) or name.lower() in PASSAGES
    if CELLS.get(name) == "flag" and cell.strip().lower() in ("true", "false"):
        return cell.strip().lower() == "true"
    if not is_list or not cell.lstrip().startswith(("[", "{")):
        return cell
    try:
        return parse(cell)
    except StrictJsonError:
        pass
    try:
        value = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return cell
    return [str(item) for item in value] if isinstance(value, list) else cell


def _document_rows(text: str, report: RowReport) -> Iterator[PlacedRow]:
    try:
        document = parse(text) if text else None
    except StrictJsonError as error:
        offset, message = error.oddities[0]
        line, column = error.place(offset)
        report.add(line, column, f"not valid JSON: {message}")
        return
    if isinstance(document, dict):
        document = next((document[key] for key in _LISTS if isinstance(document.get(key), list)), document)
    if isinstance(document, dict):
        document = _transposed(document)
    for number, row in enumerate(document if isinstance(document, list) else (), start=1):
        if isinstance(row, dict):
            yield number, row
        else:
            report.add_row(number, [Finding((), f"is {describe(row)}, expected an object")])


def _transposed(columns: Mapping[str, Json]) -> list[Json]:
    """Turn a document of columns, as pandas and datasets write it, into rows."""
    lists = {name: [*column.values()] if isinstance(column, dict) else column for name, column in columns.items()}
    lengths = {len(column) if isinstance(column, list) else -1 for column in lists.values()}
    if len(lengths) != 1 or -1 in lengths:
        return [dict(columns)]
    return [dict(zip(lists, cells, strict=True)) for cells in zip(*lists.values(), strict=True)]


_BATCH = 1_000
"""Rows in memory at a time."""


def _parquet_rows(path: Path, report: Report) -> Iterator[PlacedRow]:
    """Yield each row with its number, as JSON values: dates as text, null values left out."""
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        report.add_whole("is Parquet, and pyarrow is not installed; pip install 'pytest-rageval[parquet]'")
        return
    number = 0
    try:
        for batch in parquet.ParquetFile(path).iter_batches(_BATCH):
            for row in batch.to_pylist():
                number += 1
                yield number, {name: value for name, value in _as_json(row).items() if value is not None}
    except (OSError, ValueError) as error:  # pyarrow raises ValueError for a broken file
        report.add_whole(f"not valid Parquet: {error}")


def _as_json(row: Json) -> dict[str, Json]:
    written: dict[str, Json] = json.loads(json.dumps(row, default=str), parse_constant=lambda _: None)
    return written
