"""A run whose first calls all fail alike, in a way that cannot heal: it stops, says so once, and is partial."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_rageval.engine import Evaluation

FIRST_CALLS = 16
CALLS = "rageval_calls"
"""On a report: the calls of its test, by how they failed; an empty text for one that may yet go well."""


def calls_of(evaluations: Sequence[Evaluation]) -> list[tuple[str, str]]:
    """How the calls of a test failed, as kind and message; both empty where it answered, or may the next time."""
    errors = [result.error for evaluation in evaluations for result in evaluation.trials]
    return [
        (f"{error.kind} {error.status or ''}", error.message) if error and error.is_lasting else ("", "")
        for error in errors
    ]


class DeadEnd:
    """Hooks of the controlling process: counts the first calls over all workers."""

    def __init__(self) -> None:
        self._session: pytest.Session | None = None
        self._failures = 0
        self._kind: str | None = None
        self._is_over = False
        """Did a call answer, or fail otherwise? Then no later one ends the run."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        self._session = session

    @pytest.hookimpl(trylast=True)  # once the terminal has shown the case
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for kind, message in report.__dict__.pop(CALLS, ()):
            self._kind = self._kind or kind
            self._is_over = self._is_over or kind != self._kind or not kind
            self._failures += 1
            if not self._is_over and self._failures == FIRST_CALLS:
                self._is_over = True
                self._stop(message, is_of_worker=hasattr(report, "node"))

    def _stop(self, message: str, *, is_of_worker: bool) -> None:
        session = self._session
        if session is None:
            return
        session.shouldfail = (
            f"rageval: the first {FIRST_CALLS} calls all failed alike, so the others were not made: {message}; "
            "mend that and run again"
        )
        if is_of_worker:  # xdist looks at its own reasons to stop only, and ends by them with another exit code
            raise session.Failed(session.shouldfail)
