"""One case scored and gated: from its observations to its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pytest_rageval.abstention.own_words import own_words
from pytest_rageval.errors import OddScoreError, ends_the_run, message_of
from pytest_rageval.gates.gate import Gate
from pytest_rageval.gates.pass_rule import BY_MEAN, mean_words, rule_verdict
from pytest_rageval.gates.verdict import GatedTrial, MeasuredTrial, ending_by_gates, gate_verdict, over_trials
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.suggestions import listed
from pytest_rageval.metrics.registry import GENERATED, Scored
from pytest_rageval.model import (
    NOTHING,
    Answer,
    CaseResult,
    EvalCase,
    FailedJudgement,
    Json,
    NotApplicable,
    Observation,
    PassRule,
    Problem,
    RewrittenScores,
    Score,
    Timings,
    Trial,
)
from pytest_rageval.run.ask import LONGEST_MESSAGE, raised
from pytest_rageval.run.plan import Plan
from pytest_rageval.text import excerpt


@dataclass(frozen=True, slots=True)
class AskFailure:
    """A failure to ask, or of user code: no scores, and the case is an error. `answer` is what was received before."""

    problem: Problem
    timings: Timings = Timings()
    answer: Answer | None = None


Observed = Observation | AskFailure


def failed_metric(name: str, error: BaseException, mask: Mask) -> str:
    """Return in one line why a metric gave no score: it raised something, or what it returned is none."""
    if isinstance(error, OddScoreError):
        return f"metric {excerpt(mask.text(message_of(error)), LONGEST_MESSAGE)}"
    return f"metric {name} raised {raised(error, mask)}"


def score_case(case: EvalCase, observed: Observed, plan: Plan, stored: Mapping[str, Scored] = NOTHING) -> CaseResult:
    """Score an observation by every measure and gate it, as the only trial of its case. Pure.

    `stored`: what some measures gave before, which are not asked again.
    """
    if isinstance(observed, AskFailure):
        return CaseResult(case, "error", error=observed.problem, timings=observed.timings, answer=observed.answer)
    if (missing := _missing_answer(observed, plan)) is not None:
        return CaseResult(case, "error", observation=observed, error=missing, timings=observed.timings)
    measured = _measured(observed, plan, stored)
    if measured.failed and (problem := _gated_failure(observed, measured.failed, plan)) is not None:
        return CaseResult(case, "error", observation=observed, error=problem, timings=observed.timings)
    return CaseResult(
        case,
        observation=observed,
        scores=measured.scores,
        details=measured.details,
        skipped_metrics=measured.skipped_metrics,
        unobserved=measured.unobserved,
        error=measured.error,
        metric_errors=measured.metric_errors,
        timings=observed.timings,
        trial=observed.trial,
        rewritten=_rewritten_scores(observed, plan),
        **_decided(measured, [(observed, measured)], plan),
    )


def _rewritten_scores(obs: Observation, plan: Plan) -> RewrittenScores | None:
    """Return the scores of a follow-up asked as its rewrite. They decide nothing about the case."""
    rewritten = obs.rewritten
    if not isinstance(rewritten, Observation):
        return None
    missing = _missing_answer(rewritten, plan)
    if missing is not None:
        return RewrittenScores(metric_errors=dict.fromkeys((each.name for each in plan.measures), missing.kind))
    measured = _measured(rewritten, plan, NOTHING)
    errors = dict(measured.metric_errors)
    if measured.error is not None:  # metrics of the project's own have raised something
        for measure in plan.measures:
            if measure.name not in measured.scores and measure.name not in measured.skipped_metrics:
                errors[measure.name] = measured.error.message
    return RewrittenScores(measured.scores, errors)


def _decided(case: MeasuredTrial, trials: Sequence[tuple[Observation, MeasuredTrial]], plan: Plan) -> dict[str, Any]:
    """Gate a case, or one trial as its only one; return the result's fields. An error stays an error."""
    obs = trials[0][0]
    gates = plan.gates_in_effect.of(obs.case, obs.matching.kind).gates
    gated_trials = [GatedTrial(observation, measured.scores, measured.unobserved) for observation, measured in trials]
    gated = gate_verdict(gates, gated_trials)
    outcome, reason = ending_by_gates(case, gated, [measured for _, measured in trials])
    if outcome == "skipped" and obs.case.conversational and not gated.unexamined:
        outcome, reason = "passed", None  # thanks that were answered: there is nothing to score
    return {
        "outcome": outcome,
        "reason": reason,
        "passed_gates": gated.held,
        "failed_gates": gated.failed,
        "unexamined": gated.unexamined,
        "is_gold_examined": gated.is_gold_examined,
        "has_ungated_facts": gated.has_ungated_facts,
        "has_ungated_answer": gated.has_ungated_answer,
    }


