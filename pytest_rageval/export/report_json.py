"""report.json: configuration, aggregates and cases of a run for other programs, written when it ends."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from typing import Any

from pytest_rageval.compare.previous_run import Cases
from pytest_rageval.export.csv_and_json import json_lines
from pytest_rageval.export.export_source import look_through
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.runs.aggregate import normalised
from pytest_rageval.runs.case_columns import CaseColumns
from pytest_rageval.runs.disk.reader import StoredRun
from pytest_rageval.runs.row import CaseScores

REPORT = "report.json"
MOST_CASES = 5_000
"""With more cases it holds the worst: a file of hundreds of megabytes is not what a dashboard opens."""


def write_report_json(run: StoredRun, cases: Cases) -> str | None:
    """Write the report.json of a finished run; a line for people where the disk refuses."""
    if not cases:
        return None
    source = look_through(run, only=_worst(cases, run.finished_metrics["metrics"]))
    try:
        write_lines(run.path / REPORT, json_lines(source))
    except OSError as error:
        remedy = f"`rageval export {run.run_id} --format json` does it when it can"
        return f"{REPORT} cannot be written: {error.strerror}; {remedy}"
    return None


def _worst(cases: Cases, metrics: Mapping[str, Any]) -> frozenset[str] | None:
    """Keys of the cases with the worst scores, failed ones and errors first; None where there is room for all."""
    if len(cases) <= MOST_CASES:
        return None
    columns = CaseColumns.of(cases)
    ranked = ((*_badness(case, metrics), key) for key, case in zip(columns.case_keys, columns.in_turn(), strict=True))
    return frozenset(key for *_, key in heapq.nsmallest(MOST_CASES, ranked))


def _badness(case: CaseScores, metrics: Mapping[str, Any]) -> tuple[int, float]:
    """The lower, the worse: its outcome, then the mean of its scores as 0 to 1 with higher better (1 without any)."""
    rank = 0 if case.outcome in ("error", "failed") else 1 if case.is_bad else 2
    shares = [normalised(value, metrics[name]["scale"], metrics[name]["better"]) for name, value in case.scores.items()]
    return rank, math.fsum(shares) / len(shares) if shares else 1.0
