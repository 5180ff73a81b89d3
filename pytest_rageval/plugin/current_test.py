"""PYTEST_CURRENT_TEST, which stays between tests while targets and judges are called on another thread.

pytest sets the variable in each phase of a test and takes it away at the end. Code that looks through the environment
just then (every new client of httpx does, for proxies) has it listed and does not find it: a KeyError, and a false
error of the case whose target or judge it was. A value that only changes harms nobody.
"""

from __future__ import annotations

import os
from typing import Any, Literal

import pytest
from _pytest import runner

NAME = "PYTEST_CURRENT_TEST"
Phase = Literal["setup", "call", "teardown"]


class KeptCurrentTest:
    """Keeps the variable from `keep` to `release`; where this pytest sets it in another way, nothing changes."""

    def __init__(self) -> None:
        self._update: Any = getattr(runner, "_update_current_test_var", None)
        self._is_kept = self._is_due = False

    def keep(self) -> None:
        if self._update is not None and not self._is_kept:
            self._is_kept = True
            runner._update_current_test_var = self._set_only

    def _set_only(self, item: pytest.Item, when: Phase | None) -> None:
        self._is_due = when is None
        if when is not None:
            self._update(item, when)

    def release(self) -> None:
        """Give the variable back to pytest, and take it away where pytest would have; safe to call twice."""
        if self._is_kept:
            self._is_kept = False
            runner._update_current_test_var = self._update
            if self._is_due:
                os.environ.pop(NAME, None)
