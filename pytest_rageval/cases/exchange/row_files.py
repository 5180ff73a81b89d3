"""Rows of other tools' files: JSON, JSON lines, CSV with various separators, YAML, Parquet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from pytest_rageval.cases.exchange.case_rows import PlacedRow
from pytest_rageval.cases.exchange.checks import path_below
from pytest_rageval.cases.exchange.judgements import joined_judgements
from pytest_rageval.cases.exchange.printed import json_value
from pytest_rageval.cases.exchange.promptfoo_lists import tests_of_matrix
from pytest_rageval.cases.exchange.tables import SEPARATORS, RowReport, table_rows
from pytest_rageval.cases.exchange.yaml_text import UnreadableYamlError, read_yaml
from pytest_rageval.cases.names import QUESTION, field_of
from pytest_rageval.io.lines import FileLine, json_rows, read_lines
from pytest_rageval.io.messages import Finding, Report, describe
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import Json

LONGEST = 2**26
"""Largest file, in bytes, that is read at once."""
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


def rows_of_questions(path: Path, report: RowReport) -> list[PlacedRow]:
    """Return the rows of a test set, one a question: judgements of several documents are joined."""
    return joined_judgements(list(rows_in(path, report)), lambda note: report.notes.append(f"{report.file}: {note}"))


def rows_in(path: Path, report: RowReport, *, is_included: bool = False) -> Iterator[PlacedRow]:
    """Yield the rows of a file with their lines; rows of a JSON or YAML document with their numbers or paths.

    `is_included`: another file names it, and it names no further ones.
    """
    # Files name no further ones, so that none can include itself.
    folder = None if is_included else path.parent
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        yield from _parquet_rows(path, report)
        return
    if suffix in SEPARATORS:
        yield from table_rows(path, report, LONGEST)
        return
    read = list(read_lines(path, report, LONGEST))
    if suffix in (".yaml", ".yml"):
        yield from _document_rows(_yaml("".join(line.text for line in read), report), report, folder)
        return
    read = [_without_nan(line) for line in read]
    text = "".join(line.text for line in read)
    report.has_lines |= suffix == ".jsonl" or _is_line_by_line(read)
    if report.has_lines:
        yield from ((row.line, row.record) for row in json_rows(iter(read), report))
    else:
        yield from _document_rows(_json(text, report), report, folder)


_NAN = re.compile(r'("(?:[^"\\]|\\.?)*(?:"|\Z))|\bNaN\b', re.DOTALL)


def _without_nan(line: FileLine) -> FileLine:
    """Return a line with null in place of bare NaN, which pandas and others write into JSON for an empty cell."""
    if "NaN" not in line.text:
        return line
    return line._replace(text=_NAN.sub(lambda found: found[1] or "null", line.text))


def _yaml(text: str, report: Report) -> Json:
    """Return a YAML document as JSON values; report one that is broken."""
    try:
        import_module("yaml")
    except ImportError:
        report.add_whole("is YAML, and PyYAML is not installed; pip install 'pytest-rageval[yaml]'")
        return []
    try:
        return read_yaml(text)
    except UnreadableYamlError as error:
        report.add(error.line, error.column, f"not valid YAML: {error}")
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


def _document_rows(document: Json, report: RowReport, folder: Path | None) -> Iterator[PlacedRow]:
    if is_squad_document(document):
        yield from squad_rows(document, report)
        return
    if isinstance(document, dict) and isinstance(document.get("queries"), dict):
        document = _embedding_pairs(document)
    if isinstance(document, dict):
        known_lists = (document[key] for key in _LISTS if isinstance(document.get(key), list))
        rows = next(known_lists, None) or _listed(document)
        if "tests" in document and folder is not None:
            rows = [*_with_included(document["tests"], folder, report)]
        default = document.get("defaultTest")
        if rows is None:
            document = _transposed(document)
        else:
            if "tests" in document:
                report.notes += _dropped_of_promptfoo(document, report.file)
            document = list(chain.from_iterable(map(tests_of_matrix, _with_defaults(rows, default))))
    for number, row in enumerate(document if isinstance(document, list) else (), start=1):
        if isinstance(row, dict):
            yield number, row
        else:
            report.add_row(number, [Finding((), f"is {describe(row)}, expected an object")])


def _listed(document: Mapping[str, Json]) -> list[Json] | None:
    """Return the rows of a document's lists of questions, whatever their keys; a list's key is their category."""
    lists = {key: value for key, value in document.items() if isinstance(value, list) and _are_questions(value)}
    for value in document.values():
        if not lists and isinstance(value, dict):
            lists = {key: rows for key, rows in value.items() if isinstance(rows, list) and _are_questions(rows)}
    if len(lists) == 1:
        return next(iter(lists.values()))
    categorised: list[Json] = []
    for key, rows in lists.items():
        categorised += [{"category": key, **row} for row in rows]
    return categorised or None


def _are_questions(rows: Sequence[Json]) -> bool:
    """Return True for a list of objects of which the first names a question."""
    is_of_objects = bool(rows) and all(isinstance(row, dict) for row in rows)
    return is_of_objects and any(field_of(name) == QUESTION for name in rows[0])


def _embedding_pairs(document: Mapping[str, Any]) -> list[Json]:
    """Return the queries of LlamaIndex's embedding pairs as rows, with their relevant documents."""
    relevant = document.get("relevant_docs") or {}
    corpus = document.get("corpus") or {}
    rows: list[Json] = []
    for query_id, query in document["queries"].items():
        documents = relevant.get(query_id)
        texts = [corpus[document_id] for document_id in documents or () if document_id in corpus]
        rows.append({"id": query_id, "query": query, "relevant_docs": documents, "reference_contexts": texts})
    return rows


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
    default_variables = default.get("vars") or {}
    default_checks = default.get("assert") or ()
    completed: list[Json] = []
    for row in rows:
        if isinstance(row, dict):
            variables = {**default_variables, **(row.get("vars") or {})}
            checks = [*(row.get("assert") or ()), *default_checks]
            completed.append({**row, "vars": variables, "assert": checks})
        else:
            completed.append(row)
    return completed


