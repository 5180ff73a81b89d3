"""Checks at the end of a run: what fails it besides the gates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_rageval.comparison.compared_sides import Comparison
from pytest_rageval.comparison.verdict_reasons import JUDGING
from pytest_rageval.comparison.verdict_sentence import NOT_COMPARABLE, not_comparable
from pytest_rageval.gates.gate import is_meant_for
from pytest_rageval.io.suggestions import listed
from pytest_rageval.run.extent import Extent
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.decision_hash import labelled_case
from pytest_rageval.runs.reservations import has_left_out_judge
from pytest_rageval.runs.row import Row
from pytest_rageval.text import counted


def run_problems(
    plan: Plan,
    extent: Extent,
    rows: Sequence[Row],
    comparison: Comparison | None,
    lost: Sequence[str],
    *,
    is_partial: bool,
) -> Iterator[tuple[str, str]]:
    """Yield what fails the run besides gates: name and message."""
    if lost and not extent.is_ended_early:
        yield "completeness", f"{counted(len(lost), 'case')} collected without a result: {listed(lost)}"
    if extent.damage is not None:
        yield "records", extent.damage
    if extent.uncounted:
        yield (
            "verdicts",
            f"{counted(len(extent.uncounted), 'case')} failed or ended in an error, and pytest did not count it so: "
            f"{listed(extent.uncounted)}; a hook (conftest.py, a plugin) changes reports",
        )
    elif extent.overcounted:
        yield (
            "verdicts",
            f"{counted(len(extent.overcounted), 'case')} passed when run again after a worker died, and pytest counted "
            f"the death as an error: {listed(extent.overcounted)}; --dist load runs no case again",
        )
    # Examined is a case that got further than a skip or an xfail of its setup (a fixture's, or `run=False`).
    unexamined = [row.outcome for row in rows if row.outcome == "skipped" or _is_xfailed_early(row)]
    if rows and len(unexamined) == len(rows):
        reasons = listed(sorted({row.message for row in rows if row.message}))
        ending = "skipped" + (", or xfailed before a gate had looked" if "xfailed" in unexamined else "")
        yield "examined", f"no case was examined, all {len(rows)} were {ending}: {reasons or 'no reason is known'}"
    if not is_partial:
        yield from _unmeasured(plan, rows)
    settings = plan.settings
    if (
        comparison
        and comparison.problems
        and not (is_partial or settings.update_baseline or settings.ignore_invariants)
    ):
        yield NOT_COMPARABLE, not_comparable(comparison.problems)


def judging_problem(metrics: Mapping[str, Any]) -> dict[str, str]:
    """Return the problem of a run whose judge could not be asked; empty if it could."""
    if not has_left_out_judge(metrics):
        return {}
    # Without the run's id: two runs with the same records have the same verdict.
    return {JUDGING: "the judge could not be asked; `rageval judge RUN --judge SPEC` judges the answers later"}


def _is_xfailed_early(row: Row) -> bool:
    return row.outcome == "xfailed" and not row.gates_examined


def _unmeasured(plan: Plan, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Yield the written gates that measured no case: an unmeasured gate does not pass."""
    measured = {measure.name for measure in plan.measures}
    for gate in plan.case_gates:
        if gate.is_default or gate.name not in measured:
            continue
        groups = {id(row.groups): row.groups for row in rows if gate.name in row.scores}  # rows share theirs
        meant = replace(gate, unless=())
        if not any(is_meant_for(meant, *labelled_case(each)) for each in groups.values()):
            name = f"{gate} when {gate.condition}" if gate.when else str(gate)
            yield name, f"unmeasured: no case that the gate is for has a value of {gate.name}; each case says why"
