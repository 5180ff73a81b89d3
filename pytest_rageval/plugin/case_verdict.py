"""Passed, failed, known to fail, or not scored: a case's result as pytest says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_rageval.compare.outcomes import known_failure
from pytest_rageval.errors import GateFailure
from pytest_rageval.model import CaseResult
from pytest_rageval.report.failure import failure_text

if TYPE_CHECKING:
    from pytest_rageval.plugin.session import EvalSession


def assert_gates(result: CaseResult, run: EvalSession) -> None:
    """Raise what pytest understands; return where all gates hold."""
    __tracebackhide__ = True
    if result.failed_gates:
        known = known_failure(result, run.settings, run.baseline)
        if known:
            pytest.xfail(f"{known}: " + "; ".join(map(str, result.failed_gates)))
        raise GateFailure(failure_text(result))
    if not result.scores:
        pytest.skip(result.reason or "nothing in it could be scored")
