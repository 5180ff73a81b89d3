"""A gate that needs significance goes by its own metric: what else is measured does not decide about the build."""

from __future__ import annotations

from typing import Any

import pytest
from stored_runs import a_plan, a_row, compared

from pytest_rageval.comparison.gate_lines import evidence
from pytest_rageval.config.tables import Regression

OTHERS = ("mrr", "ndcg@5", "precision@5", "token_f1", "exact_match", "token_recall")


@pytest.mark.parametrize("others", [(), OTHERS], ids=["alone", "among others that moved by chance"])
def test_other_metrics_do_not_decide_about_a_gate(others: tuple[str, ...]):
    """Five of 42 cases lost a gold: p is 0.03 alone, and 0.06 or more where it is adjusted for many metrics."""
    gate = Regression(metric="recall_any@5", max_drop=0.05, significant=True)
    plan = a_plan("recall_any@5", *others, regression=[gate])

    def rows(lost: int, changes: int):
        scores = {name.replace("@", "_at_"): 1.0 for name in others}
        found = []
        for number in range(42):
            # The others rise as often as they fall.
            moved: dict[str, Any] = {name: float(number % 2) for name in scores} if number < changes else dict(scores)
            found.append(a_row(f"q{number:02}", recall_any_at_5=float(number >= lost), **moved))
        return found

    comparison = compared(rows(0, 1), rows(5, 6), plan)
    [result] = comparison.gates
    assert (result["verdict"], result["passed"], result["decided_by"]) == ("regressed", False, "own p")
    assert result["p"] == pytest.approx(0.031, abs=0.001)
    assert "p 0.031" in evidence(result)
    low, high = result["ci"]
    assert low < high < 0
