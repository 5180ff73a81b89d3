"""Rows of other tools' files: JSON, JSON lines, CSV with various separators, YAML, Parquet."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_rageval.cases.csv_rows import cells_up_to
from pytest_rageval.cases.exchange.checks import path_below
from pytest_rageval.cases.exchange.workbook_bounds import bounded_rows, check_workbook, is_wide
from pytest_rageval.cases.keys import CELLS
from pytest_rageval.cases.names import QUESTION, field_of
from pytest_rageval.errors import CaseError
from pytest_rageval.io.encodings import ENCODINGS, decoded
from pytest_rageval.io.lines import FileLine, json_rows, read_lines
from pytest_rageval.io.messages import Finding, Report, describe
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import Json

LONGEST = 2**26
"""Largest file, in bytes, that is read at once."""
SEPARATORS = {".csv": ",;\t", ".tsv": "\t", ".xlsx": ","}
"""Possible CSV separators by suffix, the default first: spreadsheets write `;` in locales with decimal commas."""


PlacedRow = tuple[int | str, dict[str, Json]]
"""A row with its line, its number or its path in a document."""


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
                self.add_whole(f"{place if isinstance(place, str) else f'row {place}'}: {finding}")


_LISTS = (
    "goldens",
    "samples",
    "test_cases",
    "tests",
    "examples",
    "data",
    "dataset",
    "rows",
    "cases",
    "results",
    "items",
    "records",
    "questions",
)
"""Keys of the list of rows in other tools' documents."""


def rows_in(path: Path, report: RowReport, *, is_included: bool = False) -> Iterator[PlacedRow]:
    """Yield the rows of a file with their lines; rows of a JSON or YAML document with their numbers or paths.

    `is_included`: another file names it, and it names no further ones.
    """
    folder = None if is_included else path.parent
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        yield from _parquet_rows(path, report)
        return
    if suffix in SEPARATORS:
        yield from _csv_rows(_table_text(path, report), SEPARATORS[suffix], report)
        return
    read = list(read_lines(path, report, LONGEST))
    text = "".join(line.text for line in read)
    if suffix in (".yaml", ".yml"):
        yield from _document_rows(_yaml(text, report), report, folder)
        return
    report.has_lines |= suffix == ".jsonl" or _is_line_by_line(read)
    if report.has_lines:
        yield from ((row.line, row.record) for row in json_rows(iter(read), report))
    else:
        yield from _document_rows(_json(text, report), report, folder)


def _table_text(path: Path, report: RowReport) -> str:
    """Return the text of a table, noting its encoding unless that is UTF-8; wrong bytes are reported by their lines."""
    if path.suffix.lower() == ".xlsx":
        return workbook_as_csv(path, report.file, LONGEST, most_rows=2**20)  # more has no sheet
    if path.is_file() and path.stat().st_size <= LONGEST:
        encoding, text = decoded(path.read_bytes())
        if encoding != "utf-8" and text is not None:
            report.notes.append(f"{report.file} was read as {dict(ENCODINGS)[encoding]}, since it is not UTF-8")
            return text
    return "".join(line.text for line in read_lines(path, report, LONGEST))


def _yaml(text: str, report: Report) -> Json:
    """Return a YAML document as JSON values, read by the safe loader."""
    try:
        yaml = import_module("yaml")
    except ImportError:
        report.add_whole("is YAML, and PyYAML is not installed; pip install 'pytest-rageval[yaml]'")
        return []
    try:
        return json.loads(json.dumps(yaml.safe_load(text), default=str))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        report.add(mark.line + 1 if mark else 1, mark.column + 1 if mark else 1, f"not valid YAML: {error.problem}")
        return []


def _json(text: str, report: Report) -> Json:
    try:
        return parse(text) if text else None
    except StrictJsonError as error:
        offset, message = error.oddities[0]
        line, column = error.place(offset)
        report.add(line, column, f"not valid JSON: {message}")
        return []


