"""Requests to a judge that compare two answers to one question, in both orders."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.judges.judge import BaseJudge, can_judge
from pytest_rageval.judges.rubrics.conversation import HISTORY, with_history
from pytest_rageval.judges.rubrics.rubric_file import rubric_of_table
from pytest_rageval.matching.passages import context_texts
from pytest_rageval.model import Answer, Dialogue, EvalCase, Json, Judgement, JudgeRequest, Rubric, Turn

PAIRWISE = "pairwise"
EQUAL = 3
"""The preference that says that both answers are equally good: 1 is for the first one, 5 for the second."""
_FILE = Path(__file__).parent / "pairwise.toml"
_OF_PEOPLE = "user"
"""The role of the person in the turns of a conversation."""


class AnsweredCase(NamedTuple):
    """A case with one system's answer.

    k         how many of its chunks the judge is shown
    dialogue  what was said before, for a turn of a conversation
    """

    case: EvalCase
    answer: Answer
    k: int
    dialogue: Dialogue | None = None

    @property
    def history(self) -> tuple[Turn, ...]:
        """Return the earlier turns as this system had them; what it said in them only if its run recorded that."""
        if self.dialogue is not None:
            return self.dialogue.history
        asked = [Turn(_OF_PEOPLE, turn.question) for turn in self.case.earlier]
        return (*(self.case.history or ()), *asked)

    @property
    def said_by_person(self) -> tuple[str, ...]:
        """Return all that the person said, the question last."""
        before = [turn.text for turn in self.case.history or () if turn.role == _OF_PEOPLE]
        earlier = [turn.question for turn in self.case.earlier]
        return (*before, *earlier, self.case.question)

    def passages(self) -> list[str]:
        """Return the texts of the chunks, those retrieved for earlier turns last."""
        texts = context_texts(self.case, self.answer, self.k)
        if self.dialogue is not None:
            texts += [text for _, text in self.dialogue.passages]
        return texts


@cache
def pairwise_rubric() -> Rubric:
    """Return the rubric that asks which of two answers is better."""
    content = _FILE.read_bytes()
    return rubric_of_table(PAIRWISE, content, tomllib.loads(content.decode()))


def can_compare_answers(judge: BaseJudge) -> bool:
    """Return True if the judge can say which of two answers is better; a heuristic cannot."""
    return not judge.heuristic and can_judge(judge, PAIRWISE)


def pairwise_requests(before: AnsweredCase, after: AnsweredCase) -> tuple[JudgeRequest, JudgeRequest]:
    """Return the request with the answer before first, and the one with the answer after first.

    Nothing in them tells which system is which: comparing B with A sends the same two requests.
    """
    shared: dict[str, Json] = {"question": after.case.question, "contexts": _contexts(before, after)}
    rubric = pairwise_rubric()
    if after.history:
        rubric = with_history(rubric)
        shared[HISTORY] = _history(before, after)
    answers = before.answer.text, after.answer.text

    def request(first: str | None, second: str | None) -> JudgeRequest:
        variables = {**shared, "first_answer": first, "second_answer": second}
        return JudgeRequest(PAIRWISE, rubric.prompt_version, variables, 0, rubric)

    # In both orders: models prefer an answer for its place.
    return request(answers[0], answers[1]), request(answers[1], answers[0])


def gain_of(judgement: Judgement, *, is_after_first: bool) -> float | None:
    """Return how much better the judge found the answer after, from -2 to 2; None without a preference."""
    preference = judgement.scores.get(PAIRWISE)
    if preference is None:
        return None
    gain_of_second = preference - EQUAL
    return -gain_of_second if is_after_first else gain_of_second


def _contexts(before: AnsweredCase, after: AnsweredCase) -> list[Json]:
    """Return the passages of both sides, best rank first, each once.

    Without ids, which may tell the system. Of equal rank, the order is that of the texts: it is the same whichever run
    is called before.
    """
    best_rank: dict[str, int] = {}
    for answered in (before, after):
        for rank, text in enumerate(answered.passages()):
            best_rank[text] = min(rank, best_rank.get(text, rank))
    in_order = sorted(best_rank, key=lambda text: (best_rank[text], text))
    return [{"text": text} for text in in_order]


def _history(before: AnsweredCase, after: AnsweredCase) -> list[Json]:
    """Return the earlier turns; where the systems answered them differently, only what the person said."""
    turns = after.history
    # An answer that only one system gave would tell which is which.
    if before.history != turns:
        turns = tuple(turn for turn in turns if turn.role == _OF_PEOPLE)
    return [{"role": turn.role, "text": turn.text} for turn in turns]
