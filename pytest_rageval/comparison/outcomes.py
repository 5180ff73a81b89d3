"""Outcomes of cases by their gates, and known failures: the rules that pytest and the commands share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.cases.canonical import asked_hash
from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.gates_now import gates_of
from pytest_rageval.matching.places import gold_kind
from pytest_rageval.metrics.assertions import NAME as ASSERTIONS
from pytest_rageval.metrics.assertions import broken_assertions
from pytest_rageval.model import CaseResult, Outcome
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.decision_hash import asked_part
from pytest_rageval.runs.row import CaseScores
from pytest_rageval.text import cut, printable

REPORT = "known_failures = report"
RATCHET = "failed in the baseline as well"
NOTHING_SCORED = "nothing in it could be scored"
IS_KNOWN = (REPORT, RATCHET)
"""The beginnings of a known failure's reason."""
LONGEST_BROKEN = 400
"""Characters of what is said about broken assertions in a reason."""


class Ending(NamedTuple):
    """The outcome of a case and its reason; None if it passed."""

    outcome: Outcome
    reason: str | None = None


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
    # The gates of now decide about the scores of then: a gate that was added later is known to fail as well.
    obs = result.observation
    kind = obs.matching.kind if obs else gold_kind(result.case.gold, plan.settings.gold_by)
    gates = plan.gates_in_effect.of(result.case, kind).words
    gates_before = gates_of(baseline.metrics, baseline.config, plan.settings.k)
    failed_before = gates_before.failed(gates, before.scores)
    failed_now = {gate.metric.partition("@")[0] for gate in result.failed_gates}
    return RATCHET if failed_now <= failed_before else None


def unmeasured(result: CaseResult, baseline: Side | None, asked: str | None = None) -> str | None:
    """Return why a case fails that the baseline measured and this run could not; None if it does not fail for that."""
    before = _before(result, baseline, asked)
    if before is None:
        return None
    scored = {name.partition("@")[0] for name in before.scores}
    lost = [name for name in result.unexamined if name.partition("@")[0] in scored]
    if not lost:
        return None
    reasons = dict.fromkeys(result.skipped_metrics[name] for name in lost if name in result.skipped_metrics)
    return f"unmeasured: the baseline has {', '.join(lost)}; {'; '.join(reasons)}"


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
    if result.failed_gates:
        failed = "; ".join(map(str, result.failed_gates))
        known = known_failure(result, plan, baseline, asked)
        if known is not None:
            return Ending("xfailed", printable(f"{known}: {failed}"))
        # Not the reason of a known failure, which is kept where texts are left out: these lines quote the answer.
        broken = "; ".join(broken_assertions(result.details.get(ASSERTIONS, {})))
        if broken:
            failed = f"{failed}: {cut(broken, LONGEST_BROKEN)}"
        return Ending("failed", printable(failed))
    lost = unmeasured(result, baseline, asked)
    if lost is not None:
        if plan.settings.known_failures == "report":
            return Ending("xfailed", printable(f"{REPORT}: {lost}"))
        return Ending("failed", printable(lost))
    if result.outcome == "skipped":
        return Ending("skipped", printable(f"Skipped: {result.reason or NOTHING_SCORED}"))
    return Ending("passed")


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
    # The user's own xfail mark stays: it is no known failure of ours, whose reasons begin with IS_KNOWN.
    was_marked = was.outcome == "xfailed" and not (was.reason or "").startswith(IS_KNOWN)
    if was_marked and now.outcome == "failed":
        return was
    return now
