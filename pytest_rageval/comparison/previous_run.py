"""A run beside the complete run before it, whatever the baseline is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_rageval.comparison.baseline import Baseline
from pytest_rageval.comparison.verdicts import compare_cases
from pytest_rageval.errors import SettingsError
from pytest_rageval.plan import Plan
from pytest_rageval.runs.columns import CaseColumns
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.row import CaseScores, Row
from pytest_rageval.runs.run_ref import in_time

Cases = Mapping[str, CaseScores] | Mapping[str, Row]
"""Outcome and scores of each case of a run, by key."""
LOOKED_AT = 20
"""Runs before this one among which the last complete one is looked for."""


def compare_with_previous(run: StoredRun, cases: Cases, plan: Plan) -> Mapping[str, Any] | None:
    """What `comparison` in metrics.json would hold were the previous run the baseline; None without such a run."""
    for earlier in _earlier(run):
        try:
            if earlier.state == "complete" and earlier.scores is not None:
                return _compared(run, CaseColumns.of(cases), earlier, earlier.scores.cases, plan)
        except SettingsError:
            continue  # damaged: the one before it says more than an error about a run that nobody asked for
    return None


def _earlier(run: StoredRun) -> Iterator[StoredRun]:
    """The runs that were begun before this one, the last one first."""
    folders: list[Path] = in_time(run.path.parent)
    before = folders[: folders.index(run.path)] if run.path in folders else []
    return islice(map(StoredRun, reversed(before)), LOOKED_AT)


def _compared(run: StoredRun, now: CaseColumns, earlier: StoredRun, was: CaseColumns, plan: Plan) -> Mapping[str, Any]:
    baseline = Baseline(earlier.path, earlier.finished_metrics, was, earlier.config)
    return compare_cases(run.finished_metrics, run.config, now, baseline, plan).content
