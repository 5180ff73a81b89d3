"""One case of a stored run, finished or not: its records, its observation, and the content of its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_rageval.compare.case_diff import representative_trial
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.page.case_view import RunView, case_view
from pytest_rageval.page.page_run import compared_side
from pytest_rageval.page.run_cases import CaseLines, CaseTexts, ListedCase, read_case_lines
from pytest_rageval.runs.disk.reader import StoredRun
from pytest_rageval.runs.row import Row, cases_of


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """A case with what its run keeps of it.

    case         as lists of cases hold it, compared with nothing
    record       of the trial that shows the outcome
    observation  the line of observations.jsonl for it; None where the run keeps none
    view         the content of its page
    """

    case: ListedCase
    record: Mapping[str, Any]
    observation: Mapping[str, Any] | None
    view: Mapping[str, Any]


def recorded_case_of(run: StoredRun, last: Mapping[str, Any], registry: Registry, baseline: Path) -> RecordedCase:
    """The case of its `last` record in the run. `baseline`: the file of the project's baseline."""
    key = last["case_key"]
    # Of a run that died, a worker's file may hold the record.
    lines = read_case_lines(run, {key}).get(key) or CaseLines({last["trial"]: last}, {})
    record = representative_trial(lines.records)
    [row] = cases_of(map(Row.of, lines.records.values()))
    source = record.get("source") or {}
    place = f"{source['file']}:{source['line']}" if source.get("file") else ""
    case = ListedCase(row, CaseTexts("", "", place, len(lines.records)), "same", 0.0, None, 1.0)
    metrics = (run.metrics or {}).get("metrics", {})
    view = case_view(case, lines, _earlier(run, key, baseline), RunView(run.run_id, run.config, metrics, registry, {}))
    return RecordedCase(case, record, lines.observations.get(record["trial"]), view)


def _earlier(run: StoredRun, key: str, baseline: Path) -> CaseLines | None:
    """The case in the run with which this one was compared, where that keeps records, and the two could be compared."""
    comparison = (run.metrics or {}).get("comparison")
    if comparison is None or not comparison["compared"] or key in comparison["changed_cases"]:
        return None
    side = compared_side(run, run.path.parent.parent, baseline)
    return read_case_lines(side.run, {key}).get(key) if side and side.run and side.has_records else None
