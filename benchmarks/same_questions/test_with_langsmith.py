"""The ten questions with LangSmith's plugin, without tracking: `pytest test_with_langsmith.py`."""

from __future__ import annotations

import pytest
from bot import FACTS, answer
from langsmith import testing


@pytest.mark.langsmith
@pytest.mark.parametrize("question", FACTS)
def test_bot(question: str) -> None:
    testing.log_inputs({"question": question})
    testing.log_reference_outputs({"answer": FACTS[question]})
    given = answer(question)
    testing.log_outputs({"answer": given})
    assert FACTS[question] in given
