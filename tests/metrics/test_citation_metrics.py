"""L2: does the answer cite the right places, and deal with those that contradict each other?"""

from __future__ import annotations

from typing import Any

import pytest
from observations import REGISTRY, a_case, assert_score, judged, score, scores

from pytest_rageval.matching.places import observe
from pytest_rageval.metrics.abstention import ABSTAINED, NO_ANSWER, UNANSWERABLE
from pytest_rageval.metrics.citations import NO_DATES, NO_REFERENCES, NO_RULE
from pytest_rageval.metrics.retrieval import UNLABELLED
from pytest_rageval.model import Anchor, Answer, Gold, Observation, Reference

CITATIONS = ("attribution_hit", "citation_precision", "citation_recall")
NEW = Anchor("notes/drift-v2.md", "# Rate", snippets=("30.9 Hz",), date="2024-05-20")
OLD = Anchor("notes/drift.md", "# Rate", date="2024-05-06")


def cited(
    *names: str,
    gold: tuple[str, ...] = ("a.md", "b.md"),
    text: str | None = "Yes.",
    answerable: bool = True,
    **answer: Any,
) -> Observation:
    case = a_case(gold=Gold(supports=tuple(map(Anchor, gold))), answerable=answerable)
    references = tuple(Reference(rel_path=name) for name in names)
    return observe(case, Answer(text, **{"references": references} | answer))


def conflicting(
    rule: Any, *cites: Anchor, text: str | None = "It is so.", places=(NEW, OLD), **answer: Any
) -> Observation:
    case = a_case(gold=Gold(supports=places, recency_conflict_rule=rule))
    references = tuple(Reference(rel_path=one.rel_path, heading_path=one.heading_path) for one in cites)
    return observe(case, Answer(text, references=references, **answer))


UNDATED, TWIN = Anchor("notes/undated.md"), Anchor("notes/twin.md", date=NEW.date)
BY_IDS = observe(
    a_case(gold=Gold(chunk_ids=("a", "b"), recency_conflict_rule="cite_newer")),
    Answer("Yes.", references=(Reference("a"),)),
)
BOTH_NAMED = "30.9 Hz, but 29.4 Hz on 2024-05-06."
CONFLICTS = {
    "the newest place by date is cited": (conflicting("cite_newer", NEW), 1),
    "an older place is cited": (conflicting("cite_newer", OLD), 0),
    "the newest place is cited among others": (conflicting("cite_newer", OLD, NEW), 1),
    "the newest place is not the first listed": (conflicting("cite_newer", NEW, places=(OLD, NEW)), 1),
    "without a date for all, the first listed is the newest": (
        conflicting("cite_newer", UNDATED, places=(UNDATED, NEW)), 1),
    "a place with a date is no newer than an undated one": (conflicting("cite_newer", NEW, places=(UNDATED, NEW)), 0),
    "of places of one date the first": (conflicting("cite_newer", NEW, places=(OLD, NEW, TWIN)), 1),
    "of places of one date any": (conflicting("cite_newer", TWIN, places=(OLD, NEW, TWIN)), 1),
    "ids have no date": (BY_IDS, NO_DATES),
    "cite_both, and one is cited": (conflicting("cite_both", NEW, text=BOTH_NAMED), 0),
    "acknowledge_both, and one is cited": (conflicting("acknowledge_both", NEW, text=BOTH_NAMED), 0),
    "a date that both share names neither": (
        conflicting("acknowledge_both", NEW, TWIN, places=(NEW, TWIN), text="30.9 Hz as of 2024-05-20"), 0),
    "a case without a rule": (conflicting(None, NEW), NO_RULE),
    "a case without places": (conflicting("cite_both", places=None), UNLABELLED),
    "an abstention": (conflicting("cite_both", NEW, OLD, abstained=True), ABSTAINED),
    "an answer that is not recorded": (conflicting("acknowledge_both", NEW, OLD, text=None), NO_ANSWER),
}  # fmt: skip
SCORES = {
    "precision is over references": ("citation_precision", cited("a.md", "a.md", "x.md"), 2 / 3),
    "recall is over golds": ("citation_recall", cited("a.md", "a.md", "x.md", gold=("a.md", "b.md", "c.md")), 1 / 3),
    "attribution is not asked of unanswerable cases": (
        "attribution_hit", cited("a.md", answerable=False), UNANSWERABLE),
    **{f"{sentence} for {name}": (name, obs, expected) for name in CITATIONS for sentence, obs, expected in (
        ("citing nothing is zero", cited(), 0),
        ("citations that are not reported are not zero", cited(references=None), NO_REFERENCES),
        ("a case without gold has no score", cited("a.md", gold=()), UNLABELLED),
        ("an abstention has no score", cited("a.md", abstained=True), ABSTAINED),
        ("a blank answer has no score", cited("a.md", text="  "), ABSTAINED),
    )},
    **{sentence: ("recency_conflict_ok", *row) for sentence, row in CONFLICTS.items()},
}  # fmt: skip


@scores(SCORES)
def test_the_score_of_an_answer_that_cites(name, obs, expected):
    assert_score(name, obs, expected)


@pytest.mark.parametrize(
    "text",
    [
        "It is 30.9 Hz [1], or 29.4 Hz [2].",
        "It is 30.9 Hz, or 29.4 Hz, see [1, 2].",
        "It is 30.9 Hz or 29.4 Hz [1-2].",
        "It is 30.9 HZ. The note of 2024-05-06 says 29.4.",
        "drift-v2.md says one thing, drift.md another.",
        "According to “Drift v2” it is not what it was on 2024-05-06.",
    ],
)
def test_without_a_judge_an_answer_that_names_both_acknowledges_the_conflict(text):
    assert score("recency_conflict_ok", conflicting("acknowledge_both", NEW, OLD, text=text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "It is 30.9 Hz [1].",
        "It is 30.9 Hz [1] [3] [0] [999].",
        "It is 130.9 Hz [2].",
        "The drift of [1] and of drift-v2.md",  # `drift` is a word, not yet a file
        "2024-05-061 and 30.9 Hz",
    ],
)
def test_an_answer_that_names_one_of_them_does_not(text):
    assert score("recency_conflict_ok", conflicting("acknowledge_both", NEW, OLD, text=text)) == 0


@pytest.mark.parametrize("verdict", [0, 1])
def test_a_judge_decides_before_the_words_do(verdict):
    obs = conflicting("acknowledge_both", NEW, OLD, text="[1] [2]" if not verdict else "Sources disagree.")
    scored = REGISTRY.measure("recency_conflict_ok", 5)(judged(obs, "conflict_acknowledged", verdict))
    assert (scored.value, scored.detail) == (verdict, {"decided_by": "judge"})


def test_the_score_says_that_words_decided():
    scored = REGISTRY.measure("recency_conflict_ok", 5)(conflicting("acknowledge_both", NEW, OLD, text="[1] [2]"))
    assert scored.detail == {"decided_by": "answer text"}
