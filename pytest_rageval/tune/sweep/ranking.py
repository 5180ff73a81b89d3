"""The ranking of a sweep's points: their scores and their differences, with an interval."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.metrics.registry import Measure
from pytest_rageval.metrics.retrieval import context_recall, mrr
from pytest_rageval.model import EvalCase, Observation
from pytest_rageval.stats.clusters import clustered_test
from pytest_rageval.stats.intervals import Interval

Weights = Mapping[str, float]
"""The weight of each part; parts without a value for any case weigh nothing."""
DEFAULT_WEIGHTS: Weights = {"recall": 0.5, "negative_accuracy": 0.3, "mrr": 0.2}
PARTS = tuple(DEFAULT_WEIGHTS)


def parse_weights(written: str | None) -> Weights:
    """Parse `recall=0.5,negative_accuracy=0.3,mrr=0.2`; a part that is not named weighs nothing."""
    if written is None:
        return DEFAULT_WEIGHTS
    weights = dict.fromkeys(PARTS, 0.0)
    problems = []
    for pair in written.split(","):
        name, _, text = (part.strip() for part in pair.partition("="))
        if name not in weights:
            others = f"; parts: {', '.join(PARTS)}"
            problems.append(f"--weights: {name!r} is no part of the score{did_you_mean(name, PARTS, others)}")
            continue
        try:
            weights[name] = float(text)
        except ValueError:
            weights[name] = math.nan
        if not 0 <= weights[name] < math.inf:
            problems.append(f"--weights: {name} is {text!r}, expected a number of 0 or more, as in recall=0.5")
    if not problems and not any(weights.values()):
        problems.append("--weights: all are 0; give one of them more")
    if problems:
        raise SettingsError(*problems)
    return weights


class CaseParts(NamedTuple):
    """The value of one case in each part, or None."""

    recall: float | None
    negative_accuracy: float | None
    mrr: float | None
    conversation: str | None = None
    """The conversation that the case is a turn of; None for a single case."""


def case_parts(observation: Observation) -> CaseParts:
    """Return `context_recall@k` and `mrr` of a case with gold; of an unanswerable one whether nothing was retrieved."""
    recall = Measure(context_recall, observation.k).score(observation)
    rank = Measure(mrr).score(observation)
    is_negative = not observation.case.answerable and not observation.golds and observation.matching.hits is not None
    return CaseParts(
        recall=recall if isinstance(recall, float) else None,
        negative_accuracy=float(not observation.hits) if is_negative else None,
        mrr=rank if isinstance(rank, float) else None,
        conversation=None if observation.case.turn is None else observation.case.unit,
    )


@dataclass(frozen=True)
class PointScores:
    """The means of a point over some cases, and how many have a value; `score` is None if no part has one."""

    recall: float | None
    negative_accuracy: float | None
    mrr: float | None
    n: Mapping[str, int]
    score: float | None


def point_scores(cases: Mapping[str, CaseParts], weights: Weights, keys: Iterable[str]) -> PointScores:
    """Compute the scores of a point over the cases with these keys."""
    scored = [cases[key] for key in keys if key in cases]
    n: dict[str, int] = {}
    means: dict[str, float | None] = {}
    weighted_means: list[float] = []
    weights_of_means: list[float] = []
    for name in PARTS:
        of_cases = [getattr(parts, name) for parts in scored]
        values = [value for value in of_cases if value is not None]
        n[name] = len(values)
        means[name] = None
        if values:
            mean = math.fsum(values) / len(values)
            means[name] = mean
            weighted_means.append(weights[name] * mean)
            weights_of_means.append(weights[name])
    total = math.fsum(weights_of_means)
    score = math.fsum(weighted_means) / total if total else None
    return PointScores(**means, n=n, score=score)


@dataclass(frozen=True)
class Gain:
    """The difference of two points' scores, over the cases that both have.

    ci  95 % interval; None for fewer than five cases
    p   of the test of a change, to which the interval belongs; None without cases
    n   cases compared
    """

    delta: float
    ci: Interval | None
    p: float | None
    n: int

    @property
    def is_distinguishable(self) -> bool:
        """Return True if it is more than chance: an interval without 0."""
        return self.ci is not None and not self.ci[0] <= 0 <= self.ci[1]


def difference(
    after: Mapping[str, CaseParts], before: Mapping[str, CaseParts], weights: Weights, keys: Iterable[str]
) -> Gain:
    """Compute the difference of two points' scores, as a mean over cases.

    Each part is a mean over cases of its own. A case's share in the difference of the scores, times the number of all
    cases, has this difference for its mean: so one interval serves for the sum of the parts.
    """
    changes: list[dict[str, float]] = []
    clusters: list[str] = []
    for key in keys:
        if key not in after or key not in before:
            continue
        changed = _changes(after[key], before[key])
        if changed:
            changes.append(changed)
            clusters.append(after[key].conversation or key)
    present = Counter(chain.from_iterable(changes))
    total = math.fsum(weights[name] for name in present)
    if not total:
        return Gain(0.0, None, None, 0)
    n = len(changes)
    factors = {name: n * weights[name] / total / present[name] for name in present}

    def share(change: Mapping[str, float]) -> float:
        return sum(factors[name] * part for name, part in change.items())

    shares = [share(change) for change in changes]
    widest = max(factors.get("recall", 0.0) + factors.get("mrr", 0.0), factors.get("negative_accuracy", 0.0))
    test = clustered_test(shares, clusters, widest)
    return Gain(math.fsum(shares) / n, test.interval(), test.p, n)


def _changes(after: CaseParts, before: CaseParts) -> dict[str, float]:
    changes: dict[str, float] = {}
    for name in PARTS:
        new = getattr(after, name)
        old = getattr(before, name)
        if new is not None and old is not None:
            changes[name] = new - old
    return changes


def in_halves(
    keys: Sequence[str], conversations: Mapping[str, str] | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split the cases into halves by a hash of their keys, independent of the other cases.

    `conversations`: of each turn by its key. The turns of a conversation stay together: they depend on each other.
    """
    conversations = conversations or {}
    is_second: dict[str, bool] = {}
    for key in keys:
        digest = hashlib.sha256(conversations.get(key, key).encode()).digest()
        is_second[key] = digest[-1] % 2 == 1
    first = tuple(key for key in keys if not is_second[key])
    second = tuple(key for key in keys if is_second[key])
    return first, second


def sampled(cases: Sequence[EvalCase], size: int | None, seed: int) -> list[EvalCase]:
    """Sample this many cases, in their order: those with the smallest hash of seed and key.

    A conversation is taken whole, since asking a turn takes the earlier ones; the last one may exceed the size.
    """
    if size is None or size >= len(cases):
        return list(cases)
    turns = Counter(case.unit for case in cases)
    ranked = sorted(turns, key=lambda unit: hashlib.sha256(f"{seed}:{unit}".encode()).digest())
    chosen: set[str] = set()
    taken = 0
    for unit in ranked:
        if taken >= size:
            break
        chosen.add(unit)
        taken += turns[unit]
    return [case for case in cases if case.unit in chosen]
