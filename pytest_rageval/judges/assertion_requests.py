"""Requests to a judge for the assertions of a case that need one: `llm-rubric` and `similar`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from pytest_rageval.assertions.judged_types import EMBEDDING, MODEL, judged_name
from pytest_rageval.assertions.registry import judged_assertions
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.judges.requests import contexts_for
from pytest_rageval.judges.rubrics.conversation import with_history
from pytest_rageval.judges.rubrics.rubric_file import rubric_of_table
from pytest_rageval.model import Answer, Dialogue, EvalCase, Json, JudgeRequest, Rubric

_FILE = Path(__file__).parent / "criterion.toml"
_SIMILARITY = Rubric(
    name="similarity",
    version="1",
    prompt_version="similarity/1",
    scale=(0.0, 1.0),
    scores={"similarity": "score"},
    prompt="{answer} {criterion}",
    schema={"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]},
)


@cache
def criterion_rubric() -> Rubric:
    """Return the rubric that asks whether an answer meets the criterion of an assertion."""
    content = _FILE.read_bytes()
    return rubric_of_table("criterion", content, tomllib.loads(content.decode()))


def assertion_requests(
    judge: BaseJudge, case: EvalCase, answer: Answer, k: int, trial: int, dialogue: Dialogue | None = None
) -> list[JudgeRequest]:
    """Return a request for each assertion that this judge can decide, under the name of its judgement.

    `dialogue`: what was said before, for a turn of a conversation.
    """
    # A blank answer meets no criterion; a request would be paid for to learn that.
    if not case.assertions or answer.text is None or not answer.text.strip():
        return []
    return [*_criteria(judge, case, answer, k, trial, dialogue), *_similarities(judge, case, answer, trial)]


def _criteria(
    judge: BaseJudge, case: EvalCase, answer: Answer, k: int, trial: int, dialogue: Dialogue | None
) -> Iterator[JudgeRequest]:
    # Words alone cannot tell whether an answer meets a criterion.
    if judge.heuristic or not judge.takes_own_rubrics:
        return
    wanted = judged_assertions(case.assertions, MODEL)
    if not wanted:
        return
    shared: dict[str, Json] = {
        "question": case.question,
        "answer": answer.text,
        "contexts": contexts_for(case, answer, k, dialogue),
    }
    rubric = criterion_rubric()
    if case.history:
        rubric = with_history(rubric)
        shared["history"] = [{"role": turn.role, "text": turn.text} for turn in case.history]
    for assertion in wanted:
        name = judged_name(assertion)
        # Under a name of its own: a case may have several criteria, each with its score.
        own = replace(rubric, name=name, scores={name: "score"})
        yield JudgeRequest(name, own.prompt_version, {**shared, "criterion": assertion.value}, trial, own)


def _similarities(judge: BaseJudge, case: EvalCase, answer: Answer, trial: int) -> Iterator[JudgeRequest]:
    if not judge.compares_texts:
        return
    for assertion in judged_assertions(case.assertions, EMBEDDING):
        name = judged_name(assertion)
        own = replace(_SIMILARITY, name=name, scores={name: "score"})
        variables: dict[str, Json] = {"answer": answer.text, "criterion": assertion.value}
        yield JudgeRequest(name, own.prompt_version, variables, trial, own)
