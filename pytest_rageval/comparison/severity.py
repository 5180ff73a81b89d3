"""The severity of cases: scores as 0 to 1 where higher is better, and the order of newly failing cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from pytest_rageval.comparison.changes import signed_width
from pytest_rageval.runs.aggregate import normalised
from pytest_rageval.runs.columns import CaseColumns, Column

Shares = Mapping[str, Callable[[float], float]]
"""By metric, a function that returns a score as 0 to 1 where higher is better."""


def shares_of(metrics: Mapping[str, Mapping[str, Any]]) -> Shares:
    """Return these functions for the metrics in metrics.json; `float` for scores that are such shares already."""
    shares: dict[str, Callable[[float], float]] = {}
    for name, metric in metrics.items():
        if "unit" in metric:
            continue  # an amount is no share of anything
        low, high = metric["scale"]
        if (low, high) == (0, 1) and metric["better"] == "higher":
            shares[name] = float
        else:
            shares[name] = partial(normalised, scale=metric["scale"], better=metric["better"])
    return shares


def mean_share(scores: Mapping[str, float], shares: Shares) -> float:
    """Return the mean of the scores as 0 to 1 where higher is better; 1 without scores."""
    levels = [shares[name](score) for name, score in scores.items() if name in shares]
    return math.fsum(levels) / len(levels) if levels else 1.0


def worst_first(
    keys: Iterable[str], before: CaseColumns, after: CaseColumns, metrics: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Sort cases in the order of every report: the largest fall first, then the lowest scores, then the name."""
    shares = shares_of(metrics)
    names = before.scores.keys() & after.scores.keys() & shares.keys()
    columns = [(before.scores[name], after.scores[name], signed_width(metrics[name])) for name in names]

    def severity(key: str) -> tuple[float, float, str]:
        place_before = before.places[key]
        place_after = after.places[key]
        largest_fall = 0.0
        for scores_before, scores_after, width in columns:
            was = scores_before[place_before]
            now = scores_after[place_after]
            if was is not None and now is not None:
                largest_fall = min(largest_fall, (now - was) / width)
        return largest_fall, mean_share(after[key].scores, shares), key

    return sorted(keys, key=severity)


def levels_of(columns: CaseColumns, shares: Shares) -> Iterator[float | None]:
    """Yield the mean of each case's scores as 0 to 1; None without scores."""
    turned: list[Column] = []
    for name, column in columns.scores.items():
        if name in shares:
            turned.append(_as_shares(column, shares[name]))
    if not turned:
        yield from [None] * len(columns)
        return
    for scores in zip(*turned, strict=True):
        present = [score for score in scores if score is not None] if None in scores else scores
        yield math.fsum(present) / len(present) if present else None


def _as_shares(column: Column, share: Callable[[float], float]) -> Column:
    """Return the scores of a metric as 0 to 1, where higher is better."""
    if share is float:
        # Most metrics have this scale already: their columns need no copy.
        return column
    return [None if score is None else share(score) for score in column]
