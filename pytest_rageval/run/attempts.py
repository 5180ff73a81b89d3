"""Attempts at a case: its trials are asked until they decide about it, and all of them again if it newly fails."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.outcomes import Ending, NewFailure, bare_metric, ending, new_failure
from pytest_rageval.gates.pass_rule import BY_MEAN, TrialCount, is_mean_decided
from pytest_rageval.io.case_output import Output
from pytest_rageval.model import CaseResult, Confirmation, EvalCase, FailedGate, Trial
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
MOST_BY_CHANCE = 20
"""New failures of a process that are asked again in any case."""
SHARE_BY_CHANCE = 0.5
"""The share of its cases that may newly fail by chance.

Of 20 cases that fail one time in three, none is confirmed once in 10 million builds: such a build is red either way.
"""


@dataclass(slots=True)
class NewFailureCount:
    """The cases of a process that were decided, and how many of them newly fail.

    A system that answers no more turns every case red, and would be asked three times over for it.
    """

    cases: int = 0
    new_failures: int = 0

    def add(self, *, is_new: bool) -> None:
        self.cases += 1
        self.new_failures += is_new

    @property
    def is_beyond_chance(self) -> bool:
        """Return True if so many cases newly fail that a system which only wavers does not explain it."""
        return self.new_failures > MOST_BY_CHANCE and self.new_failures >= SHARE_BY_CHANCE * self.cases


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

    baseline     what it must newly fail against to be asked again
    confirm      how often it is then asked again
    take_output  returns what was printed while trials were asked
    reruns       how often a plugin has run its test, this time included
    test         the node id of a test of the project's own
    count        of the process, which may be past asking again
    """

    case: EvalCase
    plan: Plan
    baseline: Side | None
    confirm: int
    take_output: Callable[[Sequence[Trial]], Output]
    reruns: int = 1
    test: str | None = None
    count: NewFailureCount = field(default_factory=NewFailureCount)

    def decide(self) -> Deciding:
        """Ask the trials of the case; ask for as many again as often as it takes to confirm a new failure."""
        printed: list[Output] = []
        first = yield from self._attempt(0, printed)
        evaluation = first
        end = self._ending(first.overall)
        failure = self._new_failure(first.overall) if end.outcome == "failed" else None
        # Each case counts, also one that passes: the share of those that fail is what chance has to explain.
        self.count.add(is_new=failure is not None)
        if failure is not None:
            others: list[Evaluation] = []
            if not self.count.is_beyond_chance:
                others = yield from self._confirmations(printed)
            evaluation = confirmed([first, *others], failure, self._ending, self._new_failure)
            end = self._ending(evaluation.overall)
        output, *others_output = printed
        for other in others_output:
            output.extend(other)
        return DecidedCase(with_number_of_records(evaluation, self.plan), end, output)

    def _ending(self, result: CaseResult) -> Ending:
        return ending(result, self.plan, self.baseline)

    def _new_failure(self, result: CaseResult) -> NewFailure | None:
        """Return what the case newly fails, if the run confirms new failures."""
        return new_failure(result, self.plan, self.baseline) if self.confirm else None

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
        # All at once: two further attempts then take as long as one.
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


def confirmed(
    attempts: Sequence[Evaluation],
    failure: NewFailure,
    end_of: Callable[[CaseResult], Ending],
    failure_of: Callable[[CaseResult], NewFailure | None],
) -> Evaluation:
    """Return a case that newly failed at its first attempt, decided by the majority of all attempts.

    Its scores stay those of the first attempt: asking again moves no mean. A single attempt was not confirmed, and
    stays as it is. A case that failed before keeps the gates that it failed then, and only the new ones are confirmed.
    """
    first, *others = attempts
    new_gates = [gate for gate in first.overall.failed_gates if _is_confirmed(gate, failure)]
    words = "; ".join(map(str, new_gates))
    if not others:
        return first._replace(overall=replace(first.overall, confirmation=Confirmation.left_out(words)))
    names = {gate.metric for gate in new_gates}
    failed = errors = 0
    for other in others:
        result = other.overall
        if failure.is_known:
            fails_again = result.error is not None or failure_of(result) is not None
        else:
            fails_again = end_of(result).outcome != "passed"
        # A gate that failed and is not measured now says nothing for the case.
        is_measured = names.isdisjoint(result.unobserved)
        if fails_again or not is_measured:
            failed += 1
        if result.error is not None:
            errors += 1
    confirmation = Confirmation(len(attempts), 1 + failed, errors, words)
    overall = replace(first.overall, confirmation=confirmation)
    if confirmation.is_flaky:
        overall = _spared(overall, confirmation, new_gates)
    trials = list(first.trials)
    for other in others:
        trials += other.trials
    return Evaluation(overall, tuple(trials))


def _is_confirmed(gate: FailedGate, failure: NewFailure) -> bool:
    """Return True for the gates that further attempts decide: all of a case that did not fail before."""
    return not failure.is_known or bare_metric(gate.metric) in failure.metrics


def _spared(result: CaseResult, confirmation: Confirmation, gates: Sequence[FailedGate]) -> CaseResult:
    """Return the result without the failure of these gates, which did not fail in most attempts."""
    staying = tuple(gate for gate in result.failed_gates if gate not in gates)
    held = result.passed_gates + len(result.failed_gates) - len(staying)
    if not staying:
        return replace(result, outcome="passed", passed_gates=held, failed_gates=())
    metrics = sorted({bare_metric(gate.metric) for gate in gates})
    confirmation = confirmation._replace(spared=tuple(metrics))
    return replace(result, confirmation=confirmation, passed_gates=held, failed_gates=staying)


def with_number_of_records(evaluation: Evaluation, plan: Plan) -> Evaluation:
    """Note how many trials the case has, if these are not as many as configured."""
    records = len(evaluation.trials)
    if records == plan.settings.repeat:
        return evaluation
    return evaluation._replace(overall=replace(evaluation.overall, records=records))
