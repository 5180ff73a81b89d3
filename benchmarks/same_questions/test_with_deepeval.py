"""The ten questions with DeepEval: `deepeval test run test_with_deepeval.py`."""

from __future__ import annotations

import re

import pytest
from bot import FACTS, answer
from deepeval import assert_test
from deepeval.metrics import PatternMatchMetric
from deepeval.test_case import LLMTestCase


@pytest.mark.parametrize("question", FACTS)
def test_bot(question: str) -> None:
    case = LLMTestCase(input=question, actual_output=answer(question))
    contains = PatternMatchMetric(pattern=f".*{re.escape(FACTS[question])}.*")
    assert_test(case, [contains])
