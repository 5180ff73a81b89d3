"""Answers that take clearly longer than in the run before: said in one line, and never a failure by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from statistics import median
from typing import Any

from pytest_rageval.comparison.case_diff import Record
from pytest_rageval.comparison.operation_changes import timed_otherwise

LATENCY = "latency_ms"
CLEARLY = 1.25
"""How many times as long answers take at least: less is the difference of two machines, or of two hours of a day."""
BEYOND_NOISE = 1.1
"""How many times as long they take at the low end of the interval: a bit more than for two equal systems."""
LEAST_MS = 100.0
"""Difference of the medians that a person notices (Nielsen 1993, "Usability Engineering": a tenth of a second).

Less may be the load of the machine: functions of a millisecond then take 20 ms, all of them, as if they were slower.
"""
FEWEST = 10
"""Cases: of fewer, two slow calls decide about the median."""
MOST = 2000
"""Cases that are compared: more would not change the medians, and their records have to be read."""
Z_95 = 1.96


def slower_answers(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    shared: Set[str],
    records_before: Callable[[Set[str]], Mapping[str, Record]],
    records_after: Callable[[Set[str]], Mapping[str, Record]],
) -> dict[str, float] | None:
    """Return by how much longer the cases of both runs took, beyond noise; None if they did not, or none is known.

    before, after                  the contents of both metrics.json
    shared                         the keys of the compared cases
    records_before, records_after  return the records of cases
    """
    was = _usual(before)
    now = _usual(after)
    # Most runs end here: no record is read for them.
    if was is None or now is None or now < CLEARLY * was or timed_otherwise(before, after) is not None:
        return None
    keys = frozenset(sorted(shared)[:MOST])
    latencies_before = _latencies(records_before(keys))
    latencies_after = _latencies(records_after(keys))
    both = sorted(latencies_before.keys() & latencies_after.keys())
    return slowdown([latencies_before[key] for key in both], [latencies_after[key] for key in both])


def _usual(metrics: Mapping[str, Any]) -> float | None:
    operations = (metrics.get("volatile") or {}).get("operations") or {}
    usual: float | None = (operations.get(LATENCY) or {}).get("p50")
    return usual


def _latencies(records: Mapping[str, Record]) -> dict[str, float]:
    """Return the milliseconds of each case that was answered; a failure may be fast or slow for its own reasons."""
    latencies: dict[str, float] = {}
    for key, record in records.items():
        latency = (record.get("operations") or {}).get(LATENCY)
        if latency is not None and record["error"] is None:
            latencies[key] = latency
    return latencies


def slowdown(before: Sequence[float], after: Sequence[float]) -> dict[str, float] | None:
    """Return medians and ratio of paired latencies if answers take clearly longer; None otherwise.

    Each case is compared with itself: the median of the ratios, with a 95 % interval that rests on their order alone,
    has to be beyond noise, and the medians of all cases clearly apart.
    Source: Conover 1999, "Practical Nonparametric Statistics" (interval for a quantile).
    """
    ratios = sorted(now / was for was, now in zip(before, after, strict=True) if was > 0)
    n = len(ratios)
    if n < FEWEST:
        return None
    lowest_rank = max(0, math.floor((n - Z_95 * math.sqrt(n)) / 2) - 1)
    before_ms = median(before)
    after_ms = median(after)
    is_clear = ratios[lowest_rank] > BEYOND_NOISE and after_ms > CLEARLY * before_ms
    if not is_clear or after_ms - before_ms < LEAST_MS:
        return None
    return {"ratio": after_ms / before_ms, "before_ms": before_ms, "after_ms": after_ms, "n": n}
