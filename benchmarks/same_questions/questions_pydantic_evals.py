"""The ten questions with pydantic-evals: `python questions_pydantic_evals.py`."""

from __future__ import annotations

from bot import FACTS, answer
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains

cases = [Case(name=question, inputs=question, evaluators=[Contains(value=fact)]) for question, fact in FACTS.items()]
report = Dataset(name="bot", cases=cases).evaluate_sync(answer, progress=False)
report.print()
