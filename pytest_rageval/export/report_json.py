"""A run as JSON for other programs, line by line, and the report.json of a finished run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_rageval.comparison.compared_sides import Cases
from pytest_rageval.export.export_source import ExportSource
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.io.json_text import json_text
from pytest_rageval.runs.flat_aggregates import with_aliases
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import RESULTS
from pytest_rageval.runs.records.record_files import row_places

REPORT = "report.json"
MOST_CASES = 1_000
"""Cases of a run that writes report.json by itself: it repeats results.jsonl, a quarter of a folder of 10,000 cases."""


def write_report_json(run: StoredRun, cases: Cases) -> str | None:
    """Write the report.json of a finished run; return a line for people if the disk refuses.

    Of a larger run, replace only one that was exported before, which would be out of date.
    """
    path = run.path / REPORT
    is_wanted = len(cases) <= MOST_CASES or path.exists()
    if not cases or not is_wanted:
        return None
    places = row_places(run.path / RESULTS)
    source = ExportSource(run, run.metrics, measured=(), judged=(), places=places, full=None, calls=None, notes=())
    try:
        write_lines(path, json_lines(source))
    except OSError as error:
        remedy = f"`rageval export {run.run_id} --format report` does it when it can"
        return f"{REPORT} cannot be written: {error.strerror}; {remedy}"
    return None


def json_lines(source: ExportSource) -> Iterator[str]:
    """Yield the lines of one JSON object with `run_id`, `configuration` (config.json), `aggregates` and `cases`.

    `aggregates` is metrics.json, or null if the run did not finish; `cases` are the records of results.jsonl.
    """
    yield "{"
    yield f' "schema": 1,\n "run_id": {_strict(source.run.run_id)},'
    yield f' "configuration": {_strict(source.run.config)},'
    yield f' "aggregates": {_strict(source.metrics and with_aliases(source.metrics))},'
    yield ' "cases": ['
    last = len(source)
    for number, text in enumerate(source.texts(), start=1):
        yield f"  {text}{',' if number < last else ''}"
    yield " ]"
    yield "}"


def _strict(value: Any) -> str:
    return json_text(value, None)
