"""A run as CSV and as JSON: line by line, so that it need not be in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_rageval.export.export_source import ExportSource
from pytest_rageval.export.spreadsheet import csv_line
from pytest_rageval.io.json_text import json_text
from pytest_rageval.runs.aggregate import with_aliases


def csv_lines(source: ExportSource) -> Iterator[str]:
    """A row with the names, then a row a case and trial. Texts that a spreadsheet would run are quoted."""
    yield csv_line(source.columns())
    for record in source.records():
        yield csv_line(source.row(record))


def json_lines(source: ExportSource) -> Iterator[str]:
    """The lines of one JSON object: `run_id`, `configuration` (config.json), `aggregates` (metrics.json, null where
    the run did not finish), `cases` (the records of results.jsonl) and, before them, how many cases are left out."""
    yield "{"
    yield f' "schema": 1,\n "run_id": {_strict(source.run.run_id)},'
    yield f' "configuration": {_strict(source.run.config)},'
    yield f' "aggregates": {_strict(source.metrics and with_aliases(source.metrics))},'
    yield f' "cases_left_out": {source.left_out},'
    if source.left_out:
        rest = f"the other {source.left_out} have better scores"
        yield f' "note": {_strict(f"{rest}; rageval export {source.run.run_id} --format json holds all cases")},'
    yield ' "cases": ['
    last = len(source)
    for number, text in enumerate(source.texts(), start=1):
        yield f"  {text}{',' if number < last else ''}"
    yield " ]"
    yield "}"


def _strict(value: Any) -> str:
    return json_text(value, None)
