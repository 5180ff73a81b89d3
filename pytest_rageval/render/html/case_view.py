"""The views of cases, from the files of a run: of a page, and of one case alone."""

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
    """Yield the view of each of these cases; None of one without a record, nothing if no records are kept."""
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

    case         as lists of cases hold it, compared with nothing
    record       of the trial that shows the outcome
    observation  the line of observations.jsonl for it; None where the run keeps none
    """

    case: ListedCase
    record: Mapping[str, Any]
    observation: Mapping[str, Any] | None
    view: CaseView


def recorded_case_of(run: StoredRun, last: Mapping[str, Any], registry: Registry, baseline: Path) -> RecordedCase:
    """The case of its `last` record in the run. `baseline`: the file of the project's baseline."""
    key = last["case_key"]
    # Of a run that died, a worker's file may hold the record.
    lines = read_case_lines(run, {key}).get(key) or CaseLines({last["trial"]: last}, {})
    record = representative_trial(lines.records)
    [row] = cases_of(map(Row.of, lines.records.values()))
    metrics = (run.metrics or {}).get("metrics", {})
    context = CaseContext(run.run_id, run.config, metrics, registry, {})
    view = case_view(lines, _earlier(run, key, baseline), "same", context)
    case = ListedCase(row, CaseTexts("", "", view.place, len(lines.records)), "same", 0.0, None, 1.0)
    return RecordedCase(case, record, lines.observations.get(record["trial"]), view)


def _earlier(run: StoredRun, key: str, baseline: Path) -> CaseLines | None:
    """The case in the run with which this one was compared, where that keeps records, and the two could be compared."""
    comparison = (run.metrics or {}).get("comparison")
    if comparison is None or not comparison["compared"] or key in comparison["changed_cases"]:
        return None
    side = compared_side(run, run.path.parent.parent, baseline)
    return read_case_lines(side.run, {key}).get(key) if side and side.run and side.has_records else None
