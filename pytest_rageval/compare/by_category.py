"""Outcomes and means of each category before and after, over the cases of both sides."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from pytest_rageval.runs.case_columns import CaseColumns, Column, SharedCases, shared_cases, values_at
from pytest_rageval.runs.disk.score_table import Scores


def by_category(before: Scores, after: Scores, flips: Mapping[str, Collection[str]]) -> dict[str, Any] | None:
    """By category outcomes, flips, and of each metric the means over the cases scored on both sides.

    None where neither side knows categories.
    """
    shared = shared_cases(before.cases, after.cases)
    categories = _categories(shared, after.categories or before.categories)
    return {
        name: _outcomes(members, before.cases, after.cases)
        | {flip: sum(key in keys for key in members.keys) for flip, keys in flips.items()}
        | {"metrics": _metrics(members, before.cases, after.cases)}
        for name, members in sorted(categories.items())
    } or None


def _categories(shared: SharedCases, categories: Mapping[str, str]) -> dict[str, SharedCases]:
    """The shared cases of each category; those without one are left out."""
    names = list(map(categories.get, shared.keys))
    if len({*names}) == 1:  # nothing to divide, and nothing to look up
        return {name: shared for name in names[:1] if name is not None}
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        if name is not None:
            numbers.setdefault(name, []).append(number)
    return {
        name: SharedCases(values_at(shared.keys, at), values_at(shared.before, at), values_at(shared.after, at))
        for name, at in numbers.items()
    }


def _outcomes(shared: SharedCases, before: CaseColumns, after: CaseColumns) -> dict[str, Any]:
    was, now = values_at(before.outcomes, shared.before), values_at(after.outcomes, shared.after)
    return {
        "cases": len(was),
        "passed_before": was.count("passed"),
        "passed_after": now.count("passed"),
    }


def _metrics(shared: SharedCases, before: CaseColumns, after: CaseColumns) -> dict[str, Any]:
    by_name = {
        name: _means(values_at(before.scores[name], shared.before), values_at(after.scores[name], shared.after))
        for name in sorted(before.scores.keys() & after.scores.keys())
    }
    return {name: means for name, means in by_name.items() if means}


def _means(was: Column, now: Column) -> dict[str, Any] | None:
    if None in was or None in now:
        scored = [pair for pair in zip(was, now, strict=True) if None not in pair]
        was, now = [pair[0] for pair in scored], [pair[1] for pair in scored]
    if not was:
        return None
    n = len(was)
    # What may be None was left out above, which a type checker does not see.
    mean_was, mean_now = math.fsum(filter(None, was)) / n, math.fsum(filter(None, now)) / n
    return {"before": mean_was, "after": mean_now, "delta": mean_now - mean_was, "n": n}