def _is_line_by_line(lines: Sequence[FileLine]) -> bool:
    """Return True if these are JSON objects, one per line, as pandas and datasets write them whatever the suffix."""
    written = [line.text for line in lines if line.text.strip()]
    try:
        return len(written) > 1 and isinstance(parse(written[0]), dict)
    except StrictJsonError:
        return False


def _separator(header: str, separators: str) -> str:
    """Return the separator that gives a column of questions, else the one that gives most columns."""
    columns = {separator: [cell.strip(' "\r') for cell in header.split(separator)] for separator in separators}
    return max(separators, key=lambda one: (QUESTION in map(field_of, columns[one]), len(columns[one])))


_PREFIXED = re.compile(r"(inputs?|outputs?|reference|expected)[._](.+)")


def _nested(row: Mapping[str, Json], header: Sequence[str]) -> dict[str, Json]:
    """Join columns such as `input_question` and `output_answer` to objects, as LangSmith and Phoenix export them."""
    heads = {match[1] for name in header if (match := _PREFIXED.fullmatch(name))}
    if not ({"input", "inputs"} & heads and {"output", "outputs", "reference", "expected"} & heads):
        return dict(row)
    nested: dict[str, Json] = {}
    for name, value in row.items():
        if match := _PREFIXED.fullmatch(name):
            nested.setdefault(match[1].rstrip("s") + "s", {})[match[2]] = value
        else:
            nested[name] = value
    return nested


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
                row = {name: value_of_cell(name, cell) for name, cell in named.items() if cell and cell.strip()}
                if is_deepeval:
                    row |= {name: cell.split("|") for name in _JOINED if isinstance(cell := row.get(name), str)}
                yield reader.line_num, _nested(row, reader.fieldnames or ())
    except csv.Error as error:
        report.add_whole(f"not valid CSV: {error}")


_OF_DEEPEVAL = ("input", "actual_output", "expected_output", "retrieval_context", "context", "source_file")
_JOINED = ("context", "retrieval_context")
"""Columns in which DeepEval's `EvaluationDataset.save_as("csv")` joins texts by a bar; they identify its files."""


def value_of_cell(name: str, cell: str) -> Json:
    """Convert a CSV cell: a list or object, in JSON or as Python prints it; else text."""
    if CELLS.get(name) == "flag" and cell.strip().lower() in ("true", "false"):
        return cell.strip().lower() == "true"
    if not cell.lstrip().startswith(("[", "{")):
        return cell
    try:
        return parse(cell)
    except StrictJsonError:
        pass
    try:
        value = ast.literal_eval(cell)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return cell
    return _as_json(value) if isinstance(value, (list, dict)) else cell


def _document_rows(document: Json, report: RowReport, folder: Path | None) -> Iterator[PlacedRow]:
    if is_squad_document(document):
        yield from squad_rows(document, report)
        return
    if isinstance(document, dict) and isinstance(document.get("queries"), dict):
        document = _embedding_pairs(document)
    if isinstance(document, dict):
        rows = next((document[key] for key in _LISTS if isinstance(document.get(key), list)), None)
        if "tests" in document and folder is not None:
            rows = [*_with_included(document["tests"], folder, report)]
        document = _transposed(document) if rows is None else _with_defaults(rows, document.get("defaultTest"))
    for number, row in enumerate(document if isinstance(document, list) else (), start=1):
        if isinstance(row, dict):
            yield number, row
        else:
            report.add_row(number, [Finding((), f"is {describe(row)}, expected an object")])


def _embedding_pairs(document: Mapping[str, Any]) -> list[Json]:
    """Return the queries of LlamaIndex's embedding pairs as rows, with their relevant documents."""
    relevant, corpus = document.get("relevant_docs") or {}, document.get("corpus") or {}
    return [
        {"id": query_id, "query": query, "relevant_docs": relevant.get(query_id)}
        | {"reference_contexts": [corpus[each] for each in relevant.get(query_id) or () if each in corpus]}
        for query_id, query in document["queries"].items()
    ]


def _with_included(tests: Json, folder: Path, report: RowReport) -> Iterator[Json]:
    """Yield promptfoo's tests; a text in place of one, such as `file://more.yaml`, names a file of them."""
    for test in tests if isinstance(tests, list) else [tests]:
        if not isinstance(test, str):
            yield test
            continue
        try:
            yield from (row for _, row in rows_in(path_below(folder, test), report, is_included=True))
        except ValueError as error:
            report.add_whole(f"tests: {test} {error}")


