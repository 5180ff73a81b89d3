"""What gates say of a case, over the trials in which they look at it, and how it ends by that."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from pytest_rageval.gates.gate import Gate, is_meant_for
from pytest_rageval.model import GateFailed, Observation, Outcome, Problem


class GatedTrial(NamedTuple):
    """As much of one trial as gates look at. `unobserved`: metrics that found nothing to look at."""

    observation: Observation
    scores: Mapping[str, float]
    unobserved: Collection[str] = ()


class GateVerdict(NamedTuple):
    """How many gates hold, those that do not, and the metrics whose gates were meant for gold that none could look at.

    `unexamined` is empty as soon as a gate looked at any gold of the case: then it is known of the rest that it is not
    measured, and the case was examined all the same.
    """

    held: int
    failed: tuple[GateFailed, ...]
    unexamined: tuple[str, ...] = ()
    is_gold_examined: bool = False


def gate_verdict(gates: Iterable[Gate], trials: Sequence[GatedTrial]) -> GateVerdict:
    """What the gates say of a case: each of the mean over the trials in which it looks at the case."""
    held, failed, unexamined, has_examined_gold = 0, {}, dict[str, None](), False
    measured = {name for trial in trials for name in (*trial.scores, *trial.unobserved)}
    for gate in gates:
        name = gate.name
        if name not in measured:
            continue
        values = [trial.scores[name] for trial in trials if looks_at(gate, trial)]
        looks_at_gold = gate.measure is not None and gate.measure.metric.looks_at_gold
        if not values:
            if looks_at_gold and any(_misses(gate, trial) for trial in trials):
                unexamined[name] = None
            continue
        has_examined_gold |= looks_at_gold
        value = math.fsum(values) / len(values)
        if gate.holds(value):
            held += 1
        else:
            threshold = f"{gate.op} {gate.limit:g}{'%' if gate.percent else ''}"
            failed[name, threshold] = GateFailed(name, value, threshold, gate.tag)
    missed = () if has_examined_gold else tuple(unexamined)
    return GateVerdict(held, tuple(failed.values()), missed, has_examined_gold)


def _misses(gate: Gate, trial: GatedTrial) -> bool:
    """Would the gate look at this trial, had the system reported what its metric takes?"""
    obs = trial.observation
    return gate.name in trial.unobserved and is_meant_for(gate, obs.case, obs.matching.kind)


def looks_at(gate: Gate, trial: GatedTrial) -> bool:
    """Does the gate look at this trial? A default one leaves a heuristic's scores alone, and may stand back."""
    obs = trial.observation
    if gate.name not in trial.scores or not is_meant_for(gate, obs.case, obs.matching.kind):
        return False
    if not gate.is_default:
        return True
    judgement = obs.judgement_of(gate.metric.partition("@")[0])
    if judgement is not None and judgement.heuristic:
        return False
    return not any(looks_at(other, trial) for other in gate.yields_to)


# ── what the trials of a case come to ─────────────────────────────────────────────────────────────────────────


class _Scored(Protocol):
    @property
    def scores(self) -> Mapping[str, float]: ...

    @property
    def metric_errors(self) -> Collection[str]: ...


OneTrial = TypeVar("OneTrial", bound=_Scored)


def over_trials(
    trials: Sequence[OneTrial], is_error: Callable[[OneTrial], bool]
) -> tuple[OneTrial, Mapping[str, float]]:
    """What the trials of one case come to: the trial that stands for the case, and the scores of the case.

    A trial that is an error makes the case that error, with the scores that it had. Otherwise the first one stands for
    the case, and a score is the mean over the trials that have it, the same to the last digit in any order. A metric
    whose judgement failed in one trial has none.
    """
    error = next(filter(is_error, trials), None)
    if error is not None:
        return error, error.scores
    by_metric: dict[str, list[float]] = {}
    broken = {name for trial in trials for name in trial.metric_errors}
    for trial in trials:
        for name, value in trial.scores.items():
            if name not in broken:
                by_metric.setdefault(name, []).append(value)
    return trials[0], {name: math.fsum(values) / len(values) for name, values in by_metric.items()}


# ── how a case ends ───────────────────────────────────────────────────────────────────────────────────────────


class MeasuredTrial(Protocol):
    """What gates look at, of one trial or of all trials of a case, and why the rest has no score."""

    @property
    def scores(self) -> Mapping[str, float]: ...

    @property
    def skipped_metrics(self) -> Mapping[str, str]: ...

    @property
    def unobserved(self) -> Collection[str]: ...

    @property
    def metric_errors(self) -> Mapping[str, str]: ...

    @property
    def error(self) -> Problem | None: ...


def ending_by_gates(
    case: MeasuredTrial, gated: GateVerdict, trials: Sequence[MeasuredTrial]
) -> tuple[Outcome, str | None]:
    """How a case, or one trial, ends by what the gates say of its trials, and why it is skipped. An error stays one."""
    if case.error is not None:
        return "error", None
    if gated.failed:
        return "failed", None
    if case.scores and not gated.unexamined:
        return "passed", None
    return "skipped", _unexamined(gated.unexamined, trials) or _unscored(trials)


def _unexamined(names: Sequence[str], trials: Sequence[MeasuredTrial]) -> str | None:
    """Why no gate could look at the gold of a case."""
    reasons = dict.fromkeys(
        trial.skipped_metrics[name] for name in names for trial in trials if name in trial.unobserved
    )
    return f"its gold could not be looked at ({', '.join(names)}): {'; '.join(reasons)}" if names else None


def _unscored(trials: Sequence[MeasuredTrial]) -> str:
    reasons = {
        reason for trial in trials for why in (trial.skipped_metrics, trial.metric_errors) for reason in why.values()
    }
    return "nothing in it could be scored: " + "; ".join(sorted(reasons))
