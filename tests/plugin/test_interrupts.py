"""A second signal is not lost with a first one that code of somebody's has swallowed."""

from __future__ import annotations

import signal
import time

import pytest

from pytest_rageval.plugin import interrupts
from pytest_rageval.plugin.interrupts import Interrupts


def test_two_signals_end_the_session_where_the_first_was_swallowed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(interrupts, "HEEDED_WITHIN", 0.05)
    signals = Interrupts(lambda: "interrupted")
    signals.install()
    try:
        with pytest.raises(KeyboardInterrupt):  # swallowed
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            time.sleep(5)
    finally:
        signals.restore()
