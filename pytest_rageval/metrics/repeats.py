"""Repeats: how many cases pass at least once, or every time, among several trials, and how many are flaky.

Metrics of a whole run, scored once from its `RunFacts`.
"""

from __future__ import annotations

from collections.abc import Iterable

from pytest_rageval.metrics.registry import metric
from pytest_rageval.model import NotApplicable, RunFacts

NOT_REPEATED = NotApplicable("no case has several trials; --rageval-repeat N asks each N times")
NOT_ASKED_TO_THE_END = NotApplicable("a case was decided before its last trial, so that the others are not known")


@metric(layer="operations", better="lower", binary=True, on_by_default=False, run_level=True)
def flaky_rate(facts: RunFacts) -> float | NotApplicable:
    """Flaky cases / cases asked: those that passed though an attempt at them failed.

    In [0, 1], lower is better. A case is asked again where it newly fails against the baseline (`confirm`), or where a
    plugin runs failed tests again. Not applicable where no case was asked.

    >>> score("flaky_rate", a_run(asked=8, flaky=2))
    0.25
    """
    return facts.flaky / facts.asked if facts.asked else NotApplicable("no case was asked")


@metric(layer="operations", better="higher", on_by_default=False, run_level=True, aliases=("pass@k",))
def pass_at_k(facts: RunFacts) -> float | NotApplicable:
    """Cases of which at least one trial passes / cases with several trials: pass@k, with k the number of trials.

    In [0, 1], higher is better; each run with repeats has it. Cases with an error do not count. Not applicable without
    repeats, or where a case was decided before its last trial and before one passed.

    Of two cases with three trials each, two and none pass.

    >>> score("pass_at_k", a_run(trials=passing_trials("++-", "---")))
    0.5
    """
    return _share(trials.has_passed_once for trials in facts.trials)


@metric(layer="operations", better="higher", on_by_default=False, run_level=True, aliases=("pass^k",))
def pass_hat_k(facts: RunFacts) -> float | NotApplicable:
    """Cases of which every trial passes / cases with several trials: pass^k, with k the number of trials.

    In [0, 1], higher is better; each run with repeats has it. Cases with an error do not count. Not applicable without
    repeats, or where a case was decided before its last trial and before one failed.

    Of two cases with three trials each, two and three pass.

    >>> score("pass_hat_k", a_run(trials=passing_trials("++-", "+++")))
    0.5
    """
    return _share(trials.has_passed_always for trials in facts.trials)


def _share(known: Iterable[bool | None]) -> float | NotApplicable:
    each = list(known)
    if not each:
        return NOT_REPEATED
    if None in each:
        return NOT_ASKED_TO_THE_END
    return each.count(True) / len(each)
