"""How a case ends by its gates, and which failures are known: rules that pytest and the command share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.cases import asked_hash
from pytest_rageval.compare.baseline import Baseline
from pytest_rageval.config.settings import Settings
from pytest_rageval.model import CaseResult, Outcome
from pytest_rageval.runs.decision_hash import asked_part
from pytest_rageval.runs.row import CaseScores
from pytest_rageval.text import printable

REPORT, RATCHET = "known_failures = report", "failed in the baseline as well"
NOTHING_SCORED = "nothing in it could be scored"
IS_KNOWN = (REPORT, RATCHET)
"""How the reason of a known failure begins."""


class Ending(NamedTuple):
    """How a case ends, and why; no reason where it passed."""

    outcome: Outcome
    reason: str | None = None


def known_failure(result: CaseResult, settings: Settings, baseline: Baseline | None) -> str | None:
    """Why the failed gates of this case do not fail the run, or None.

    With `ratchet` each of them must have failed in the baseline too: what breaks beside a known failure is new.
    """
    mode = settings.known_failures
    if mode == "report":
        return REPORT
    if mode == "ratchet" and baseline is not None:
        before = _before(result, settings, baseline)
        if before is None or not before.is_bad:
            return None
        failed = {gate.metric.partition("@")[0] for gate in result.failed_gates}
        return RATCHET if before.failed_metrics is None or failed <= before.failed_metrics else None
    return None


def unmeasured(result: CaseResult, settings: Settings, baseline: Baseline | None) -> str | None:
    """Why a case fails of whose gold nothing could be looked at, though the baseline did; None where it need not."""
    before = _before(result, settings, baseline)
    if before is None:
        return None
    scored = {name.partition("@")[0] for name in before.scores}
    lost = [name for name in result.unexamined if name.partition("@")[0] in scored]
    reasons = dict.fromkeys(result.skipped_metrics[name] for name in lost if name in result.skipped_metrics)
    return f"unmeasured: the baseline has {', '.join(lost)}; {'; '.join(reasons)}" if lost else None


def _before(result: CaseResult, settings: Settings, baseline: Baseline | None) -> CaseScores | None:
    """The case in the baseline; where alike cases alone are compared, None of one that asked something else then."""
    before = baseline.cases.get(result.key) if baseline is not None else None
    if before is None or not settings.alike_cases:
        return before
    return before if asked_hash(result.case).startswith(asked_part(before.decision_hash)) else None


def ending(result: CaseResult, settings: Settings, baseline: Baseline | None) -> Ending:
    """How pytest would end the case of this result (of all its trials together), reason and all."""
    if result.error is not None and result.error.kind == "missing" and settings.allow_partial:
        return Ending("skipped", printable(f"Skipped: {result.error.message}"))
    if result.error is not None:
        # Of a message of several lines, as pytest shows it, the first one that says something.
        lines = printable(f"{result.error.kind}: {result.error.message}").splitlines()
        return Ending("error", next((line.strip() for line in lines if line.strip()), None))
    if result.failed_gates:
        failed = "; ".join(map(str, result.failed_gates))
        reason = known_failure(result, settings, baseline)
        return Ending("xfailed", printable(f"{reason}: {failed}")) if reason else Ending("failed", printable(failed))
    if reason := unmeasured(result, settings, baseline):
        is_reported = settings.known_failures == "report"
        return (
            Ending("xfailed", printable(f"{REPORT}: {reason}")) if is_reported else Ending("failed", printable(reason))
        )
    if result.outcome == "skipped":
        return Ending("skipped", printable(f"Skipped: {result.reason or NOTHING_SCORED}"))
    return Ending("passed")


def ending_again(
    result: CaseResult, records: Sequence[Mapping[str, Any]], settings: Settings, baseline: Baseline | None
) -> Ending:
    """How a case ends that has records, one a trial, and is decided again.

    What the project's own code decided stays: the outcome of a test of its own, a mark, an answer that may be missing.
    """
    was = Ending(records[0]["outcome"], records[0]["reason"])
    if result.test is not None:
        is_error = result.error is not None or was.outcome == "error"
        return Ending("error" if is_error else was.outcome, result.reason)
    if result.error is not None and result.error.kind in {(record["error"] or {}).get("kind") for record in records}:
        return was
    now = ending(result, settings, baseline)
    was_marked = was.outcome == "xfailed" and not (was.reason or "").startswith(IS_KNOWN)
    return was if was_marked and now.outcome == "failed" else now
