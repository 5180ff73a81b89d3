"""A run as JSON for other programs, line by line, and the report.json of a finished run."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_rageval.comparison.compared_sides import Cases
from pytest_rageval.comparison.severity import mean_share, shares_of
from pytest_rageval.export.export_source import ExportSource
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.io.json_text import json_text
from pytest_rageval.runs.aggregate import with_aliases
from pytest_rageval.runs.columns import CaseColumns
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import RESULTS
from pytest_rageval.runs.records.record_files import row_places

REPORT = "report.json"
MOST_CASES = 5_000
"""Of more cases, report.json holds the worst: dashboards cannot open files of hundreds of megabytes."""


def write_report_json(run: StoredRun, cases: Cases) -> str | None:
    """Write the report.json of a finished run; return a line for people if the disk refuses."""
    if not cases:
        return None
    places = row_places(run.path / RESULTS)
    left_out = 0
    worst = _worst(cases, run.finished_metrics["metrics"])
    if worst is not None:
        places = {(key, trial): place for (key, trial), place in places.items() if key in worst}
        left_out = len(cases) - len(worst)
    source = ExportSource(
        run, run.metrics, measured=(), judged=(), places=places, full=None, notes=(), left_out=left_out
    )
    try:
        write_lines(run.path / REPORT, json_lines(source))
    except OSError as error:
        remedy = f"`rageval export {run.run_id} --format json` does it when it can"
        return f"{REPORT} cannot be written: {error.strerror}; {remedy}"
    return None


def _worst(cases: Cases, metrics: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the keys of the cases with the worst scores, failed ones and errors first; None if all fit."""
    if len(cases) <= MOST_CASES:
        return None
    columns = CaseColumns.of(cases)
    shares = shares_of(metrics)
    ranks = {"error": 0, "failed": 0, "xfailed": 1}
    ranked = (
        (ranks.get(case.outcome, 2), mean_share(case.scores, shares), key)
        for key, case in zip(columns.case_keys, columns.in_turn(), strict=True)
    )
    worst = heapq.nsmallest(MOST_CASES, ranked)
    return frozenset(key for _rank, _share, key in worst)


def json_lines(source: ExportSource) -> Iterator[str]:
    """Yield the lines of one JSON object with `run_id`, `configuration` (config.json), `aggregates` and `cases`.

    `aggregates` is metrics.json, or null if the run did not finish; `cases` are the records of results.jsonl.
    """
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
