"""Evaluation cases for RAG chatbots as pytest tests.

Public names are imported when they are first used: a suite that has the plugin installed and no cases pays nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_rageval.api.case_sources import load_cases
    from pytest_rageval.api.evaluate import evaluate
    from pytest_rageval.api.evaluated_run import EvaluatedRun, RunComparison, compare, compare_runs
    from pytest_rageval.judges.judge import Judge
    from pytest_rageval.matching.places import observe
    from pytest_rageval.metrics.registry import metric
    from pytest_rageval.model import (
        Answer,
        AskRequest,
        CaseResult,
        Chunk,
        EvalCase,
        Gold,
        Judgement,
        JudgeRequest,
        NotApplicable,
        Observation,
        Reference,
        Score,
        ToolCall,
    )
    from pytest_rageval.targets.target import Target

    __version__: str

_PLACES = {
    "EvaluatedRun": "api.evaluated_run",
    "Judge": "judges.judge",
    "RunComparison": "api.evaluated_run",
    "Target": "targets.target",
    "compare": "api.evaluated_run",
    "compare_runs": "api.evaluated_run",
    "evaluate": "api.evaluate",
    "load_cases": "api.case_sources",
    "metric": "metrics.registry",
    "observe": "matching.places",
    **dict.fromkeys(
        ("Answer", "AskRequest", "CaseResult", "Chunk", "EvalCase", "Gold", "JudgeRequest", "Judgement",
         "NotApplicable", "Observation", "Reference", "Score", "ToolCall"),
        "model",
    ),
}  # fmt: skip

__all__ = [
    "Answer",
    "AskRequest",
    "CaseResult",
    "Chunk",
    "EvalCase",
    "EvaluatedRun",
    "Gold",
    "Judge",
    "JudgeRequest",
    "Judgement",
    "NotApplicable",
    "Observation",
    "Reference",
    "RunComparison",
    "Score",
    "Target",
    "ToolCall",
    "__version__",
    "compare",
    "compare_runs",
    "evaluate",
    "load_cases",
    "metric",
    "observe",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # here, since a suite without cases need not load it

        return version("pytest-rageval")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
