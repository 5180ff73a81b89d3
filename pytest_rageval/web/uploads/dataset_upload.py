"""Uploaded files as cases: a preview, guessed columns, and a full reading with all problems by line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.cases.csv_rows import CsvRow, csv_rows
from pytest_rageval.cases.exchange.formats import format_of, read_other
from pytest_rageval.cases.exchange.reading import is_case
from pytest_rageval.cases.keys import CELLS, Cell
from pytest_rageval.cases.loading import MAX_LINE_BYTES, CaseFile, Partner, cases_of_rows
from pytest_rageval.errors import CaseError
from pytest_rageval.io.lines import FileLine, JsonRow, json_rows, read_lines
from pytest_rageval.io.messages import Findings, Report, describe, shown_value
from pytest_rageval.io.messages import Path as Place
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import EvalCase, Json
from pytest_rageval.text import cut
from pytest_rageval.web.site import WebLimits
from pytest_rageval.web.uploads.column_mapping import (
    MappedColumn,
    column_names,
    guess_mapping,
    guess_reference_mapping,
    mapped_record,
    pseudo_name,
)
from pytest_rageval.web.uploads.upload import Upload

CASES, REFERENCES = "cases", "references"
"""The parts of an upload: a file of cases or questions, and an optional one of references."""
PREVIEWED = 20
"""Rows of a preview."""
MOST_COLUMNS = 1_000
YAML = (".yaml", ".yml")
MOST_YAML, MOST_NESTED = 2_000_000, 30
"""Bytes and levels of a YAML document."""
MOST_BROKEN = 10_000
LOOKED_AT = 200
"""First records of a JSONL file, whose keys are its columns."""
Row = JsonRow | CsvRow


class Preview(NamedTuple):
    """The beginning of a file: its column names, texts of the first rows, and the problems of reading it."""

    columns: list[str]
    rows: list[list[str]]
    problems: tuple[str, ...] = ()


class DatasetReading(NamedTuple):
    """The result of reading an upload: the cases, one line per problem, and the number of cases by label format."""

    cases: Sequence[EvalCase]
    problems: tuple[str, ...]
    spellings: Mapping[tuple[str, ...], int]

    @property
    def labels_in_words(self) -> str:
        """Return the labels as `each with a reference answer`, or as counts: `12 with gold places, 3 with …`."""
        if len(self.spellings) == 1:
            return f"each {_label_words(next(iter(self.spellings)))}"
        return ", ".join(f"{number:,} {_label_words(names)}" for names, number in self.spellings.items())


_LABEL_WORDS = {
    "reference": "a reference answer", "anchors": "gold places in documents", "ids": "gold ids of documents",
    "layers": "labels of several layers", "canonical": "gold in rageval's own spelling",
}  # fmt: skip


def _label_words(names: Sequence[str]) -> str:
    if not names:
        return "without anything that an answer could be compared with"
    return "with " + " and ".join(_LABEL_WORDS[name] for name in names)


def is_document(upload: Upload) -> bool:
    """Return True for a file of another tool's format, whose fields are known and need no choice."""
    path = upload.path(CASES)
    if path.suffix in YAML:
        return True
    if path.suffix == ".csv":
        return False
    with path.open("rb") as file:
        is_list = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["
    if path.suffix == ".json" and not is_list:
        return True
    first = next(iter(_json_rows(path, Report(""))), None)
    form = None if first is None or is_case(first.record) else format_of(first.record)
    return form is not None and bool(form.fields)  # without any, its columns are known by their names


def preview(upload: Upload, part: str = CASES) -> Preview:
    """Return the first rows, with any problems."""
    path, report = upload.path(part), Report(upload.names[part])
    if path.suffix == ".csv":
        return _csv_preview(path, report, upload.separator(part))
    if part == CASES and is_document(upload):
        return Preview([], [])
    records = [row.record for row in islice(_json_rows(path, report), LOOKED_AT)]
    names = list(dict.fromkeys(name for record in records for name in record))
    return Preview(
        names, [[_cell_text(record.get(name)) for name in names] for record in records[:PREVIEWED]], report.problems
    )


def guess_columns(upload: Upload, part: str = CASES) -> list[MappedColumn]:
    """Return the columns of a file with a guessed field each, or raise CaseError if there are too many."""
    columns = preview(upload, part).columns
    if len(columns) > MOST_COLUMNS:
        raise CaseError(
            f"{upload.names[part]}: {len(columns):,} columns, more than the {MOST_COLUMNS:,} that are taken"
        )
    return guess_mapping(columns) if part == CASES else guess_reference_mapping(columns)


Columns = Mapping[str, Sequence[MappedColumn]]


def read_dataset(upload: Upload, columns: Columns, limits: WebLimits) -> DatasetReading:
    """Read the whole upload with the fields chosen for the columns of each part. Store nothing.

    The last reading is kept, so that another look or the saving does not read the files again.
    """
    # The key has the files' times and sizes: another chosen encoding rewrites the files.
    files = [upload.path(part).stat() for part in upload.names]
    key = (
        str(upload.folder),
        tuple((part, tuple(chosen)) for part, chosen in columns.items()),
        tuple((file.st_mtime_ns, file.st_size) for file in files),
    )
    if key not in _READINGS:
        _READINGS.clear()
        _READINGS[key] = _read(upload, columns, limits)
    return _READINGS[key]


_READINGS: dict[object, DatasetReading] = {}
"""The last reading by its upload, columns and files."""


def forget_readings() -> None:
    """Forget the last reading after an upload is confirmed or discarded."""
    _READINGS.clear()


def _read(upload: Upload, columns: Columns, limits: WebLimits) -> DatasetReading:
    report = Report(upload.names[CASES])
    path = upload.path(CASES)
    if is_document(upload):
        return _document(path, report.file, limits)
    partner = None
    if REFERENCES in upload.names:
        references = Report(upload.names[REFERENCES])
        rows = _mapped_rows(upload, REFERENCES, references, columns[REFERENCES], _REFERENCE_COLUMNS)
        partner = Partner(_fitting_rows(rows, references, limits), references, report)
    rows = _fitting_rows(_mapped_rows(upload, CASES, report, columns[CASES], _QUESTION_COLUMNS), report, limits)
    return _reading(cases_of_rows(path, rows, report, partner))


_QUESTION_COLUMNS, _REFERENCE_COLUMNS = (("question", "query"),), (("id",), ("reference",))
"""The required columns: one of each group."""


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _mapped_rows(
    upload: Upload, part: str, report: Report, columns: Sequence[MappedColumn], needed: Sequence[Sequence[str]]
) -> Iterator[Row]:
    """Yield the rows with fields as keys in place of columns."""
    path, names, separator = upload.path(part), column_names(columns), upload.separator(part)
    if path.suffix == ".csv":
        cells: dict[str, Cell] = {**CELLS, **{pseudo_name(position): "text" for position in range(len(columns))}}
        lines = _readable_lines(read_lines(path, report, MAX_LINE_BYTES), report)
        for row in csv_rows(lines, report, cells, needed, MAX_LINE_BYTES, lambda _: names, separator=separator):
            yield row._replace(record=mapped_record(row.record, columns))
        return
    fields = {column.name: name for column, name in zip(columns, names, strict=True)}
    for json_row in _json_rows(path, report):
        renamed = {fields.get(name, name): value for name, value in json_row.record.items()}
        yield json_row._replace(record=mapped_record(renamed, columns))


def _json_rows(path: Path, report: Report) -> Iterator[JsonRow]:
    lines = _readable_lines(read_lines(path, report, MAX_LINE_BYTES), report)
    if path.suffix == ".json":
        return _list_objects("".join(line.text for line in lines), report)
    return json_rows(lines, report)


def _readable_lines(lines: Iterable[FileLine], report: Report) -> Iterator[FileLine]:
    """Yield the lines of a file until too many are unreadable to fix them one by one."""
    for line in lines:
        if report.unread > MOST_BROKEN:
            report.add_unread(line[0], 1, f"more than {MOST_BROKEN:,} rows cannot be read: nothing below was looked at")
            return
        yield line


def _list_objects(text: str, report: Report) -> Iterator[JsonRow]:
    """Yield the objects of a JSON list, each with the line it begins on."""
    try:
        parse(text)
    except StrictJsonError as error:
        offset, message = error.oddities[0]
        report.add_unread(*error.place(offset), f"not valid JSON: {message}")
        return
    decoder, at, line, counted_to = json.JSONDecoder(), text.index("[") + 1, 1, 0
    while (at := _after_space(text, at)) < len(text) and text[at] != "]":
        value, end = decoder.raw_decode(text, at)
        line, counted_to = line + text.count("\n", counted_to, at), at
        if isinstance(value, dict):
            yield JsonRow(line, value, text[at:end])
        else:
            report.add_unread(line, 1, f"is {describe(value)}, expected an object")
        at = end


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def _fitting_rows(rows: Iterable[Row], report: Report, limits: WebLimits) -> Iterator[Row]:
    """Yield the rows with trimmed texts. Report and skip rows with a text that is too long."""
    for number, row in enumerate(rows, start=1):
        if number > limits.upload_rows:
            report.add_unread(row.line, 1, f"the file has more than {limits.upload_rows:,} rows; split it")
            return
        record = trimmed(row.record)
        if findings := _long_text_findings(record, limits):
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
    return {name: _trimmed(item) for name, item in value.items()} if isinstance(value, dict) else value


def long_texts(record: Mapping[str, Json], most: int) -> Iterator[tuple[Place, str]]:
    """Yield the path and the problem of each text that is too long."""
    for path, text in _texts((), dict(record)):
        if len(text) > most:
            yield path, f"has {len(text):,} characters, expected at most {most:,}; shorten it"


def _long_text_findings(record: Mapping[str, Json], limits: WebLimits) -> Findings:
    findings = Findings()
    for path, message in long_texts(record, limits.field_characters):
        findings.add(path, message)
    return findings


def _texts(path: Place, value: Json) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts((*path, name), item)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _texts((*path, position), item)


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _document(path: Path, name: str, limits: WebLimits) -> DatasetReading:
    """Read the cases of another tool's JSON document; its rows are numbered and have no lines."""
    try:
        if path.suffix in YAML:
            _check_yaml(path, name)
        records = read_other(path, name).cases
    except CaseError as error:
        return DatasetReading((), error.problems, {})
    report = Report(name)
    rows = [JsonRow(number, record, json.dumps(record)) for number, record in enumerate(records, start=1)]
    return _reading(cases_of_rows(path, _fitting_rows(rows, report, limits), report))


def _check_yaml(path: Path, name: str) -> None:
    """Raise CaseError for YAML that is slow to read or grows while it is read: large, deep, or with aliases."""
    if (size := path.stat().st_size) > MOST_YAML:
        raise CaseError(f"{name}: has {size:,} bytes, expected at most {MOST_YAML:,} of YAML; save it as JSON")
    try:
        yaml = import_module("yaml")
    except ImportError:
        return  # the reader names what to install
    depth = 0
    try:
        for event in yaml.parse(path.read_text("utf-8", "replace"), Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > MOST_NESTED:
                line = event.start_mark.line + 1
                raise CaseError(f"{name}:{line}:1: has an alias or too deep a nesting; save it as JSON")
    except yaml.YAMLError:
        return  # the reader reports it with its line


def _reading(loaded: CaseFile) -> DatasetReading:
    return DatasetReading(loaded.cases, loaded.problems, loaded.spellings)


def _csv_preview(path: Path, report: Report, separator: str) -> Preview:
    names: list[str] = []

    def naming(header: Sequence[str]) -> list[str]:
        names.extend(name.strip() for name in header)
        return [pseudo_name(position) for position in range(len(header))]

    cells: dict[str, Cell] = {pseudo_name(position): "text" for position in range(1000)}
    lines = read_lines(path, report, MAX_LINE_BYTES)
    read = csv_rows(lines, report, cells, [], MAX_LINE_BYTES, naming, separator=separator)
    rows = list(islice(read, PREVIEWED))
    return Preview(names, [[_cell_text(row.record.get(name)) for name in row.columns] for row in rows], report.problems)


def _cell_text(value: Json) -> str:
    if value is None:
        return ""
    return cut(value, _SHOWN) if isinstance(value, str) else shown_value(value, _SHOWN)


_SHOWN = 300
"""Maximum characters of a cell in a preview."""
