"""Pass rules: how the trials of a case decide about it together, and when that is certain before the last trial."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_rageval.gates.gate import Gate
from pytest_rageval.gates.verdict import GatedTrial, MeasuredTrial, ending_by_gates, gate_verdict, looks_at
from pytest_rageval.model import FailedGate, Outcome, PassRule
from pytest_rageval.text import counted

BY_MEAN = "mean"
_ROUNDING = 1e-9
"""A share of .8 of five trials is 4.000000000000001 in floating point."""


def trials_to_pass(rule: PassRule, trials: int) -> int:
    """Return how many of so many trials must pass alone, by any rule but the mean.

    >>> [trials_to_pass(rule, 5) for rule in ("all", "majority", "any", 0.8, 0.5)]
    [5, 3, 1, 4, 3]
    """
    if rule == "all":
        return trials
    if rule == "majority":
        return trials // 2 + 1
    if rule == "any":
        return 1
    assert isinstance(rule, float | int)
    return max(1, math.ceil(rule * trials - _ROUNDING))


class TrialCount(NamedTuple):
    """How many trials of a case passed alone, and how many failed; those that no gate examined are in neither."""

    passed: int
    failed: int

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> TrialCount:
        """Count the outcomes of single trials."""
        each = list(outcomes)
        return cls(each.count("passed"), each.count("failed"))

    @property
    def examined(self) -> int:
        return self.passed + self.failed

    def passes(self, rule: PassRule) -> bool:
        """Return True if enough of the examined trials pass."""
        return self.passed >= trials_to_pass(rule, self.examined)

    def most_needed(self, rule: PassRule, trials: int) -> int:
        """Return how many further trials, of so many in all, can be asked at once without asking one too many."""
        to_pass = trials_to_pass(rule, trials)
        until_passed = to_pass - self.passed
        until_failed = trials - to_pass + 1 - self.failed
        return max(0, min(until_passed, until_failed))


class RuleVerdict(NamedTuple):
    """The verdict of a pass rule on a case: the number of gates that pass, those that fail, the outcome and why."""

    outcome: Outcome
    held: int
    failed: tuple[FailedGate, ...]
    words: str


def rule_verdict(
    rule: PassRule, gates: Sequence[Gate], trials: Sequence[tuple[GatedTrial, MeasuredTrial]]
) -> RuleVerdict:
    """Return the verdict of any rule but the mean.

    A case that fails has each gate that failed in a trial, with the value of the first such trial. Without an examined
    trial it is skipped.
    """
    outcomes: list[Outcome] = []
    failed: dict[tuple[str, str], FailedGate] = {}
    examined_gates = 0
    for trial, measured in trials:
        verdict = gate_verdict(gates, [trial])
        outcomes.append(ending_by_gates(measured, verdict, [measured])[0])
        examined_gates = max(examined_gates, verdict.held + len(verdict.failed))
        for gate in verdict.failed:
            # The value of one trial: a mean over trials that pass and fail would explain neither.
            failed.setdefault((gate.metric, gate.threshold), gate)
    count = TrialCount.of(outcomes)
    words = f"{count.passed} of {counted(count.examined, 'trial')} pass, by the rule {rule}"
    if not count.examined:
        return RuleVerdict("skipped", examined_gates, (), words)
    if count.passes(rule):
        return RuleVerdict("passed", examined_gates, (), words)
    return RuleVerdict("failed", max(0, examined_gates - len(failed)), tuple(failed.values()), words)


def mean_words(passed: int, trials: int) -> str:
    """Return how the mean of several trials decides: without it, a case that fails though most pass looks wrong."""
    return f"{passed} of {counted(trials, 'trial')} pass, and the mean of their scores decides"


def is_mean_decided(gates: Sequence[Gate], trials: Sequence[GatedTrial], to_come: int) -> bool:
    """Return True if no scores of the trials to come can change the verdict on the means.

    It is certain that a case fails once a gate fails even with the best scores to come, and that it passes once each
    gate has been measured in every trial and holds even with the worst.
    """
    is_each_safe = bool(gates)
    for gate in gates:
        values = [trial.scores[gate.name] for trial in trials if looks_at(gate, trial)]
        if not values:
            is_each_safe = False
            continue
        extremes = _extreme_means(gate, values, to_come)
        holds = [gate.holds(mean) for mean in extremes]
        if not any(holds):
            return True
        # A gate that skipped one trial may examine the next one, and is then not safe.
        is_each_safe = is_each_safe and all(holds) and len(values) == len(trials)
    return is_each_safe


def _extreme_means(gate: Gate, values: Sequence[float], to_come: int) -> list[float]:
    """Return the means with the lowest and the highest scores in all, and in none, of the trials to come."""
    assert gate.measure is not None
    total = math.fsum(values)
    trials = len(values) + to_come
    lowest, highest = gate.measure.metric.scale
    # The mean of now comes too: further trials may have no score of this metric.
    return [total / len(values), (total + to_come * lowest) / trials, (total + to_come * highest) / trials]
