"""Outcomes of cases by their gates, and known failures: the rules that pytest and the commands share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.cases.canonical import asked_hash
from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.gates_now import gates_of
from pytest_rageval.gates.effect import decide
from pytest_rageval.matching.places import gold_kind
from pytest_rageval.metrics.assertions import NAME as ASSERTIONS
from pytest_rageval.metrics.assertions import broken_assertions
from pytest_rageval.model import CaseResult, Outcome
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.causes import UNMEASURED
from pytest_rageval.runs.decision_hash import asked_part, gated_part
from pytest_rageval.runs.flaky_cases import FLAKY, passed_when_rerun
from pytest_rageval.runs.row import CaseScores
from pytest_rageval.text import cut, printable

REPORT = "known_failures = report"
RATCHET = "failed in the baseline as well"
NOTHING_SCORED = "nothing in it could be scored"
LONGEST_BROKEN = 400
"""Characters of what is said about broken assertions in a reason."""


class Ending(NamedTuple):
    """The outcome of a case and its reason; one that passed has none, unless it is flaky."""

    outcome: Outcome
    reason: str | None = None


def is_known_failure(reason: str | None) -> bool:
    """Return True if a recorded reason is that of a known failure: records tell it in no other way."""
    return (reason or "").startswith((REPORT, RATCHET))


def known_failure(result: CaseResult, plan: Plan, baseline: Side | None, asked: str | None = None) -> str | None:
    """Return why the failed gates of this case do not fail the run, or None.

    With `ratchet`, the scores of the baseline must fail each of these gates too: any other failure is new.
    `asked`: the hash of what the case asks, if the result does not hold the whole case.
    """
    mode = plan.settings.known_failures
    if mode == "report":
        return REPORT
    before = _before(result, baseline, asked)
    if mode == "fail" or before is None or baseline is None:
        return None
    gates = _gates_before(result, before, plan, baseline)
    return RATCHET if _failed_beside(before, result, plan) <= gates.failed else None


class NewFailure(NamedTuple):
    """What a case newly fails against the baseline.

    metrics   of the gates that did not fail then, without their cut-offs
    is_known  True if the case failed then as well, by other gates
    """

    metrics: frozenset[str]
    is_known: bool


def new_failure(result: CaseResult, plan: Plan, baseline: Side | None, asked: str | None = None) -> NewFailure | None:
    """Return the gates that a case fails and did not fail in the baseline; None without any.

    A gate that the baseline did not measure says nothing about what changed in the system, unless the case passed
    nothing then. `asked`: the hash of what the case asks, if the result does not hold the whole case.
    """
    before = _before(result, baseline, asked)
    if before is None or baseline is None or not result.failed_gates:
        return None
    gates = _gates_before(result, before, plan, baseline)
    new = _failed_beside(before, result, plan) - gates.failed
    # A case that was skipped or broke then passed nothing: each gate that fails now is new.
    was_decided = before.is_bad or before.outcome == "passed"
    if not new or (was_decided and new.isdisjoint(gates.measured)):
        return None
    return NewFailure(frozenset(new), before.is_bad)


class _GatesBefore(NamedTuple):
    """The metrics whose current gates the baseline measured in a case, and those whose gates fail its scores."""

    measured: Collection[str]
    failed: set[str]


def _gates_before(result: CaseResult, before: CaseScores, plan: Plan, baseline: Side) -> _GatesBefore:
    """Decide the case in the baseline by the gates of now: one that was added later is known to fail as well."""
    obs = result.observation
    kind = obs.matching.kind if obs else gold_kind(result.case.gold, plan.settings.gold_by)
    in_effect = plan.gates_in_effect.of(result.case, kind)
    side = gates_of(baseline.metrics, baseline.config, plan.settings.k)
    holds = side.of_case(result.key, in_effect.words, before.scores)
    is_same = gated_part(before.decision_hash) == in_effect.hash[:16]
    if is_same and before.outcome == "passed":
        # A flaky case, and one that passes by its rule, may have scores that fail: then its outcome decides.
        return _GatesBefore(holds, set())
    return _GatesBefore(holds, {metric for metric, passes in holds.items() if not passes})


def _failed_beside(before: CaseScores, result: CaseResult, plan: Plan) -> set[str]:
    """Return the metrics whose gates fail now, to be held against those that failed in the baseline."""
    if not before.is_bad or result.by_rule is None:
        return {bare_metric(gate.metric) for gate in result.failed_gates}
    # Which trials failed which gates then is not stored: both sides are told apart by their means.
    failed = {metric for metric, holds in _decided_now(result, plan).items() if not holds}
    spared = result.confirmation.spared if result.confirmation is not None else ()
    return failed.difference(spared)


def bare_metric(name: str) -> str:
    """Return a metric without its cut-off."""
    return name.partition("@")[0]


def _decided_now(result: CaseResult, plan: Plan) -> Mapping[str, bool]:
    """Return whether the gates of each metric hold for the means of a case."""
    assert result.observation is not None
    words = plan.gates_in_effect.of(result.case, result.observation.matching.kind).words
    judgements = result.observation.judgements.values()
    is_heuristic = any(judgement.heuristic for judgement in judgements)
    return decide(words, result.scores, (plan.settings.k,), is_heuristic=is_heuristic)


def unmeasured(result: CaseResult, plan: Plan, baseline: Side | None, asked: str | None = None) -> str | None:
    """Return why a case fails that the baseline measured and this run could not; None if it does not fail for that.

    A gate that the user wrote fails the case even if another gate examined it. A default gate does not: then the
    verdict of the run says that retrieval was not measured.
    """
    before = _before(result, baseline, asked)
    if before is None:
        return None
    scored = {name.partition("@")[0] for name in before.scores}
    lost = [name for name in result.unexamined if bare_metric(name) in scored]
    if result.is_gold_examined and lost:
        written = _written_gates(result, plan)
        lost = [name for name in lost if name in written]
    if not lost:
        return None
    reasons = dict.fromkeys(result.skipped_metrics[name] for name in lost if name in result.skipped_metrics)
    return f"{UNMEASURED}the baseline has {', '.join(lost)}; {'; '.join(reasons)}"


def _written_gates(result: CaseResult, plan: Plan) -> set[str]:
    """Return the metrics of the gates in effect for a case that the user wrote."""
    obs = result.observation
    kind = obs.matching.kind if obs else gold_kind(result.case.gold, plan.settings.gold_by)
    gates = plan.gates_in_effect.of(result.case, kind).gates
    return {gate.name for gate in gates if not gate.is_default}


def _before(result: CaseResult, baseline: Side | None, asked: str | None) -> CaseScores | None:
    """Return the case in the baseline; None if it asked something else then."""
    before = baseline.cases.get(result.key) if baseline is not None else None
    if before is None:
        return None
    asked_now = asked or asked_hash(result.case)
    is_same = asked_now.startswith(asked_part(before.decision_hash))
    return before if is_same else None


def ending(result: CaseResult, plan: Plan, baseline: Side | None, asked: str | None = None) -> Ending:
    """Return how pytest would end the case of this result (over all its trials), with the reason."""
    error = result.error
    if error is not None and error.kind == "missing" and plan.settings.allow_partial:
        return Ending("skipped", printable(f"Skipped: {error.message}"))
    if error is not None:
        # The first line with text, as pytest shows it.
        lines = printable(f"{error.kind}: {error.message}").splitlines()
        return Ending("error", next((line.strip() for line in lines if line.strip()), None))
    if result.is_flaky and not result.failed_gates:
        return Ending("passed", flaky_reason(result))
    if result.failed_gates:
        failed = "; ".join(map(str, result.failed_gates))
        remarks: list[str] = []
        trials = result.by_rule or result.by_mean
        if trials is not None:
            remarks.append(trials)
        confirmation = result.confirmation
        if confirmation is not None and confirmation.spared:
            remarks.append(f"{FLAKY}{confirmation.first} {confirmation}")
        elif confirmation is not None and not confirmation.is_unanimous:
            remarks.append(str(confirmation))
        if remarks:
            failed += f" ({'; '.join(remarks)})"
        known = known_failure(result, plan, baseline, asked)
        if known is not None:
            return Ending("xfailed", printable(f"{known}: {failed}"))
        # Not the reason of a known failure, which is kept where texts are left out: these lines quote the answer.
        broken = "; ".join(broken_assertions(result.details.get(ASSERTIONS, {})))
        if broken:
            failed = f"{failed}: {cut(broken, LONGEST_BROKEN)}"
        return Ending("failed", printable(failed))
    lost = unmeasured(result, plan, baseline, asked)
    if lost is not None:
        if plan.settings.known_failures == "report":
            return Ending("xfailed", printable(f"{REPORT}: {lost}"))
        return Ending("failed", printable(lost))
    if result.outcome == "skipped":
        return Ending("skipped", printable(f"Skipped: {result.reason or NOTHING_SCORED}"))
    return Ending("passed", flaky_reason(result))


def flaky_reason(result: CaseResult) -> str | None:
    """Return why a case that passed is flaky; None if it passed at its only attempt."""
    if result.confirmation is not None and result.confirmation.is_flaky:
        return printable(f"{FLAKY}{result.confirmation}: {result.confirmation.first}")
    return passed_when_rerun(result.attempts)


def ending_from_records(
    result: CaseResult, records: Sequence[Mapping[str, Any]], plan: Plan, baseline: Side | None
) -> Ending:
    """Return how a case ends if it is decided again from its records, one for each trial.

    Keep what the project's own code decided: the outcome of its own test, a mark, a permitted missing answer.
    """
    was = Ending(records[0]["outcome"], records[0]["reason"])
    if result.test is not None:
        is_error = result.error is not None or was.outcome == "error"
        return Ending("error" if is_error else was.outcome, result.reason)
    recorded_errors = {(record["error"] or {}).get("kind") for record in records}
    if result.error is not None and result.error.kind in recorded_errors:
        return was
    now = ending(result, plan, baseline, asked_part(records[0].get("decision_hash")))
    # The user's own xfail mark stays: it is no known failure of ours.
    was_marked = was.outcome == "xfailed" and not is_known_failure(was.reason)
    if was_marked and now.outcome == "failed":
        return was
    return now
