"""The line of a gate says what moved, what it tolerates, how sure that is, and which switch decided."""

from __future__ import annotations

from typing import Any

import pytest
from stored_runs import a_plan, compared, some_rows

from pytest_rageval.comparison.gate_lines import evidence, gate_line, is_warning
from pytest_rageval.config.tables import Regression


def a_gate(before: int, after: int, *, drop: float = 0.05, significant: bool = False):
    """The gate on a share of 30 cases."""
    regression = [Regression(metric="recall_any@5", max_drop=drop, significant=significant)]
    plan = a_plan("recall_any", regression=regression)
    first, second = (some_rows("recall_any_at_5", [1.0] * found + [0.0] * (30 - found)) for found in (before, after))
    return compared(first, second, plan).gates[0]


def test_a_regression_in_one_line():
    line = gate_line(a_gate(30, 20))
    assert line.startswith("recall_any@5 1 → 0.6667, tolerated drop 0.05: regressed · 95 % -0.495 to -0.13")
    assert line.endswith(", p 0.00098, n 30, detectable 0.27")
    assert len(line) <= 120


@pytest.mark.parametrize(
    ("significant", "said"),
    [(False, "may be noise, fails (significant = false)"), (True, "may be noise, holds (significant = true)")],
)
def test_what_may_be_noise_says_which_switch_decided(significant: bool, said: str):
    gate = a_gate(30, 27, significant=significant)
    assert f"tolerated drop 0.05: {said} · " in gate_line(gate)
    assert len(gate_line(gate)) <= 140
    gain = gate_line(a_gate(20, 23, significant=significant))
    assert ": beyond tolerance, may be noise · " in gain, "a gain names no switch"


def test_a_gate_that_holds_warns_of_what_is_worse_only():
    assert is_warning(a_gate(30, 20, drop=0.5))
    assert is_warning(a_gate(30, 27, significant=True))
    assert not is_warning(a_gate(20, 30, drop=0.5))
    assert not is_warning(a_gate(30, 30))


def test_what_cannot_be_said_is_a_dash_and_what_is_tiny_is_no_zero():
    change = {"n_paired": 1, "n_unmeasured": 2, "ci": None, "p_adjusted": 1.0, "detectable": None}
    assert evidence(change) == "95 % –, p 1, n 1 (2 more unmeasured now), detectable –"
    assert "p < 0.0001" in evidence(change | {"p_adjusted": 1e-9})
    assert evidence(change | {"n_paired": 0}) == ""


NOT_MEASURED = {"metric": "mrr", "op": "drop", "limit": 0.1, "value": None, "verdict": "unmeasured", "passed": False}
ABSOLUTE = {"metric": "recall_any@5", "op": ">=", "limit": 0.85, "value": 0.61, "passed": False}


@pytest.mark.parametrize(
    ("gate", "line"),
    [
        (
            NOT_MEASURED,
            "mrr was not measured on both sides: no case has it in the baseline and in this run; tolerated drop 0.1",
        ),
        (ABSOLUTE, "recall_any@5 is 0.61, gate >= 0.85"),
        (ABSOLUTE | {"value": None}, "recall_any@5 has no value in this run, gate >= 0.85"),
    ],
)
def test_a_gate_without_a_change_shows_none(gate: dict[str, Any], line: str):
    assert gate_line(gate) == line
    assert not is_warning(gate)
