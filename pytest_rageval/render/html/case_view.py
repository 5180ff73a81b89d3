"""The views of cases, from the files of a run: all cases of a page, or one case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_rageval.comparison.case_diff import CaseLines, representative_trial
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.render.html.page_run import PageRun, compared_side
from pytest_rageval.render.html.run_cases import CaseTexts, ListedCase, read_answers, read_case_lines
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.row import Row, cases_of
from pytest_rageval.views.case import CaseContext, CaseView, case_view


def case_views(page: PageRun, cases: Sequence[ListedCase]) -> Iterator[CaseView | None]:
    """Yield the view of each of these cases: None for one without a record, nothing if no records are kept."""
    keys = {case.key for case in cases}
    lines = read_case_lines(page.side.run, keys, page.damages) if page.side.run and page.side.has_records else {}
    other = page.before if page.compared else None
    before = read_answers(other, keys, page.damages) if other else {}
    metrics, other_id = page.metrics["metrics"], other.run_id if other else None
    context = CaseContext(page.run_id, page.config, metrics, page.registry, page.names, other_id)
    for case in cases if lines else ():
        yield case_view(lines[case.key], before.get(case.key), case.change, context) if case.key in lines else None


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """A case with what its run keeps of it.

    case         the list entry, without a comparison
    record       the record of the trial that decides the outcome
    observation  its line of observations.jsonl; None if the run keeps none
    """

    case: ListedCase
    record: Mapping[str, Any]
    observation: Mapping[str, Any] | None
    view: CaseView


def recorded_case_of(run: StoredRun, last: Mapping[str, Any], registry: Registry, baseline: Path) -> RecordedCase:
    """Return the case of its `last` record in the run. `baseline`: the file of the project's baseline."""
    key = last["case_key"]
    # The record of a killed run can be in a worker's file.
    lines = read_case_lines(run, {key}).get(key) or CaseLines({last["trial"]: last}, {})
    record = representative_trial(lines.records)
    [row] = cases_of(map(Row.of, lines.records.values()))
    metrics = (run.metrics or {}).get("metrics", {})
    context = CaseContext(run.run_id, run.config, metrics, registry, {})
    view = case_view(lines, _earlier(run, key, baseline), "same", context)
    case = ListedCase(row, CaseTexts("", "", view.place, len(lines.records)), "same", 0.0, None, 1.0)
    return RecordedCase(case, record, lines.observations.get(record["trial"]), view)


def _earlier(run: StoredRun, key: str, baseline: Path) -> CaseLines | None:
    """Return the case in the run that this one was compared with, if that run keeps records and was comparable."""
    comparison = (run.metrics or {}).get("comparison")
    if comparison is None or not comparison["compared"] or key in comparison["changed_cases"]:
        return None
    side = compared_side(run, run.path.parent.parent, baseline)
    return read_case_lines(side.run, {key}).get(key) if side and side.run and side.has_records else None
