"""A second signal is not lost with a first one that code of somebody's has swallowed."""

from __future__ import annotations

import signal
import time
from typing import NoReturn

import pytest

from pytest_rageval.runs import interrupts
from pytest_rageval.runs.interrupts import Interrupts


def _leave() -> NoReturn:
    raise SystemExit(2)


def test_two_signals_end_the_session_where_the_first_was_swallowed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(interrupts, "HEEDED_WITHIN", 0.05)
    signals = Interrupts(_leave)
    signals.install()
    try:
        with pytest.raises(KeyboardInterrupt):  # swallowed
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 wherever we are when the second comes again
            signal.raise_signal(signal.SIGINT)
            time.sleep(600)  # which it wakes
    finally:
        signals.restore()
    assert signals.is_repeated
