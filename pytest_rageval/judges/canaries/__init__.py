"""Canaries: answers whose worth nobody doubts, put to a judge before its scores are believed."""

from __future__ import annotations

from pytest_rageval.judges.canaries.canary import Canary, Verdict
from pytest_rageval.judges.canaries.canary_answers import CANARIES
from pytest_rageval.judges.canaries.trying import canaries_for, try_canaries

__all__ = ["CANARIES", "Canary", "Verdict", "canaries_for", "try_canaries"]
