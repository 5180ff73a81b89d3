"""Stage 3: judgements of answers that no formula can score."""

from __future__ import annotations

from pytest_rageval.judges.judge_spec import judge_from_object, judge_from_spec
from pytest_rageval.judges.requests import requests_for

__all__ = ["judge_from_object", "judge_from_spec", "requests_for"]
