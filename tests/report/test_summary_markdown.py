"""summary.md: shares of cases, and when an interval stands beside them."""

from __future__ import annotations

import pytest

from pytest_rageval.report.summary_markdown import _share


@pytest.mark.parametrize(
    ("passed", "total", "text"),
    [(0, 0, ""), (3, 4, " (75 %)"), (4, 5, " (80 %, 95 % within 38 to 96 %)")],
)
def test_the_share_of_passed_cases_has_an_interval_from_five_cases_on(passed: int, total: int, text: str):
    assert _share({"total_tests": total, "outcomes": {"passed": passed}}) == text
