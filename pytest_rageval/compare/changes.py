"""The change of one metric between two runs, with interval, p value and detectable change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import sub
from typing import Any, NamedTuple, cast

from pytest_rageval.runs.case_columns import CaseColumns, SharedCases, values_at
from pytest_rageval.stats.intervals import FEWEST, Interval
from pytest_rageval.stats.moments import moments_of
from pytest_rageval.stats.paired_test import LEVEL, PairedTest, Side, adjusted, level_among, paired_test
from pytest_rageval.stats.power import detectable_mean, detectable_share

ROUNDING = 1e-12
"""A difference up to this is what binary fractions leave, not a difference."""


class Pairs(NamedTuple):
    """One metric over the shared cases: the scores of those that have it on both sides, and who lost it since."""

    before: Sequence[float]
    after: Sequence[float]
    lost: Sequence[float]
    """Scores before of cases without one after."""


@dataclass(frozen=True, slots=True)
class Change:
    """A metric before and after, on its own scale, over the cases scored on both sides.

    ci             95 % interval of `delta`: it excludes 0 exactly if `p_adjusted` is significant (of several metrics
                   tested it is as much wider as that p is larger); None for fewer than five cases
    p, p_adjusted  of the test of a change; of the same among all metrics tested. None for a metric of a whole run
    n_paired       cases scored on both sides; 0 for a metric of a whole run
    n_changed      of these, how many scores moved
    n_unmeasured   cases scored before and not after
    detectable     the smallest change that so many cases would have shown with power 0.8; None where it cannot be said
    test           from which `p` and `ci` come; not kept
    """

    before: float | None = None
    after: float | None = None
    delta: float | None = None
    ci: Interval | None = None
    p: float | None = None
    p_adjusted: float | None = None
    n_paired: int = 0
    n_changed: int = 0
    n_unmeasured: int = 0
    detectable: float | None = None
    test: PairedTest | None = None

    @property
    def is_significant(self) -> bool:
        return self.p_adjusted is not None and self.p_adjusted <= LEVEL

    def p_towards(self, side: Side) -> float | None:
        """Return the one-sided p of this metric by itself; None where so few cases differ that it could not be 0.05."""
        if self.test is None or self.n_paired < FEWEST or 0.5 ** (self.n_changed + 1) > LEVEL:
            return None
        return self.test.p_towards(side)

    def as_mapping(self) -> dict[str, Any]:
        """Return the fields for metrics.json."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "test"}


def paired(before: CaseColumns, after: CaseColumns, shared: SharedCases) -> dict[str, Pairs]:
    """By metric that shared cases scored before, their scores before and after."""
    nowhere = [None] * len(after)
    pairs: dict[str, Pairs] = {}
    for name in sorted(before.scores):
        was = values_at(before.scores[name], shared.before)
        now = values_at(after.scores.get(name, nowhere), shared.after)
        if None in was or None in now:
            both = [(old, new) for old, new in zip(was, now, strict=True) if old is not None and new is not None]
            lost = [old for old, new in zip(was, now, strict=True) if new is None and old is not None]
            column = Pairs([old for old, _ in both], [new for _, new in both], lost)
        else:
            column = Pairs(cast("Sequence[float]", was), cast("Sequence[float]", now), [])
        if column.before or column.lost:
            pairs[name] = column
    return pairs


def paired_change(pairs: Pairs, scale: Sequence[float]) -> Change:
    """Return how far one metric moved on its scale."""
    befores, afters, lost = pairs
    n = len(befores)
    if not n:
        return Change(n_unmeasured=len(lost))
    differences = list(map(sub, afters, befores))
    if any(-ROUNDING < gap < ROUNDING for gap in filter(None, differences)):
        differences = [0.0 if -ROUNDING < gap < ROUNDING else gap for gap in differences]
    n_changed, widest = n - differences.count(0), scale[1] - scale[0]
    moments = moments_of(differences)
    if all(scores.count(0) + scores.count(1) == n for scores in (befores, afters)):
        detectable = detectable_share(n, n_changed)
    else:
        detectable = detectable_mean(differences, widest, moments)
    test = paired_test(differences, widest, moments)
    return Change(
        before=math.fsum(befores) / n,
        after=math.fsum(afters) / n,
        delta=moments.mean,
        ci=test.interval(),
        p=test.p,
        n_paired=n,
        n_changed=n_changed,
        n_unmeasured=len(lost),
        detectable=detectable,
        test=test,
    )


def run_change(before: float | None, after: float | None) -> Change:
    """A metric of whole runs: there are no cases to pair, so nothing is known of chance."""
    return Change() if before is None or after is None else Change(before, after, after - before)


def with_adjusted_p(changes: Mapping[str, Change]) -> dict[str, Change]:
    """Return the changes with `p_adjusted`: one metric in twenty moves significantly by chance, and there are many.

    An interval that excludes 0 by itself is taken at the level that all these tests leave. A metric in which no case
    moved could not have come out significant, and does not count among those tested.
    """
    tested = {name: change.p for name, change in changes.items() if change.p is not None and change.n_changed}
    p_values = adjusted(tested)
    level = level_among(p_values)
    return {
        name: replace(
            change,
            p_adjusted=p_values.get(name, change.p),
            ci=change.test.interval(level) if change.test and change.test.p <= LEVEL else change.ci,
        )
        for name, change in changes.items()
    }