def _gated_failure(obs: Observation, failed: Mapping[str, FailedJudgement], plan: Plan) -> Problem | None:
    """Return the judgement failure that makes the case an error: a gate in effect reads its metric."""
    for gate in plan.gates_reading(obs.case, obs.matching.kind):
        if gate.name in failed and not (gate.is_default and failed[gate.name].judgement.heuristic):
            return failed[gate.name].problem
    return None


class _Measurements(NamedTuple):
    """The scores of one observation."""

    scores: Mapping[str, float]
    details: Mapping[str, Mapping[str, Json]]
    skipped_metrics: Mapping[str, str]
    unobserved: tuple[str, ...]
    error: Problem | None
    failed: Mapping[str, FailedJudgement]

    @property
    def metric_errors(self) -> Mapping[str, str]:
        return {name: str(failure) for name, failure in self.failed.items()}


def _measured(observation: Observation, plan: Plan, stored: Mapping[str, Scored]) -> _Measurements:
    scores: dict[str, float] = {}
    details: dict[str, Mapping[str, Json]] = {}
    skipped: dict[str, str] = {}
    unobserved: list[str] = []
    broken: list[str] = []
    failed: dict[str, FailedJudgement] = {}
    for measure in plan.measures:
        try:
            scored = stored[measure.name] if stored and measure.name in stored else measure.score(observation)
        except FailedJudgement as failure:
            failed[measure.name] = failure
            continue
        # A metric may be user code: whatever it raises, pytest.skip() included, is recorded for this case.
        except BaseException as error:
            if ends_the_run(error):
                raise
            broken.append(failed_metric(measure.name, error, plan.mask))
            continue
        if isinstance(scored, float):
            scores[measure.name] = scored
        elif isinstance(scored, NotApplicable):
            skipped[measure.name] = scored.reason
            if scored.is_unobserved:
                unobserved.append(measure.name)
        elif isinstance(scored, Score):
            scores[measure.name] = scored.value
            if scored.detail:
                details[measure.name] = scored.detail
    problem = Problem("metric", "; ".join(broken)) if broken else None
    return _Measurements(scores, details, skipped, tuple(unobserved), problem, failed)


NO_ANSWER = Problem(
    "no_answer",
    "the system gave no answer, and the case has a gold answer; a system that declines says so (`abstained`), and "
    "--rageval-retrieval-only measures retrieval alone",
)


def _missing_answer(obs: Observation, plan: Plan) -> Problem | None:
    """Return why a wanted answer is missing: there is none, or it only says what the system is going to do."""
    if _lacks_answer(obs, plan):
        return _no_answer(obs, plan)
    text = obs.answer.text
    if text is None or obs.answer.abstained is not None or not plan.scores_answers or plan.settings.retrieval_only:
        return None
    if not own_words(text).is_announcement:
        return None
    message = f"the system only said what it is going to do: {excerpt(plan.mask.text(text))!r}; send its last answer"
    return Problem("no_answer", message)


def _no_answer(obs: Observation, plan: Plan) -> Problem:
    """Return the problem of a missing answer, with the keys of the response that are no field of it."""
    keys = sorted(obs.answer.extra or ())
    if not keys:
        return NO_ANSWER
    shown_keys = excerpt(plan.mask.text(listed(keys)))
    return replace(NO_ANSWER, message=f"{NO_ANSWER.message}; 'answer' is not among the keys, but {shown_keys}")


def _lacks_answer(obs: Observation, plan: Plan) -> bool:
    """Return True if a wanted and scored answer is missing. A blank answer is present: it abstains."""
    if obs.answer.text is not None or obs.answer.abstained or not obs.case.answerable or plan.settings.retrieval_only:
        return False
    is_looked_at = any(measure.metric.layer in GENERATED for measure in plan.measures)
    if not is_looked_at:
        return False
    gold = obs.case.gold
    wanted = (*(gold.answers or ()), *(gold.key_facts or ()))
    return any(text.strip() for text in wanted) or bool(obs.case.assertions)


