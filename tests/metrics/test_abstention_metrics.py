"""Did the system abstain, who says so, and what follows from it?"""

from __future__ import annotations

from dataclasses import replace

import pytest
from observations import REGISTRY, answered, judged, score

from pytest_rageval.metrics.abstention import ANSWERABLE, NO_ANSWER, UNANSWERABLE, AbstentionVerdict, abstention
from pytest_rageval.model import Score


def classified(obs, value: float):
    found = judged(obs, "abstention", value)
    judgement = replace(found.judgements["abstention"], scores={"abstained": value})
    return replace(found, judgements={"abstention": judgement})


def test_the_systems_own_word_comes_first():
    assert abstention(classified(answered("", abstained=False), 1)) == AbstentionVerdict(False, "response")
    assert abstention(answered("Paris", abstained=True)) == AbstentionVerdict(True, "response")


@pytest.mark.parametrize("blank", ["", "  \n"])
def test_a_blank_answer_is_an_abstention(blank):
    assert abstention(classified(answered(blank), 0)) == AbstentionVerdict(True, "empty answer")


def test_then_the_judge_decides():
    assert abstention(classified(answered("I cannot say."), 1)) == AbstentionVerdict(True, "judge")
    assert abstention(classified(answered("Paris"), 0)) == AbstentionVerdict(False, "judge")


def test_without_a_judge_phrasing_decides():
    assert abstention(answered("The notes do not mention it.")) == AbstentionVerdict(True, "phrasing")
    assert abstention(answered("Paris")) == AbstentionVerdict(False, "phrasing")


def test_phrases_of_the_project_count():
    obs = answered("A colleague will call you back.")
    assert abstention(obs) == AbstentionVerdict(False, "phrasing")
    assert abstention(replace(obs, refusals=("will call you back",))) == AbstentionVerdict(True, "phrasing")


def test_where_the_judge_went_by_phrasing_that_is_what_decided():
    obs = classified(answered("Paris"), 1)
    judged = replace(obs.judgements["abstention"], extra={"decided_by": "phrasing"})
    assert abstention(replace(obs, judgements={"abstention": judged})) == AbstentionVerdict(True, "phrasing")


def test_an_unanswerable_case_wants_an_abstention():
    refused, made_up = answered("", answerable=False), answered("Paris", answerable=False)
    assert score("abstention_accuracy", refused) == 1
    assert score("abstention_accuracy", made_up) == 0
    assert score("hallucinated", refused) == 0
    assert score("hallucinated", made_up) == 1
    assert score("over_abstention", refused) == UNANSWERABLE.reason


def test_an_answerable_case_wants_an_answer():
    assert score("over_abstention", answered("", answerable=True)) == 1
    assert score("over_abstention", answered("Paris", answerable=True)) == 0
    for name in ("abstention_accuracy", "hallucinated"):
        assert score(name, answered("Paris", answerable=True)) == ANSWERABLE.reason


def test_the_score_says_who_decided():
    scored = REGISTRY.measure("abstention_accuracy", 5)(answered("", answerable=False))
    assert scored == Score(1.0, {"decided_by": "empty answer"})


def test_a_record_without_an_answer_has_no_score_unless_the_system_said_that_it_abstained():
    assert score("abstention_accuracy", answered(None, answerable=False)) == NO_ANSWER.reason
    assert score("abstention_accuracy", answered(None, answerable=False, abstained=True)) == 1
    assert score("over_abstention", answered(None)) == NO_ANSWER.reason
