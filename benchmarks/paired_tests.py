"""What intervals and p values of a comparison are worth: `python benchmarks/paired_tests.py [--samples N]`.

Differences of many kinds are drawn, with a true mean of 0 and with a drop of known size. How often does the interval
hold the true mean, how wide is it beside Student's t, does it exclude 0 exactly if p is 0.05 or less, how often is a
change called that is none, and how often a drop that is one? A second part does the same for means of means. Printed as
Markdown; the same every time. Standard library and our own statistics only.

The limits of the method were chosen by looking at the kinds of `CHOSEN_ON`; those of `HELD_BACK` were looked at for the
first time when the limits stood.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import NamedTuple

from pytest_rageval.stats.intervals import Column, mean_of_means_interval
from pytest_rageval.stats.paired_test import LEVEL, normal_quantile, paired_test, student_quantile

SIZES = (5, 10, 20, 65, 200)
SAMPLES = 1000
ROUNDING = 1e-9
Draw = Callable[[Random], float]


class Kind(NamedTuple):
    """Differences of a kind: with a mean of 0, and with a drop of a known size.

    widest  the largest difference that the scale allows
    """

    without: Draw
    dropped: Draw
    drop: float
    widest: float = 1.0


# ── kinds of differences ──────────────────────────────────────────────────────────────────────────────────────


def lossy(draw: Draw, size: float, widest: float = 1.0) -> Kind:
    """Return the kind in whose drop every third case loses up to so much besides."""
    return Kind(draw, lambda r: draw(r) - (r.uniform(0, size) if r.random() < 1 / 3 else 0.0), size / 6, widest)


def one_of(values: Sequence[float], weights: Sequence[float]) -> Draw:
    sums = tuple(accumulate(weights))
    return lambda random: random.choices(values, cum_weights=sums)[0]


def flips(up: float, down: float, more: float) -> Kind:
    """Return the kind of a metric that is 0 or 1; in the drop so many cases more flip to 0."""
    assert up == down
    drop = one_of((1.0, -1.0, 0.0), (up, down + more, 1 - up - down - more))
    return Kind(one_of((1.0, -1.0, 0.0), (up, down, 1 - up - down)), drop, more)


def swapped(levels: Draw, alike: float = 0.0) -> Draw:
    """Return differences of two levels drawn alike, of which a share is the same on both sides."""

    def draw(random: Random) -> float:
        before = levels(random)
        return 0.0 if random.random() < alike else levels(random) - before

    return draw


def sometimes(share: float, draw: Draw) -> Draw:
    """Return differences of which only a share is not 0."""
    return lambda random: draw(random) if random.random() < share else 0.0


GRADES = one_of((0, 1, 2, 3, 4, 5), (1, 1, 1, 2, 10, 30))
CHOSEN_ON: Mapping[str, Kind] = {
    "0 or 1: a third flips": flips(1 / 6, 1 / 6, 0.2),
    "0 or 1: a tenth flips": flips(0.05, 0.05, 0.2),
    "normal": lossy(lambda r: r.gauss(0, 0.2), 0.6),
    "uniform": lossy(lambda r: r.uniform(-0.3, 0.3), 0.6),
    "double exponential": lossy(lambda r: r.expovariate(10) * r.choice((-1, 1)), 0.6),
    "fifths, half unchanged": lossy(one_of((-0.4, -0.2, 0, 0.2, 0.4), (1, 2, 6, 2, 1)), 0.6),
    "skewed: few large gains (exponential)": lossy(lambda r: r.expovariate(5) - 0.2, 0.6),
    "skewed: few large losses (exponential)": lossy(lambda r: 0.2 - r.expovariate(5), 0.6),
    "judge 0–5, mostly 4 or 5": lossy(swapped(GRADES), 3, 5),
    "judge 0–5, six of ten alike": lossy(swapped(GRADES, 0.6), 2, 5),
    "mostly unchanged: a fifth moves anywhere": lossy(sometimes(0.2, lambda r: r.uniform(-1, 1)), 0.6),
    "rare and large: ±1 in a tenth, and noise": lossy(
        lambda r: r.gauss(0, 0.05) + r.choices((-1, 0, 1), (1, 18, 1))[0], 0.6
    ),
    "bimodal: ±½ and noise": lossy(lambda r: r.choice((-0.5, 0.5)) + r.gauss(0, 0.1), 1.2),
    "heavy tails: t with 3 degrees": lossy(
        lambda r: 0.1 * r.gauss(0, 1) / math.sqrt(r.gammavariate(1.5, 2) / 3), 0.6, math.inf
    ),
    "0 or 1: rare flips, one in twenty": flips(0.025, 0.025, 0.25),
    "0 or 1: half flips": flips(0.25, 0.25, 0.25),
    "skewed: triangular": lossy(lambda r: 1 / 3 - 1 + math.sqrt(r.random()), 0.9),
}
HELD_BACK: Mapping[str, Kind] = {
    "0 or 1 in three trials: thirds": lossy(swapped(lambda r: sum(r.random() < 0.7 for _ in range(3)) / 3, 0.3), 0.9),
    "reciprocal ranks of ten": lossy(swapped(lambda r: 1 / r.randint(1, 10), 0.4), 0.9),
    "ceiling: nine of ten at 1": lossy(swapped(lambda r: 1.0 if r.random() < 0.9 else r.random()), 0.6),
    "token F1, correlated pairs": lossy(lambda r: 0.3 * swapped(lambda q: q.betavariate(2, 0.8))(r), 0.4),
    "skewed: gamma of shape 2": lossy(lambda r: r.gammavariate(2, 0.1) - 0.2, 0.6, 2),
    "two sizes: noise, and a fifth ten times it": lossy(
        lambda r: r.gauss(0, 0.03) if r.random() < 0.8 else r.gauss(0, 0.3), 0.5
    ),
    "judge steps: −1, 0, +1": lossy(one_of((-1, 0, 1), (1, 3, 1)), 2, 5),
}
IMPOSSIBLE: Mapping[str, Kind] = {
    "rare gains of 1 in a tenth, −1/9 else": lossy(one_of((1.0, -1 / 9), (1, 9)), 0.9, 2),
    "rare gains of 1 in a twentieth, −1/19 else": lossy(one_of((1.0, -1 / 19), (1, 19)), 0.9, 2),
    "log-normal gains": lossy(lambda r: 0.1 * (math.exp(r.gauss(0, 1)) - math.exp(0.5)), 0.6, 9),
    "half unchanged, exponential gains": lossy(sometimes(0.5, lambda r: r.expovariate(5) - 0.2), 0.6, 2),
}
"""A few large gains hold the mean up, of which many samples have too few. Where one has none, no test can know."""
KINDS = {**CHOSEN_ON, **HELD_BACK, **IMPOSSIBLE}


# ── simulation ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Tally:
    """Counts over the samples of a kind and size; of `false_alarms` both sides at 0.05, of `regressed` one at 0.05."""

    samples: int = 0
    held: int = 0
    held_drop: int = 0
    disagreed: int = 0
    false_alarms: int = 0
    regressed: int = 0
    found: int = 0
    found_by_t: int = 0
    width: float = 0.0
    width_of_t: float = 0.0

    @property
    def coverage(self) -> float:
        """Return the lower of both."""
        return min(self.held, self.held_drop) / self.samples

    @property
    def width_ratio(self) -> float:
        return self.width / self.width_of_t

    @property
    def agreement(self) -> float:
        return 1 - self.disagreed / (2 * self.samples)


def simulated(name: str, n: int, samples: int) -> Tally:
    """Draw so many samples of n differences with and without a drop."""
    kind, random, tally = KINDS[name], Random(f"{name} {n}"), Tally(samples)
    t = student_quantile(normal_quantile(LEVEL / 2), n - 1)
    for drop, draw in ((0.0, kind.without), (kind.drop, kind.dropped)):
        for _ in range(samples):
            differences = [draw(random) for _ in range(n)]
            test = paired_test(differences, kind.widest)
            low, high = test.interval() or (math.nan, math.nan)
            mean = math.fsum(differences) / n
            half = t * math.sqrt(math.fsum((each - mean) ** 2 for each in differences) / (n - 1) / n)
            tally.width += min(high, 1e9) - max(low, -1e9)
            tally.width_of_t += 2 * half
            tally.disagreed += (test.p <= LEVEL) != (not low <= 0 <= high)
            holds = low - ROUNDING <= -drop <= high + ROUNDING
            if drop:
                tally.held_drop += holds
                tally.found += high < 0
                tally.found_by_t += mean + half < 0
            else:
                tally.held += holds
                tally.false_alarms += test.p <= LEVEL
                tally.regressed += test.p_towards(-1) <= LEVEL
    return tally


# ── means of means ────────────────────────────────────────────────────────────────────────────────────────────

Cases = Callable[[Random, int], dict[str, list[float | None]]]


def some_of(share: float, draw: Draw) -> Callable[[Random, int], list[float | None]]:
    return lambda random, n: [draw(random) if random.random() < share else None for _ in range(n)]


def alike(random: Random, n: int) -> dict[str, list[float | None]]:
    """Four metrics that say the same of every case."""
    column: list[float | None] = [float(random.random() < 0.93) for _ in range(n)]
    return dict.fromkeys("abcd", column)


def of_columns(**columns: Callable[[Random, int], list[float | None]]) -> Cases:
    return lambda random, n: {name: column(random, n) for name, column in columns.items()}


def found(share: float) -> Draw:
    return lambda random: float(random.random() < share)


MEANS: Mapping[str, tuple[Cases, Mapping[str, float]]] = {
    "found in 9 of 10, twice; one for a tenth of the cases": (
        of_columns(a=some_of(1, found(0.9)), b=some_of(0.1, found(0.9))), {"a": 0.9, "b": 0.9}
    ),
    "uniform, twice; one for a tenth": (
        of_columns(a=some_of(1, Random.random), b=some_of(0.1, Random.random)), {"a": 0.5, "b": 0.5}
    ),
    "all found; one for a tenth, 19 of 20": (
        of_columns(a=some_of(1, found(1)), b=some_of(0.1, found(0.95))), {"a": 1.0, "b": 0.95}
    ),
    "skewed; three for a tenth": (
        of_columns(a=some_of(1, lambda r: r.random() ** 4), **{name: some_of(0.1, found(0.9)) for name in "bcd"}),
        {"a": 0.2, "b": 0.9, "c": 0.9, "d": 0.9},
    ),
    "four that say the same": (alike, dict.fromkeys("abcd", 0.93)),
    "four of their own": (
        of_columns(**{name: some_of(1, lambda r: r.betavariate(4, 1)) for name in "abcd"}), dict.fromkeys("abcd", 0.8)
    ),
}  # fmt: skip
"""By name how the columns of a run are drawn, and the true mean of each."""


def coverage_of_means(name: str, n: int, samples: int) -> float:
    """Return how often the interval holds the mean of the means of those metrics that have a value."""
    draw, truth = MEANS[name]
    random, held, shown = Random(f"{name} {n}"), 0, 0
    for _ in range(samples):
        columns: Mapping[str, Column] = draw(random, n)
        present = [truth[metric] for metric, column in columns.items() if any(value is not None for value in column)]
        low, high = mean_of_means_interval(columns) or (math.nan, math.nan)
        held += low - ROUNDING <= math.fsum(present) / len(present) <= high + ROUNDING
        shown += not math.isnan(low)
    return held / shown


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────


def tables(samples: int) -> Iterator[str]:
    """Yield the tables that are in docs/appendix.md."""
    tallies = {name: [simulated(name, n, samples) for n in SIZES] for name in KINDS}
    yield table("how often the interval holds the true change", _cells(tallies, lambda tally: _percent(tally.coverage)))
    yield table("width ÷ that of Student's t", _cells(tallies, lambda tally: f"{tally.width_ratio:.2f}"))
    alarms = _cells(tallies, lambda t: f"{_percent(t.false_alarms / t.samples)}, {_percent(t.regressed / t.samples)}")
    yield table("nothing moved: called significant, called *regressed* one-sided", alarms)
    power = _cells(tallies, lambda t: f"{_percent(t.found / t.samples)} ({_percent(t.found_by_t / t.samples)})")
    yield table("a drop is called significant (by Student's t)", power)
    means = ((name, [_percent(coverage_of_means(name, n, samples)) for n in SIZES[2:]]) for name in MEANS)
    yield table("how often the interval of a mean of means holds it", means, SIZES[2:])
    disagreed = sum(tally.disagreed for row in tallies.values() for tally in row)
    total = sum(2 * tally.samples for row in tallies.values() for tally in row)
    yield f"Interval and p disagree in {disagreed} of {total:,} samples."


def _cells(tallies: Mapping[str, Sequence[Tally]], cell: Callable[[Tally], str]) -> Iterator[tuple[str, Sequence[str]]]:
    return ((name, [cell(tally) for tally in row]) for name, row in tallies.items())


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def table(title: str, rows: Iterable[tuple[str, Sequence[str]]], sizes: Sequence[int] = SIZES) -> str:
    lines = ["| " + " | ".join((title, *(f"n = {n}" for n in sizes))) + " |", "| --- |" + " --- |" * len(sizes)]
    return "\n".join([*lines, *("| " + " | ".join((name, *cells)) + " |" for name, cells in rows)])


def main(arguments: Sequence[str]) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="What are intervals and p values of a comparison worth?")
    parser.add_argument("--samples", type=int, default=SAMPLES, metavar="N", help="samples of each kind and size")
    print("\n\n".join(tables(parser.parse_args(arguments).samples)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
