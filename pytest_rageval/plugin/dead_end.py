"""A session whose first calls all fail alike, in a way that cannot heal: it stops, says so once, and is partial."""

from __future__ import annotations

import pytest

from pytest_rageval.dead_end import FirstCalls

CALLS = "rageval_calls"
"""On a report: the calls of its test, as `calls_of` has them."""


class DeadEnd:
    """Hooks of the controlling process: counts the first calls over all workers."""

    def __init__(self) -> None:
        self._session: pytest.Session | None = None
        self._first_calls = FirstCalls()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        self._session = session

    @pytest.hookimpl(trylast=True)  # once the terminal has shown the case
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reason = self._first_calls.add(report.__dict__.pop(CALLS, ()))
        if reason is None or self._session is None:
            return
        self._session.shouldfail = reason
        if hasattr(report, "node"):  # xdist looks at its own reasons to stop only, and ends with another exit code
            raise self._session.Failed(reason)
