"""Cases whose score in a metric fell since the other run: what caused a regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.page.run_cases import ListedCase
from pytest_rageval.runs.row import CaseScores


class Fall(NamedTuple):
    """One case in one metric: how far it fell as a share of the scale, negative; its number in the list; its scores."""

    share: float
    number: int
    before: float
    after: float


def falls_by_metric(
    cases: Sequence[ListedCase],
    earlier: Mapping[str, CaseScores],
    metrics: Mapping[str, Mapping[str, Any]],
    names: Mapping[str, str],
) -> dict[str, list[Fall]]:
    """By metric the falls, the largest first. `names`: metrics of the other run by what they are called in this one."""
    old_names = {new: old for old, new in names.items()}
    # (name now, name before, width of the scale with the sign of its better end)
    measures = [(name, old_names.get(name, name), _signed_width(metric)) for name, metric in metrics.items()]
    falls: dict[str, list[Fall]] = {}
    for number, case in enumerate(cases):
        was = earlier[case.key].scores if case.key in earlier else {}
        now = case.row.scores
        if was == now:
            continue
        for name, old_name, width in measures:
            if name in now and old_name in was and (now[name] - was[old_name]) / width < 0:
                share = (now[name] - was[old_name]) / width
                falls.setdefault(name, []).append(Fall(share, number, was[old_name], now[name]))
    return {name: sorted(falls[name]) for name in sorted(falls)}


def _signed_width(metric: Mapping[str, Any]) -> float:
    low, high = metric["scale"]
    return float(high - low) if metric["better"] == "higher" else float(low - high)
