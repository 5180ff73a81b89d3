"""L5, judged: what the judge said on the metric's scale, and why there is no score where there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from observations import REGISTRY, a_case, answered, judged, score

from pytest_rageval.matching.places import observe
from pytest_rageval.metrics.abstention import ABSTAINED, NO_ANSWER
from pytest_rageval.metrics.answer import NO_GOLD_ANSWER
from pytest_rageval.metrics.judged import BLANK, NO_CLAIM, NO_CONTEXT, NO_SOURCES, NOT_JUDGED, WEIGHTS
from pytest_rageval.model import Answer, Chunk, Gold, Judgement, NotApplicable, Observation, Reference, Score

FROM_CONTEXT = ("groundedness", "faithfulness", "citation_accuracy", "claim_support")
JUDGED = (*FROM_CONTEXT, "correctness", "relevance", "abstention_quality", "reference_match")


def seen(text: str | None = "Yes.", *, documents: str = "a b", abstained: bool | None = None, **case) -> Observation:
    """An answer from a chunk of each document, with a gold answer."""
    chunks = tuple(Chunk(f"{name}#1", rel_path=name, text=f"text of {name}") for name in documents.split())
    return observe(a_case(gold=Gold(answers=("Yes.",)), **case), Answer(text, abstained=abstained, chunks=chunks))


def by_five(obs: Observation, **changed: float) -> Observation:
    """Judged by the composite rubric: 1 in each dimension unless said otherwise."""
    scores = dict.fromkeys(WEIGHTS, 1.0) | changed
    return replace(obs, judgements={"composite": Judgement("composite", scores, model="examiner/1")})


def scored(name: str, obs: Observation) -> Score | NotApplicable:
    return REGISTRY.measure(name, 5)(obs)


def test_a_judged_metric_is_what_the_judge_said():
    assert score("groundedness", judged(seen(), "groundedness", 4.5, (0, 5))) == 4.5
    for name in JUDGED[1:4]:
        assert score(name, judged(seen(), name, 0.5)) == 0.5


def test_a_judge_with_another_scale_is_brought_to_the_metrics_own():
    assert score("groundedness", judged(seen(), "groundedness", 0.7)) == pytest.approx(3.5)
    assert score("correctness", judged(seen(), "correctness", 4, (1, 5))) == pytest.approx(3.75)
    assert score("faithfulness", judged(seen(), "faithfulness", 4, (0, 5))) == pytest.approx(0.8)


def test_a_judge_beyond_its_scale_is_an_error_not_a_score():
    with pytest.raises(ValueError, match="groundedness is 6"):
        score("groundedness", judged(seen(), "groundedness", 6, (0, 5)))


@pytest.mark.parametrize("name", JUDGED)
def test_what_nobody_judged_has_no_score(name):
    assert score(name, seen()) == NOT_JUDGED.reason
    assert score(name, seen(None)) == NO_ANSWER.reason
    assert score(name, seen("", abstained=False)) == BLANK.reason


@pytest.mark.parametrize("name", JUDGED)
def test_a_rubric_that_the_judge_lacks_is_said_with_the_judges_name(name):
    other = Judgement("style", {"style": 1.0}, model="examiner/1")
    assert score(name, replace(seen(), judgements={"style": other})) == "the judge examiner/1 did not score this"


@pytest.mark.parametrize("name", FROM_CONTEXT)
def test_without_a_context_there_is_nothing_to_judge_by(name):
    other = Judgement("relevance", {"relevance": 1.0}, model="examiner/1")
    assert score(name, replace(seen(documents=""), judgements={"relevance": other})) == NO_CONTEXT.reason


def test_a_heuristic_that_gives_no_score_says_why_and_a_model_is_not_quoted():
    said = Judgement("correctness", {}, reasoning="no \x1breference", model="examiner/1")
    heuristic = replace(said, heuristic=True)
    assert score("correctness", replace(seen(), judgements={"correctness": heuristic})) == r"no \x1breference"
    model = replace(seen(), judgements={"correctness": said})
    assert score("correctness", model) == "the judge examiner/1 gave no score"
    claims = replace(seen(), judgements={"claim_support": Judgement("claim_support", {})})
    assert score("claim_support", claims) == NO_CLAIM.reason


def test_of_repeated_judgements_the_spread_is_told_on_the_metrics_scale():
    said = Judgement("groundedness", {"groundedness": 0.5}, extra={"spread": {"groundedness": 0.2}})
    assert scored("groundedness", replace(seen(), judgements={"groundedness": said})) == Score(2.5, {"spread": 1.0})


@pytest.mark.parametrize("extra", [{"spread": "wide"}, {"spread": {"groundedness": "wide"}}, {"spread": None}])
def test_what_a_judge_adds_under_the_same_name_is_no_spread(extra):
    said = Judgement("groundedness", {"groundedness": 0.5}, extra=extra)
    assert scored("groundedness", replace(seen(), judgements={"groundedness": said})) == Score(2.5)


# ── abstentions ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", [*FROM_CONTEXT, "relevance", "synthesis", "composite", "reference_match"])
def test_an_abstention_is_judged_in_nothing_but_its_own_quality(name):
    refused = seen("No idea.", abstained=True)
    assert score(name, judged(refused, name, 1)) == ABSTAINED.reason
    assert score("abstention_quality", judged(refused, "abstention_quality", 1)) == 1


def test_the_correctness_of_an_abstention_is_judged_where_an_answer_exists():
    refused = seen("No idea.", abstained=True)
    assert score("correctness", judged(refused, "correctness", 1, (0, 5))) == 1
    right = seen("No idea.", abstained=True, answerable=False)
    assert score("correctness", judged(right, "correctness", 1, (0, 5))) == ABSTAINED.reason


# ── synthesis, composite, reference ───────────────────────────────────────────────────────────────────────────


def test_an_answer_from_one_document_needs_no_synthesis():
    single = judged(seen(documents="a a a"), "synthesis", 0)
    assert scored("synthesis", single) == Score(1.0, {"decided_by": "rule"})
    assert score("synthesis", judged(seen(documents="a b"), "synthesis", 0)) == 0


def test_the_documents_that_are_cited_decide_before_those_that_came():
    obs = judged(seen(documents="a b"), "synthesis", 0)
    one = replace(obs.answer, references=(Reference("a#1"), Reference(rel_path="a")))
    assert score("synthesis", replace(obs, answer=one)) == 1
    two = replace(obs.answer, references=(Reference("a#1"), Reference("b#1")))
    assert score("synthesis", replace(obs, answer=two)) == 0


def test_where_no_source_is_reported_nobody_knows_how_many_there_are():
    assert score("synthesis", judged(answered("Yes."), "synthesis", 0.5)) == NO_SOURCES.reason


def test_composite_is_the_weighted_mean_of_its_parts():
    assert score("composite", by_five(seen())) == 1
    assert score("composite", by_five(seen(), faithfulness=0)) == pytest.approx(0.7)
    assert score("composite", by_five(seen(), citation_accuracy=0)) == pytest.approx(0.8)
    assert score("composite", by_five(seen(), abstention_quality=0.5)) == pytest.approx(0.9)
    assert score("composite", by_five(seen(), synthesis=0)) == pytest.approx(0.85)
    assert score("composite", by_five(seen(), relevance=0)) == pytest.approx(0.85)
    assert scored("composite", by_five(seen(), relevance=0.5)).detail == dict.fromkeys(WEIGHTS, 1.0) | {
        "relevance": 0.5
    }


def test_synthesis_of_a_single_source_is_1_within_the_composite_too():
    assert score("composite", by_five(seen(documents="a"), synthesis=0)) == 1


def test_the_one_call_of_the_composite_scores_its_parts():
    obs = by_five(seen(), faithfulness=0.25)
    assert score("faithfulness", obs) == 0.25
    assert score("relevance", obs) == 1


def test_parts_that_were_judged_one_by_one_make_a_composite_as_well():
    obs = seen()
    for name in WEIGHTS:
        obs = judged(obs, name, 0.5)
    assert score("composite", obs) == pytest.approx(0.5)


def test_a_composite_with_a_missing_part_has_no_value_and_says_which():
    only = judged(seen(), "faithfulness", 1)
    assert score("composite", only) == "citation_accuracy: the judge did not score this"
    assert score("composite", seen(None)) == NO_ANSWER.reason


def test_without_a_reference_there_is_nothing_to_match():
    assert (
        score("reference_match", judged(answered("Yes.", answers=(" ",)), "reference_match", 1))
        == NO_GOLD_ANSWER.reason
    )
