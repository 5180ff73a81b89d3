"""The door from a light session to one with cases: everything heavy is loaded behind it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pytest_rageval.io.collector import no_collection
from pytest_rageval.plugin.light_session import SESSION

if TYPE_CHECKING:
    from pytest_rageval.plugin.active import ActiveSession

ACTIVE = pytest.StashKey["ActiveSession"]()


def active_session(config: pytest.Config) -> ActiveSession:
    """Return the active part of the session, made at the first call; the session has cases from then on."""
    if ACTIVE not in config.stash:
        is_first = "pytest_rageval.plugin.active" not in sys.modules
        with no_collection(is_for_good=is_first):  # pytest looks twice itself
            from pytest_rageval.plugin.activation import activate
        config.stash[ACTIVE] = activate(config.stash[SESSION])
    return config.stash[ACTIVE]