_ONLY_A_VARIABLE = re.compile(r"\s*(\{\{\s*\w+\s*\}\}|file://.*)\s*", re.DOTALL)


def _dropped_of_promptfoo(document: Mapping[str, Json], name: str) -> Iterator[str]:
    """Yield a note for what stands in a configuration of promptfoo and has no counterpart in cases."""
    prompts = document.get("prompts")
    written = prompts if isinstance(prompts, list) else [prompts]
    own = [prompt for prompt in written if isinstance(prompt, str) and not _ONLY_A_VARIABLE.fullmatch(prompt)]
    if own:
        yield (
            f"{name}: prompts with a text of their own are not read: the system under test has its own; the question "
            "alone is asked"
        )


def _transposed(columns: Mapping[str, Json]) -> list[Json]:
    """Turn a document of columns, as pandas and datasets write it, into rows."""
    lists: dict[str, list[Json]] = {}
    for name, column in columns.items():
        cells = [*column.values()] if isinstance(column, dict) else column
        if not isinstance(cells, list):
            return [dict(columns)]
        lists[name] = cells
    lengths = {len(cells) for cells in lists.values()}
    if len(lengths) != 1:
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
            for row in batch.to_pylist(maps_as_pydicts="lossy"):
                number += 1
                values = json_value(_without_nulls(row))
                yield number, {name: value for name, value in values.items() if value is not None}
    except (OSError, ValueError) as error:  # pyarrow raises ValueError for a broken file
        report.add_whole(f"not valid Parquet: {error}")


def _without_nulls(value: Any) -> Any:
    """Return a value of a column without null members, and with decimals as numbers.

    All structs of a column have the same members: those that one tool's arguments do not have are null there.
    """
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    members = {}
    for name, member in value.items():
        if member is not None:
            members[name] = _without_nulls(member)
    return members


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
