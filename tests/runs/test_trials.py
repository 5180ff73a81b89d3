"""Several trials come to one case in one way, whether it is decided in a run or read back from its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from stored_runs import a_result, a_row

from pytest_rageval.gates.verdict import over_trials
from pytest_rageval.model import Problem
from pytest_rageval.runs.row import Row, cases_of, in_order


@pytest.mark.parametrize(
    ("trials", "errors", "scores"),
    [
        ([{"mrr": 1.0}], [], {"mrr": 1.0}),
        ([{"mrr": 1.0}, {"mrr": 0.5}, {"mrr": 0.0}], [], {"mrr": 0.5}),
        ([{"mrr": 1.0, "map": 0.5}, {"mrr": 0.0}], [], {"mrr": 0.5, "map": 0.5}),
        ([{}, {"mrr": 0.25}], [], {"mrr": 0.25}),
        ([{"mrr": 1.0}, {}], [1], {}),
        ([{"mrr": 1.0}, {"map": 0.5}, {}], [1, 2], {"map": 0.5}),
    ],
)
def test_a_run_and_its_records_agree_on_what_trials_come_to(
    trials: Sequence[Mapping[str, float]], errors: Sequence[int], scores: Mapping[str, float]
):
    results = [
        replace(a_result(trial=number, error=Problem("timeout", "late") if number in errors else None), scores=of_trial)
        for number, of_trial in enumerate(trials)
    ]
    rows = [
        a_row("q", trial=number, error_kind="timeout" if number in errors else None, **of_trial)
        for number, of_trial in enumerate(trials)
    ]
    stands, of_run = over_trials(results, lambda result: result.error is not None)
    (row,) = cases_of(rows)
    assert of_run == row.scores == scores
    assert stands.trial == row.trial == (errors[0] if errors else 0)


def test_a_mean_over_trials_does_not_depend_on_their_order():
    def is_error(row: Row) -> bool:
        return row.error_kind is not None

    rows = [a_row("q", trial=number, mrr=score) for number, score in enumerate([0.1, 0.2, 0.3, 0.7])]
    assert over_trials(rows, lambda row: False)[1] == over_trials(rows[::-1], lambda row: False)[1]


def test_rows_come_by_case_and_trial_and_of_one_recorded_twice_the_last():
    recorded = [a_row("b", 1), a_row("a", 0, mrr=0.0), a_row("b", 0), a_row("a", 0, mrr=1.0), a_row("c", 0)]
    rows = in_order(recorded)
    assert [(row.key, row.trial) for row in rows] == [("a", 0), ("b", 0), ("b", 1), ("c", 0)]
    assert rows[0].scores == {"mrr": 1.0}
    assert in_order(rows) == rows
    assert in_order([]) == []