class Evaluation(NamedTuple):
    """All trials of one case, and their overall result."""

    overall: CaseResult
    trials: tuple[CaseResult, ...]


def evaluation(
    trials: Sequence[Trial],
    observed: Sequence[Observed],
    plan: Plan,
    attempts: int = 1,
    stored: Sequence[Mapping[str, Scored]] | None = None,
) -> Evaluation:
    """Score all trials of one case. Pure. `stored`: for each trial as for `score_case`."""
    return evaluation_of(scored_trials(trials, observed, plan, attempts, stored), plan)


def scored_trials(
    trials: Sequence[Trial],
    observed: Sequence[Observed],
    plan: Plan,
    attempts: int = 1,
    stored: Sequence[Mapping[str, Scored]] | None = None,
) -> list[CaseResult]:
    """Score trials of one case, each gated as its only one. Pure."""
    results = []
    for trial, observation, scores in zip(trials, observed, stored or [NOTHING] * len(trials), strict=True):
        result = score_case(trial.case, observation, plan, scores)
        if (result.trial, result.test, result.attempts) != (trial.number, trial.test, attempts):
            result = replace(result, trial=trial.number, test=trial.test, attempts=attempts)
        results.append(result)
    return results


def evaluation_of(results: Sequence[CaseResult], plan: Plan) -> Evaluation:
    """Combine the scored trials of one case. Pure."""
    # A single trial is its own mean, passes by any rule if it passes, and has been gated.
    return Evaluation(results[0] if len(results) == 1 else overall_result(results, plan), tuple(results))


def overall_result(results: Sequence[CaseResult], plan: Plan) -> CaseResult:
    """Combine the trials of a case by its pass rule, with the mean of each score; an error if a trial is an error."""
    stands, scores = over_trials(results, lambda result: result.error is not None)
    if stands.error is not None or stands.observation is None:
        return stands
    unobserved: dict[str, None] = {}
    errors: dict[str, str] = {}
    for result in results:
        unobserved |= dict.fromkeys(result.unobserved)
        errors |= result.metric_errors
    # A metric that one trial observed has a mean.
    without_score = tuple(name for name in unobserved if name not in scores)
    mean = replace(stands, scores=scores, unobserved=without_score, metric_errors=errors)
    trials = [(trial.observation, trial) for trial in results if trial.observation is not None]
    by_mean = replace(mean, **_decided(mean, trials, plan))
    rule = pass_rule_of(stands.case, plan)
    if len(results) == 1:
        return by_mean
    if rule != BY_MEAN:
        return _by_rule(rule, by_mean, results, plan)
    passed = sum(result.outcome == "passed" for result in results)
    by_mean = replace(by_mean, by_mean=mean_words(passed, len(results)))
    failing = next((result for result in results if result.outcome == "failed"), None)
    if failing is None or not by_mean.failed_gates:
        return by_mean
    # A failing case shows the answer of a trial that fails, not the right one of another.
    return replace(by_mean, observation=failing.observation, details=failing.details)


def pass_rule_of(case: EvalCase, plan: Plan) -> PassRule:
    """Return how the trials of a case decide about it: as the case says, else as the run does."""
    return plan.settings.pass_rule if case.pass_rule is None else case.pass_rule


def _by_rule(rule: PassRule, by_mean: CaseResult, results: Sequence[CaseResult], plan: Plan) -> CaseResult:
    """Return the result with the verdict of a rule on its single trials in place of that on their means."""
    gates = gates_of_trial(results[0], plan)
    trials = [(gated_trial(result), result) for result in results if result.observation is not None]
    verdict = rule_verdict(rule, gates, trials)
    if verdict.outcome == "skipped":
        # No trial was examined: then the means were not either.
        return by_mean
    return replace(
        by_mean,
        outcome=verdict.outcome,
        reason=None,
        passed_gates=verdict.held,
        failed_gates=verdict.failed,
        unexamined=(),
        by_rule=verdict.words,
    )


def gates_of_trial(result: CaseResult, plan: Plan) -> Sequence[Gate]:
    """Return the gates in effect for the case of an observed trial."""
    assert result.observation is not None
    return plan.gates_in_effect.of(result.case, result.observation.matching.kind).gates


def gated_trial(result: CaseResult) -> GatedTrial:
    """Return the parts of an observed trial that gates read."""
    assert result.observation is not None
    return GatedTrial(result.observation, result.scores, result.unobserved)