def _with_defaults(rows: list[Json], default: Json) -> list[Json]:
    """Return promptfoo's tests with the variables and checks of `defaultTest`."""
    if not isinstance(default, dict):
        return rows
    return [
        {
            **row,
            "vars": {**(default.get("vars") or {}), **(row.get("vars") or {})},
            "assert": [*(row.get("assert") or ()), *(default.get("assert") or ())],
        }
        if isinstance(row, dict)
        else row
        for row in rows
    ]


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


# ── SQuAD ─────────────────────────────────────────────────────────────────────────────────────────────────────


def is_squad_document(document: Json) -> bool:
    """Return True if this JSON document has the structure of SQuAD."""
    data = document.get("data") if isinstance(document, dict) else None
    return isinstance(data, list) and bool(data) and isinstance(data[0], dict) and "paragraphs" in data[0]


def squad_rows(document: Json, report: RowReport) -> Iterator[PlacedRow]:
    """Yield the questions of SQuAD v1.1 or v2.0 as rows, each with its context and title."""
    for at, article in _members(document, "data", "", report):
        for within, paragraph in _members(article, "paragraphs", at, report):
            for place, entry in _members(paragraph, "qas", within, report):
                yield place, squad_row(entry, article.get("title"), paragraph.get("context"))


def squad_row(entry: Mapping[str, Json], title: Json, context: Json) -> dict[str, Json]:
    """Return a question of SQuAD with its title and context."""
    return {**entry, "title": title, "context": context if str(context or "").strip() else None}


def _members(above: Mapping[str, Json], key: str, at: str, report: RowReport) -> Iterator[tuple[str, Any]]:
    """Yield the objects of a list with their paths; report other members."""
    place = f"{at}.{key}" if at else key
    if not isinstance(listed := above.get(key), list):
        report.add_whole(f"{place} is {describe(listed)}, expected a list")
        return
    for number, member in enumerate(listed):
        if isinstance(member, dict):
            yield f"{place}[{number}]", member
        else:
            report.add_whole(f"{place}[{number}] is {describe(member)}, expected an object")


def workbook_as_csv(path: Path, name: str, most_bytes: int, most_rows: int) -> str:
    """Return the first sheet of a workbook as CSV, or raise CaseError if it cannot be read."""
    try:
        from openpyxl import load_workbook  # here, because the extra may be missing
    except ImportError:
        raise CaseError(f"{name}: openpyxl is not installed; save the sheet as CSV") from None
    try:
        check_workbook(path, name, most_bytes)
        with path.open("rb") as opened:  # by its name openpyxl would refuse it: ours says nothing of its kind
            book = load_workbook(opened, read_only=True, data_only=True)
            written = io.StringIO(newline="")
            sheet = book.worksheets[0]
            if is_wide(sheet.max_column):
                sheet.reset_dimensions()
            csv.writer(written, lineterminator="\n").writerows(_cells(sheet, name, most_rows))
            return written.getvalue()
    except CaseError:
        raise
    except Exception as error:  # noqa: BLE001 because openpyxl raises whatever a torn file makes it stumble over
        raise CaseError(f"{name}: no workbook that can be read ({type(error).__name__}); save it as CSV") from None


def _cells(sheet: Any, name: str, most_rows: int) -> Iterator[list[object]]:
    for row in bounded_rows(sheet.iter_rows(), name, most_rows):
        cells = [_shown(cell.value, cell.number_format) for cell in row]
        if any(cell != "" for cell in cells):
            yield cells


def _shown(value: object, number_format: str) -> object:
    """Return a value as the sheet shows it: a share as a percentage, a date without its midnight."""
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    if isinstance(value, (int, float)):
        return f"{100 * value:.10g}%" if "%" in number_format else int(value) if value == int(value) else value
    return value.isoformat().removesuffix("T00:00:00") if isinstance(value, date) else value
