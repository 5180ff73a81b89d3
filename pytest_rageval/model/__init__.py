"""The vocabulary: a case is asked, an answer is observed and scored, the result is recorded."""

from __future__ import annotations

from pytest_rageval.model.answer import Answer, AskRequest, Chunk, Entity, FolderSelection, Reference, Trace
from pytest_rageval.model.case import NOTHING, NOWHERE, Anchor, Edge, EvalCase, Gold, Json, Source, Trial, Turn
from pytest_rageval.model.judgement import (
    PLACEHOLDER,
    VARIABLES,
    FailedJudgement,
    Judgement,
    JudgeRequest,
    Problem,
    Rubric,
)
from pytest_rageval.model.observation import GoldKind, LooseMatch, Matching, MatchKind, Observation, Timings
from pytest_rageval.model.result import CaseResult, GateFailed, NotApplicable, Outcome, RunFacts, Score

__all__ = [
    "NOTHING",
    "NOWHERE",
    "PLACEHOLDER",
    "VARIABLES",
    "Anchor",
    "Answer",
    "AskRequest",
    "CaseResult",
    "Chunk",
    "Edge",
    "Entity",
    "EvalCase",
    "FailedJudgement",
    "FolderSelection",
    "GateFailed",
    "Gold",
    "GoldKind",
    "Json",
    "JudgeRequest",
    "Judgement",
    "LooseMatch",
    "MatchKind",
    "Matching",
    "NotApplicable",
    "Observation",
    "Outcome",
    "Problem",
    "Reference",
    "Rubric",
    "RunFacts",
    "Score",
    "Source",
    "Timings",
    "Trace",
    "Trial",
    "Turn",
]
