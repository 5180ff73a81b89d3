"""Repeats in metrics.json: how often any and all trials of a case pass, how far they differ, and what was spared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from statistics import stdev
from typing import Any

from pytest_rageval.model import CaseTrials
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.flaky_cases import saved_requests
from pytest_rageval.runs.row import Row, first_attempts


def repeats(trials: Sequence[Row], plan: Plan) -> dict[str, Any]:
    """Return how often any trial and all trials of a case pass, and how far they differ; empty with one trial a case.

    `spread`: by metric, the mean over cases of the standard deviation over a case's trials (n - 1 in the divisor).
    """
    if plan.settings.repeat == 1:
        return {}
    of_cases = _rated(trials)
    spreads: dict[str, list[float]] = {measure.name: [] for measure in plan.measures}
    for case in of_cases:
        for name, spread in spreads.items():
            values = [row.scores[name] for row in case if name in row.scores]
            if len(values) > 1:
                spread.append(stdev(values))
    counted = case_trials(trials, plan)
    content: dict[str, Any] = {
        "trials": plan.settings.repeat,
        "cases": len(counted),
        "pass_at_n": _share([case.has_passed_once for case in counted]),
        "pass_hat_n": _share([case.has_passed_always for case in counted]),
        "spread": {name: _mean(spread) for name, spread in spreads.items()},
    }
    if plan.stops_when_decided:
        content["saved_requests"] = saved_requests(trials, plan.settings.repeat)
    return {"repeats": content}


def case_trials(trials: Iterable[Row], plan: Plan) -> tuple[CaseTrials, ...]:
    """Return how the trials of each case passed, without cases of errors; empty with one trial a case."""
    repeat = plan.settings.repeat
    if repeat == 1:
        return ()
    counts: list[CaseTrials] = []
    for case in _rated(trials):
        passed = sum(row.trial_passed for row in case)
        counts.append(CaseTrials(passed, len(case) - passed, repeat))
    return tuple(counts)


def _rated(trials: Iterable[Row]) -> list[list[Row]]:
    """Return the trials of the first attempt at each case, without cases that are errors or skipped."""
    rated = (row for row in first_attempts(trials) if row.outcome not in ("error", "skipped"))
    return [list(of_case) for _, of_case in groupby(rated, attrgetter("key"))]


def _share(known: Sequence[bool | None]) -> float | None:
    # One case that was decided early leaves the share unknown: as 0 or 1 it would bias it.
    return None if None in known else _mean([float(each or False) for each in known])


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
