"""Verdicts of gates on a case, over the trials they examine, and the outcome that follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from pytest_rageval.gates.gate import Gate, is_meant_for
from pytest_rageval.metrics.answer import answer_kinds
from pytest_rageval.model import FailedGate, Observation, Outcome, Problem
from pytest_rageval.text import plain

KEY_FACTS = "key_fact_recall"
_JUDGED_BY_REFERENCE = frozenset({"correctness", "composite"})
"""Rubrics that need no gold answer, and compare with it where there is one."""


class GatedTrial(NamedTuple):
    """The parts of one trial that gates read. `unobserved`: metrics whose input the system did not report."""

    observation: Observation
    scores: Mapping[str, float]
    unobserved: Collection[str] = ()


class GateVerdict(NamedTuple):
    """The number of gates that pass, those that fail, and the metrics whose gates could not examine any gold.

    If any gate examined gold of the case, the case was examined in spite of the metrics in `unexamined`.
    """

    held: int
    failed: tuple[FailedGate, ...]
    unexamined: tuple[str, ...] = ()
    is_gold_examined: bool = False
    has_ungated_facts: bool = False
    """Whether key facts are the only gold of the answer, and no gate examined them."""
    has_ungated_answer: bool = False
    """Whether an answer was given for which gold answers exist, and no gate compared it with them."""


def gate_verdict(gates: Iterable[Gate], trials: Sequence[GatedTrial]) -> GateVerdict:
    """Return the verdict of the gates on a case: each decides on the mean over the trials it examines."""
    held = 0
    failed: dict[tuple[str, str], FailedGate] = {}
    unexamined: dict[str, None] = {}
    has_examined_gold = False
    are_facts_examined = False
    is_answer_compared = False
    measured: set[str] = set()
    for trial in trials:
        measured.update(trial.scores, trial.unobserved)
    for gate in gates:
        name = gate.name
        # Neither scored nor unobserved: the metric does not apply to this case, and its gate says nothing.
        if name not in measured:
            continue
        values = [trial.scores[name] for trial in trials if looks_at(gate, trial)]
        looks_at_gold = gate.measure is not None and gate.measure.metric.looks_at_gold
        if not values:
            if looks_at_gold and any(_misses(gate, trial) for trial in trials):
                unexamined[name] = None
            continue
        has_examined_gold |= looks_at_gold
        are_facts_examined |= name == KEY_FACTS
        is_answer_compared |= _compares_answers(gate)
        # Exact sums: the order in which trials end must not decide at the limit.
        value = math.fsum(values) / len(values)
        if gate.holds(value):
            held += 1
        else:
            percent = "%" if gate.percent else ""
            threshold = f"{gate.op} {plain(gate.limit)}{percent}"
            failed[name, threshold] = FailedGate(name, value, threshold, gate.tag)
    has_ungated_facts = not are_facts_examined and any(map(_has_facts_alone, trials))
    has_ungated_answer = not is_answer_compared and any(map(_has_gold_answer, trials))
    return GateVerdict(
        held,
        tuple(failed.values()),
        tuple(unexamined),
        has_examined_gold,
        has_ungated_facts,
        has_ungated_answer,
    )


def _compares_answers(gate: Gate) -> bool:
    """Return True if the gate's metric compares the answer with gold answers, by a formula or by a judge."""
    if gate.measure is None:
        return False
    metric = gate.measure.metric
    if metric.layer == "L5" and metric.looks_at_gold:
        return True
    return not _JUDGED_BY_REFERENCE.isdisjoint(metric.rubrics)


def _has_gold_answer(trial: GatedTrial) -> bool:
    return bool(trial.observation.gold.answers) and trial.observation.answer.text is not None


def _has_facts_alone(trial: GatedTrial) -> bool:
    """Check whether an answer was given whose only gold is key facts."""
    gold = trial.observation.gold
    has_facts = any(fact.strip() for fact in gold.key_facts or ())
    return has_facts and trial.observation.answer.text is not None and "none" in answer_kinds(gold)


def _misses(gate: Gate, trial: GatedTrial) -> bool:
    """Return True if the gate would examine this trial, had the system reported the input of its metric."""
    obs = trial.observation
    if gate.name not in trial.unobserved or not is_meant_for(gate, obs.case, obs.matching.kind):
        return False
    # A gate that yields to one which does examine the trial misses nothing.
    return not any(looks_at(other, trial) for other in gate.yields_to)


def looks_at(gate: Gate, trial: GatedTrial) -> bool:
    """Return True if the gate examines this trial; a default gate skips heuristic scores and may yield to others."""
    obs = trial.observation
    if gate.name not in trial.scores or not is_meant_for(gate, obs.case, obs.matching.kind):
        return False
    if not gate.is_default:
        return True
    judgement = obs.judgement_of(gate.metric.partition("@")[0])
    if judgement is not None and judgement.heuristic:
        return False
    if gate.settled_by is not None and trial.scores.get(gate.settled_by) == 1:
        return False
    return not any(looks_at(other, trial) for other in gate.yields_to)


# ── several trials ────────────────────────────────────────────────────────────────────────────────────────────


class _ScoredTrial(Protocol):
    @property
    def scores(self) -> Mapping[str, float]: ...

    @property
    def metric_errors(self) -> Collection[str]: ...


OneTrial = TypeVar("OneTrial", bound=_ScoredTrial)


def over_trials(
    trials: Sequence[OneTrial], is_error: Callable[[OneTrial], bool]
) -> tuple[OneTrial, Mapping[str, float]]:
    """Return the trial that represents the case, and the scores of the case.

    A trial with an error represents the case, with its own scores. Otherwise the first trial does, and a score is the
    mean over the trials that have it, identical to the last digit in any order. A metric whose judgement failed in one
    trial has no score.
    """
    error = next(filter(is_error, trials), None)
    if error is not None:
        return error, error.scores
    by_metric: dict[str, list[float]] = {}
    broken = set[str]().union(*(trial.metric_errors for trial in trials))
    for trial in trials:
        for name, value in trial.scores.items():
            if name not in broken:
                by_metric.setdefault(name, []).append(value)
    means = {name: math.fsum(values) / len(values) for name, values in by_metric.items()}
    return trials[0], means


# ── outcomes ──────────────────────────────────────────────────────────────────────────────────────────────────


class MeasuredTrial(_ScoredTrial, Protocol):
    """The parts of one trial, or of all trials of a case, that gates read, with the reasons for missing scores."""

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
    """Return the outcome of a case or one trial by its gates, and why it is skipped. Errors stay errors."""
    if case.error is not None:
        return "error", None
    if gated.failed:
        return "failed", None
    if case.scores and (gated.is_gold_examined or not gated.unexamined):
        return "passed", None
    return "skipped", _unexamined(gated.unexamined, trials) or _unscored(trials)


def _unexamined(names: Sequence[str], trials: Sequence[MeasuredTrial]) -> str | None:
    """Return why no gate could examine the gold of a case; None if no metric is named."""
    if not names:
        return None
    reasons: dict[str, None] = {}
    for name in names:
        for trial in trials:
            if name in trial.unobserved:
                reasons[trial.skipped_metrics[name]] = None
    return f"its gold could not be looked at ({', '.join(names)}): {'; '.join(reasons)}"


def _unscored(trials: Sequence[MeasuredTrial]) -> str:
    reasons: set[str] = set()
    for trial in trials:
        reasons.update(trial.skipped_metrics.values(), trial.metric_errors.values())
    return "nothing in it could be scored: " + "; ".join(sorted(reasons))
