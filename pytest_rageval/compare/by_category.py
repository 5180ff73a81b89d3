"""Outcomes and means of each category before and after, over the cases of both sides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pytest_rageval.runs.disk.score_table import Column, Scores

Places = list[tuple[int, int]]
"""Where cases stand in the columns before and after."""


def by_category(before: Scores, after: Scores) -> dict[str, Any] | None:
    """By category outcomes, flips, and of each metric the means over the cases scored on both sides.

    None where neither side knows categories.
    """
    categories = after.categories or before.categories
    was = {key: place for place, key in enumerate(before.cases)}
    places: dict[str, Places] = {}
    keys: dict[str, list[str]] = {}
    for place, key in enumerate(after.cases):
        if key in was and key in categories:
            places.setdefault(categories[key], []).append((was[key], place))
            keys.setdefault(categories[key], []).append(key)
    return {
        name: _outcomes(keys[name], before, after) | {"metrics": _metrics(places[name], before, after)}
        for name in sorted(places)
    } or None


def _outcomes(keys: Sequence[str], before: Scores, after: Scores) -> dict[str, Any]:
    pairs = [(before.cases[key], after.cases[key]) for key in keys]
    return {
        "cases": len(pairs),
        "passed_before": sum(was.outcome == "passed" for was, _ in pairs),
        "passed_after": sum(now.outcome == "passed" for _, now in pairs),
        "flipped_to_fail": sum(now.is_bad and not was.is_bad for was, now in pairs),
        "flipped_to_pass": sum(was.is_bad and now.outcome == "passed" for was, now in pairs),
    }


def _metrics(places: Places, before: Scores, after: Scores) -> dict[str, Any]:
    by_name = {
        name: _means(before.columns[name], after.columns[name], places)
        for name in sorted(before.columns.keys() & after.columns.keys())
    }
    return {name: means for name, means in by_name.items() if means}


def _means(before: Column, after: Column, places: Places) -> dict[str, Any] | None:
    was, now = [before[place] for place, _ in places], [after[place] for _, place in places]
    if None in was or None in now:
        scored = [pair for pair in zip(was, now, strict=True) if None not in pair]
        was, now = [pair[0] for pair in scored], [pair[1] for pair in scored]
    if not was:
        return None
    n = len(was)
    # What may be None was left out above, which a type checker does not see.
    mean_was, mean_now = math.fsum(filter(None, was)) / n, math.fsum(filter(None, now)) / n
    return {"before": mean_was, "after": mean_now, "delta": mean_now - mean_was, "n": n}
