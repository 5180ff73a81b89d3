"""Graded relevance: what each gold id is worth where `gold.relevance` has grades other than 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_rageval.matching.places import relevant_ids
from pytest_rageval.model import Observation


def grades(obs: Observation) -> Sequence[float] | None:
    """Return the grade of each gold, an id without one has 1; None if all golds are worth the same."""
    relevance = obs.gold.relevance
    if not relevance or obs.matching.kind != "ids":
        return None
    by_gold: list[float] = []
    for gold_id in relevant_ids(obs.gold):
        grade = relevance.get(gold_id, 1.0)
        # A gold that is listed is relevant, even if its grade contradicts that.
        by_gold.append(grade if grade > 0 else 1.0)
    return by_gold if set(by_gold) - {1.0} else None


def graded_gains(obs: Observation, by_gold: Sequence[float], k: int) -> dict[int, float]:
    """Return the gain at each rank within the top k: the highest grade of the golds that come there for the first time.

    The gain of a rank is its grade, as in trec_eval's `ndcg`.
    """
    gains: dict[int, float] = {}
    seen: frozenset[int] = frozenset()
    for rank, golds in enumerate(obs.hits[:k], start=1):
        if new := golds - seen:
            gains[rank] = max(by_gold[gold] for gold in new)
            seen |= golds
    return gains


def discounted(gains: dict[int, float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in gains.items())


def graded_ndcg(obs: Observation, by_gold: Sequence[float], k: int) -> float:
    """Return the discounted gain of the top k as a share of that of the golds in the order of their grades."""
    best = dict(enumerate(sorted(by_gold, reverse=True)[:k], start=1))
    return min(1.0, discounted(graded_gains(obs, by_gold, k)) / discounted(best))
