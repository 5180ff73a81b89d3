"""L5, judged: what the judge said on the metric's scale, and why there is no score where there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from observations import REGISTRY, a_case, answered, assert_score, judged, score, scores

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


def by(name: str, obs: Observation, **judgement) -> Observation:
    """Judged by one rubric of this name."""
    return replace(
        obs, judgements={name: Judgement(name, **{"scores": {name: 1.0}, "model": "examiner/1"} | judgement)}
    )


def citing(obs: Observation, *references: Reference) -> Observation:
    return replace(obs, answer=replace(obs.answer, references=references))


REFUSED = seen("No idea.", abstained=True)
RIGHTLY = seen("No idea.", abstained=True, answerable=False)
TWO = judged(seen(), "synthesis", 0)
ONE_BY_ONE = replace(seen(), judgements={name: Judgement(name, {name: 0.5}) for name in WEIGHTS})
SILENT = {"scores": {}, "reasoning": "no \x1breference"}
SCORES = {
    "a score on the metric's scale": ("groundedness", judged(seen(), "groundedness", 4.5, (0, 5)), 4.5),
    **{f"a share stays a share in {name}": (name, judged(seen(), name, 0.5), 0.5) for name in JUDGED[1:4]},
    "a share is brought to a scale of 5": ("groundedness", judged(seen(), "groundedness", 0.7), 3.5),
    "a scale that begins at 1": ("correctness", judged(seen(), "correctness", 4, (1, 5)), 3.75),
    "points are brought to a share": ("faithfulness", judged(seen(), "faithfulness", 4, (0, 5)), 0.8),
    **{f"{sentence}: {name}": (name, obs, reason) for name in JUDGED for sentence, obs, reason in (
        ("nobody judged it", seen(), NOT_JUDGED),
        ("no answer is recorded", seen(None), NO_ANSWER),
        ("a blank answer", seen("", abstained=False), BLANK),
        ("the judge lacks the rubric", by("style", seen()), "the judge examiner/1 did not score this"),
    )},
    **{f"without a context: {name}": (name, by("relevance", seen(documents="")), NO_CONTEXT) for name in FROM_CONTEXT},
    "a heuristic that gives no score says why": (
        "correctness", by("correctness", seen(), heuristic=True, **SILENT), r"no \x1breference"),
    "a model that gives no score is not quoted": (
        "correctness", by("correctness", seen(), **SILENT), "the judge examiner/1 gave no score"),
    "an answer without claims": ("claim_support", by("claim_support", seen(), scores={}), NO_CLAIM),
    **{f"an abstention: {name}": (name, judged(REFUSED, name, 1), ABSTAINED)
       for name in (*FROM_CONTEXT, "relevance", "synthesis", "composite", "reference_match")},
    "the quality of an abstention": ("abstention_quality", judged(REFUSED, "abstention_quality", 1), 1),
    "the correctness of an abstention where an answer exists": (
        "correctness", judged(REFUSED, "correctness", 1, (0, 5)), 1),
    "the correctness of a right abstention": ("correctness", judged(RIGHTLY, "correctness", 1, (0, 5)), ABSTAINED),
    "synthesis of two documents": ("synthesis", TWO, 0),
    "cited documents decide before those that came": (
        "synthesis", citing(TWO, Reference("a#1"), Reference(rel_path="a")), 1),
    "two cited documents": ("synthesis", citing(TWO, Reference("a#1"), Reference("b#1")), 0),
    "no source is reported": ("synthesis", judged(answered("Yes."), "synthesis", 0.5), NO_SOURCES),
    "composite of 1 in each part": ("composite", by_five(seen()), 1),
    **{f"composite without {part}": ("composite", by_five(seen(), **{part: 0}), 1 - weight / 100)
       for part, weight in WEIGHTS.items()},
    "synthesis of a single source is 1 in the composite": ("composite", by_five(seen(documents="a"), synthesis=0), 1),
    "a part that the composite scored": ("faithfulness", by_five(seen(), faithfulness=0.25), 0.25),
    "another part of it": ("relevance", by_five(seen()), 1),
    "a composite of parts that were judged one by one": ("composite", ONE_BY_ONE, 0.5),
    "a composite without an answer": ("composite", seen(None), NO_ANSWER),
    "a composite with a missing part": (
        "composite", judged(seen(), "faithfulness", 1), "citation_accuracy: the judge did not score this"),
    "without a reference there is nothing to match": (
        "reference_match", judged(answered("Yes.", answers=(" ",)), "reference_match", 1), NO_GOLD_ANSWER),
}  # fmt: skip


@scores(SCORES)
def test_the_score_of_a_judged_answer(name, obs, expected):
    assert_score(name, obs, expected)


def test_a_judge_beyond_its_scale_is_an_error_not_a_score():
    with pytest.raises(ValueError, match="groundedness is 6"):
        score("groundedness", judged(seen(), "groundedness", 6, (0, 5)))


@pytest.mark.parametrize(
    ("spread", "detail"),
    [({"groundedness": 0.2}, {"spread": 1.0}), ("wide", {}), ({"groundedness": "wide"}, {}), (None, {})],
)
def test_of_repeated_judgements_the_spread_is_told_on_the_metrics_scale(spread, detail):
    said = by("groundedness", seen(), scores={"groundedness": 0.5}, extra={"spread": spread})
    assert scored("groundedness", said) == Score(2.5, detail)


def test_details_say_what_decided():
    single = judged(seen(documents="a a a"), "synthesis", 0)
    assert scored("synthesis", single) == Score(1.0, {"decided_by": "rule"})
    parts = dict.fromkeys(WEIGHTS, 1.0) | {"relevance": 0.5}
    assert scored("composite", by_five(seen(), relevance=0.5)).detail == parts
