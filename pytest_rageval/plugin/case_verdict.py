"""Passed, failed, known to fail, or not scored: a case's result as pytest says it."""

from __future__ import annotations

import pytest

from pytest_rageval.comparison.baseline import Baseline
from pytest_rageval.comparison.outcomes import NOTHING_SCORED, REPORT, known_failure, unmeasured
from pytest_rageval.errors import GateFailure
from pytest_rageval.model import CaseResult
from pytest_rageval.plan import Plan
from pytest_rageval.render.text.failure import failure_text


def assert_gates(result: CaseResult, plan: Plan, baseline: Baseline | None) -> None:
    """Raise what pytest understands; return where all gates hold."""
    __tracebackhide__ = True
    if result.failed_gates:
        reason = known_failure(result, plan, baseline)
        if reason:
            pytest.xfail(f"{reason}: " + "; ".join(map(str, result.failed_gates)))
        raise GateFailure(failure_text(result))
    if reason := unmeasured(result, baseline):
        if plan.settings.known_failures == "report":
            pytest.xfail(f"{REPORT}: {reason}")
        raise GateFailure(failure_text(result, reason))
    if result.outcome == "skipped":
        pytest.skip(result.reason or NOTHING_SCORED)
