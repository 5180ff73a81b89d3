"""Attempts at a case: its trials are asked until they decide about it, and all of it again where it newly fails."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.outcomes import Ending, ending, newly_fails
from pytest_rageval.gates.pass_rule import BY_MEAN, TrialCount, is_mean_decided
from pytest_rageval.io.case_output import Output
from pytest_rageval.model import CaseResult, Confirmation, EvalCase, Trial
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.scoring import (
    Evaluation,
    Observed,
    evaluation_of,
    gated_trial,
    gates_of_trial,
    pass_rule_of,
    scored_trials,
)

CONFIRMATIONS = 2
"""How often a case that newly fails is asked again, unless the settings say otherwise: two of three decide."""


class DecidedCase(NamedTuple):
    """A case with all of its trials, how it ends, and what user code printed for it."""

    evaluation: Evaluation
    ending: Ending
    printed: Output


Deciding = Generator[list[Trial], list[Observed], DecidedCase]
"""Yields trials to be asked, gets their observations, and returns the decided case.

Whoever asks decides how: at once, on the loop, or ahead of need.
"""


def drive(deciding: Deciding, observed: list[Observed], ask: Callable[[list[Trial]], list[Observed]]) -> DecidedCase:
    """Decide a case whose first trials were observed; `ask` observes the further ones."""
    while True:
        try:
            trials = deciding.send(observed)
        except StopIteration as end:
            decided: DecidedCase = end.value
            return decided
        observed = ask(trials)


@dataclass(frozen=True, slots=True)
class Attempts:
    """How one case is decided.

    baseline    what it must newly fail against to be asked again
    confirm     how often it is then asked again
    take_output  returns what was printed while trials were asked
    reruns      how often a plugin has run its test, this time included
    test        the node id of a test of the project's own
    """

    case: EvalCase
    plan: Plan
    baseline: Side | None
    confirm: int
    take_output: Callable[[Sequence[Trial]], Output]
    reruns: int = 1
    test: str | None = None

    def decide(self) -> Deciding:
        """Ask the trials of the case; ask for as many again as often as it takes to confirm a new failure."""
        printed: list[Output] = []
        first = yield from self._attempt(0, printed)
        evaluation = first
        end = self._ending(first.overall)
        if self.confirm and end.outcome == "failed" and newly_fails(first.overall, self.plan, self.baseline):
            others = yield from self._confirmations(printed)
            evaluation = confirmed([first, *others], self._ending)
            end = self._ending(evaluation.overall)
        output, *others_output = printed
        for other in others_output:
            output.extend(other)
        return DecidedCase(with_number_of_records(evaluation, self.plan), end, output)

    def _ending(self, result: CaseResult) -> Ending:
        return ending(result, self.plan, self.baseline)

    def _trials(self, attempt: int) -> list[Trial]:
        repeat = self.plan.settings.repeat
        return [Trial(self.case, attempt * repeat + number, self.test) for number in range(repeat)]

    def _attempt(self, number: int, printed: list[Output]) -> Generator[list[Trial], list[Observed], Evaluation]:
        """Ask the trials of one attempt, in portions if those to come may turn out not to be needed."""
        trials = self._trials(number)
        results: list[CaseResult] = []
        while len(results) < len(trials):
            asked = len(results)
            portion = trials[asked : asked + self._most_needed(results, len(trials))]
            if not portion:
                break
            observed = yield portion
            results += self._scored(portion, observed, printed)
        return _of_attempt(number, evaluation_of(results, self.plan))

    def _confirmations(self, printed: list[Output]) -> Generator[list[Trial], list[Observed], list[Evaluation]]:
        """Ask the case again so often, all at the same time unless some trials may turn out not to be needed."""
        numbers = range(1, self.confirm + 1)
        evaluations: list[Evaluation] = []
        if self.plan.stops_when_decided:
            for number in numbers:
                evaluation = yield from self._attempt(number, printed)
                evaluations += [evaluation]
            return evaluations
        trials: list[Trial] = []
        for number in numbers:
            trials += self._trials(number)
        observed = yield trials
        results = self._scored(trials, observed, printed)
        repeat = self.plan.settings.repeat
        for number in numbers:
            of_attempt = results[(number - 1) * repeat : number * repeat]
            evaluations.append(_of_attempt(number, evaluation_of(of_attempt, self.plan)))
        return evaluations

    def _scored(self, trials: list[Trial], observed: list[Observed], printed: list[Output]) -> list[CaseResult]:
        output = self.take_output(trials)
        printed.append(output)
        with output:
            return scored_trials(trials, observed, self.plan, self.reruns)

    def _most_needed(self, results: Sequence[CaseResult], trials: int) -> int:
        """Return how many trials can be asked next without asking one that is not needed."""
        if not self.plan.stops_when_decided:
            return trials
        if any(result.error is not None for result in results):
            return 0  # the case is an error whatever the others say
        rule = pass_rule_of(self.case, self.plan)
        if rule != BY_MEAN:
            return TrialCount.of(result.outcome for result in results).most_needed(rule, trials)
        if not results:
            return 1
        to_come = trials - len(results)
        gates = gates_of_trial(results[0], self.plan)
        return 0 if is_mean_decided(gates, list(map(gated_trial, results)), to_come) else 1


def _of_attempt(number: int, evaluation: Evaluation) -> Evaluation:
    """Mark the trials of an attempt that confirms."""
    if not number:
        return evaluation
    trials = tuple(replace(trial, confirms=number) for trial in evaluation.trials)
    return Evaluation(replace(evaluation.overall, confirms=number), trials)


def confirmed(attempts: Sequence[Evaluation], end_of: Callable[[CaseResult], Ending]) -> Evaluation:
    """Return a case that newly failed at its first attempt, decided by the majority of all attempts.

    Its scores stay those of the first attempt: asking again moves no mean.
    """
    first, *others = attempts
    gates = {gate.metric for gate in first.overall.failed_gates}
    failed = errors = 0
    for other in others:
        result = other.overall
        # A gate that failed and is not measured now says nothing for the case.
        is_measured = gates.isdisjoint(result.unobserved)
        if end_of(result).outcome != "passed" or not is_measured:
            failed += 1
        if result.error is not None:
            errors += 1
    words = "; ".join(map(str, first.overall.failed_gates))
    confirmation = Confirmation(len(attempts), 1 + failed, errors, words)
    overall = replace(first.overall, confirmation=confirmation)
    if confirmation.is_flaky:
        examined = overall.passed_gates + len(overall.failed_gates)
        overall = replace(overall, outcome="passed", passed_gates=examined, failed_gates=())
    trials = list(first.trials)
    for other in others:
        trials += other.trials
    return Evaluation(overall, tuple(trials))


def with_number_of_records(evaluation: Evaluation, plan: Plan) -> Evaluation:
    """Note how many trials the case has, if these are not as many as configured."""
    records = len(evaluation.trials)
    if records == plan.settings.repeat:
        return evaluation
    return evaluation._replace(overall=replace(evaluation.overall, records=records))
