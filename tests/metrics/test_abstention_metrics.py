"""Did the system abstain, who says so, and what follows from it?"""

from __future__ import annotations

from dataclasses import replace

import pytest
from observations import REGISTRY, answered, assert_score, judged, scores

from pytest_rageval.metrics.abstention import ANSWERABLE, NO_ANSWER, UNANSWERABLE, AbstentionVerdict, abstention
from pytest_rageval.model import Score


def classified(obs, value: float):
    found = judged(obs, "abstention", value)
    judgement = replace(found.judgements["abstention"], scores={"abstained": value})
    return replace(found, judgements={"abstention": judgement})


PROJECT = replace(answered("A colleague will call you back."), refusals=("will call you back",))
BY_PHRASING = classified(answered("Paris"), 1)
BY_PHRASING = replace(
    BY_PHRASING,
    judgements={"abstention": replace(BY_PHRASING.judgements["abstention"], extra={"decided_by": "phrasing"})},
)
VERDICTS = {
    "the system's own word comes before a judge": (classified(answered("", abstained=False), 1), False, "response"),
    "the system says that it abstained": (answered("Paris", abstained=True), True, "response"),
    "a blank answer is an abstention": (classified(answered("  \n"), 0), True, "empty answer"),
    "then the judge decides": (classified(answered("I cannot say."), 1), True, "judge"),
    "the judge sees an answer": (classified(answered("Paris"), 0), False, "judge"),
    "the judge went by phrasing": (BY_PHRASING, True, "phrasing"),
    "without a judge phrasing decides": (answered("The notes do not mention it."), True, "phrasing"),
    "an answer without a judge": (answered("Paris"), False, "phrasing"),
    "a phrase that is only the project's": (replace(PROJECT, refusals=()), False, "phrasing"),
    "phrases of the project count": (PROJECT, True, "phrasing"),
}


@pytest.mark.parametrize(("obs", "abstained", "decided_by"), VERDICTS.values(), ids=VERDICTS)
def test_who_says_that_the_system_abstained(obs, abstained, decided_by):
    assert abstention(obs) == AbstentionVerdict(abstained, decided_by)


REFUSED, MADE_UP = answered("", answerable=False), answered("Paris", answerable=False)
SCORES = {
    "an unanswerable case wants an abstention": ("abstention_accuracy", REFUSED, 1),
    "an answer to an unanswerable case": ("abstention_accuracy", MADE_UP, 0),
    "an abstention is no hallucination": ("hallucinated", REFUSED, 0),
    "a made-up answer is one": ("hallucinated", MADE_UP, 1),
    "over-abstention is not asked of unanswerable cases": ("over_abstention", REFUSED, UNANSWERABLE),
    "an answerable case wants an answer": ("over_abstention", answered(""), 1),
    "an answer is no over-abstention": ("over_abstention", answered("Paris"), 0),
    "accuracy is not asked of answerable cases": ("abstention_accuracy", answered("Paris"), ANSWERABLE),
    "hallucination is not asked of answerable cases": ("hallucinated", answered("Paris"), ANSWERABLE),
    "a record without an answer": ("abstention_accuracy", answered(None, answerable=False), NO_ANSWER),
    "a declared abstention without an answer": (
        "abstention_accuracy", answered(None, answerable=False, abstained=True), 1),
    "over-abstention of a record without an answer": ("over_abstention", answered(None), NO_ANSWER),
}  # fmt: skip


@scores(SCORES)
def test_what_follows_from_it(name, obs, expected):
    assert_score(name, obs, expected)


def test_the_score_says_who_decided():
    assert REGISTRY.measure("abstention_accuracy", 5)(REFUSED) == Score(1.0, {"decided_by": "empty answer"})
