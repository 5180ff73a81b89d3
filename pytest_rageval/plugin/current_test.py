"""PYTEST_CURRENT_TEST, which stays between tests while targets and judges are called on another thread.

pytest takes the variable away after each test. Code that looks through the environment just then (every new client of
httpx does, for proxies) has it listed and does not find it: a KeyError, and a false error of the case that is asked.
To set it again in a hook is too late: 14 of 300 cases failed so. A value that only changes harms nobody.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

UPDATE = "_update_current_test_var"


@contextmanager
def stable_current_test(config: pytest.Config) -> Iterator[None]:
    """Keep the variable; where this pytest sets it in another way, nothing changes."""
    runner: Any = config.pluginmanager.get_plugin("runner")
    update: Any = getattr(runner, UPDATE, None)
    is_due = False

    def set_only(item: pytest.Item, when: str | None) -> None:
        nonlocal is_due
        is_due = when is None
        if when is not None:
            update(item, when)

    if update is not None:
        setattr(runner, UPDATE, set_only)
    try:
        yield
    finally:
        if update is not None:
            setattr(runner, UPDATE, update)
        if is_due:
            os.environ.pop("PYTEST_CURRENT_TEST", None)
