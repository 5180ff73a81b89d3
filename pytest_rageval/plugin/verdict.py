"""Passed, failed, known to fail, or not scored: a case's result as pytest says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_rageval.errors import GateFailure
from pytest_rageval.model import CaseResult
from pytest_rageval.report.failure import failure_text, gate_message

if TYPE_CHECKING:
    from pytest_rageval.plugin.session import EvalSession


def assert_gates(result: CaseResult, run: EvalSession) -> None:
    """Raise what pytest understands; return where all gates hold."""
    __tracebackhide__ = True
    if result.failed_gates:
        known = _is_known(result, run)
        if known:
            pytest.xfail(f"{known}: " + "; ".join(gate_message(gate) for gate in result.failed_gates))
        raise GateFailure(failure_text(result))
    if not result.scores:
        pytest.skip(result.reason or "nothing in it could be scored")


def _is_known(result: CaseResult, run: EvalSession) -> str | None:
    """Why this failure does not fail the run, or None."""
    mode = run.settings.known_failures
    if mode == "report":
        return "known_failures = report"
    if mode == "ratchet" and run.baseline is not None:
        before = run.baseline.cases.get(result.key)
        return "failed in the baseline as well" if before is not None and before.is_bad else None
    return None
