"""Cases whose score in a metric fell since the other run: what caused a regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.page.run_cases import EarlierScores, ListedCase
from pytest_rageval.runs.case_columns import CaseColumns


class Fall(NamedTuple):
    """One case in one metric: how far it fell as a share of the scale, negative; its number in the list; its scores."""

    share: float
    number: int
    before: float
    after: float


def falls_by_metric(
    cases: Sequence[ListedCase],
    before: CaseColumns,
    metrics: Mapping[str, Mapping[str, Any]],
    names: Mapping[str, str],
) -> dict[str, list[Fall]]:
    """By metric the falls, the largest first. `names`: metrics of the other run by what they are called in this one."""
    earlier = EarlierScores.of(before, names)
    widths = {name: signed_width(metric) for name, metric in metrics.items()}
    falls: dict[str, list[Fall]] = {}
    for number, case in enumerate(cases):
        for name, was, now in earlier.moved(case.row) if case.drop < 0 else ():
            if name in widths and (share := (now - was) / widths[name]) < 0:
                falls.setdefault(name, []).append(Fall(share, number, was, now))
    return {name: sorted(falls[name]) for name in sorted(falls)}


def signed_width(metric: Mapping[str, Any]) -> float:
    """Return the width of a metric's scale, negative if lower is better."""
    low, high = metric["scale"]
    return float(high - low) if metric["better"] == "higher" else float(low - high)
