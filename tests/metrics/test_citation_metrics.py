"""L2: does the answer cite the right places, and deal with those that contradict each other?"""

from __future__ import annotations

from typing import Any

import pytest
from observations import REGISTRY, a_case, judged, score

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


# ── citations ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_precision_is_over_references_and_recall_over_golds():
    obs = cited("a.md", "a.md", "x.md", gold=("a.md", "b.md", "c.md"))
    assert score("citation_precision", obs) == pytest.approx(2 / 3)
    assert score("citation_recall", obs) == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", CITATIONS)
def test_citing_nothing_is_zero_and_not_reporting_citations_is_not(name):
    assert score(name, cited()) == 0
    assert score(name, cited(references=None)) == NO_REFERENCES.reason


@pytest.mark.parametrize("name", CITATIONS)
def test_citations_are_asked_of_answers_to_labelled_cases_only(name):
    assert score(name, cited("a.md", gold=())) == UNLABELLED.reason
    assert score(name, cited("a.md", abstained=True)) == ABSTAINED.reason
    assert score(name, cited("a.md", text="  ")) == ABSTAINED.reason


def test_attribution_is_not_asked_of_unanswerable_cases():
    assert score("attribution_hit", cited("a.md", answerable=False)) == UNANSWERABLE.reason


# ── contradictions ────────────────────────────────────────────────────────────────────────────────────────────


def test_the_newest_place_by_date_must_be_cited():
    assert score("recency_conflict_ok", conflicting("cite_newer", NEW)) == 1
    assert score("recency_conflict_ok", conflicting("cite_newer", OLD)) == 0
    assert score("recency_conflict_ok", conflicting("cite_newer", OLD, NEW)) == 1
    assert score("recency_conflict_ok", conflicting("cite_newer", NEW, places=(OLD, NEW))) == 1


def test_without_a_date_for_every_place_the_first_listed_is_the_newest():
    undated = Anchor("notes/undated.md")
    assert score("recency_conflict_ok", conflicting("cite_newer", undated, places=(undated, NEW))) == 1
    assert score("recency_conflict_ok", conflicting("cite_newer", NEW, places=(undated, NEW))) == 0


def test_of_places_of_the_same_date_any_will_do():
    twin = Anchor("notes/twin.md", date=NEW.date)
    for one in (NEW, twin):
        assert score("recency_conflict_ok", conflicting("cite_newer", one, places=(OLD, NEW, twin))) == 1


def test_ids_have_no_date():
    gold = Gold(chunk_ids=("a", "b"), recency_conflict_rule="cite_newer")
    obs = observe(a_case(gold=gold), Answer("Yes.", references=(Reference("a"),)))
    assert score("recency_conflict_ok", obs) == NO_DATES.reason


@pytest.mark.parametrize("rule", ["cite_both", "acknowledge_both"])
def test_every_place_must_be_cited(rule):
    assert score("recency_conflict_ok", conflicting(rule, NEW, text="30.9 Hz, but 29.4 Hz on 2024-05-06.")) == 0


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


def test_a_date_that_both_share_names_neither():
    twin = Anchor("notes/twin.md", date=NEW.date)
    obs = conflicting("acknowledge_both", NEW, twin, places=(NEW, twin), text="30.9 Hz as of 2024-05-20")
    assert score("recency_conflict_ok", obs) == 0


@pytest.mark.parametrize("verdict", [0, 1])
def test_a_judge_decides_before_the_words_do(verdict):
    obs = conflicting("acknowledge_both", NEW, OLD, text="[1] [2]" if not verdict else "Sources disagree.")
    scored = REGISTRY.measure("recency_conflict_ok", 5)(judged(obs, "conflict_acknowledged", verdict))
    assert (scored.value, scored.detail) == (verdict, {"decided_by": "judge"})


def test_the_score_says_that_words_decided():
    scored = REGISTRY.measure("recency_conflict_ok", 5)(conflicting("acknowledge_both", NEW, OLD, text="[1] [2]"))
    assert scored.detail == {"decided_by": "answer text"}


def test_contradictions_are_asked_of_answers_to_cases_with_a_rule_only():
    assert score("recency_conflict_ok", conflicting(None, NEW)) == NO_RULE.reason
    assert score("recency_conflict_ok", conflicting("cite_both", places=None)) == UNLABELLED.reason
    assert score("recency_conflict_ok", conflicting("cite_both", NEW, OLD, abstained=True)) == ABSTAINED.reason
    unsaid = conflicting("acknowledge_both", NEW, OLD, text=None)
    assert score("recency_conflict_ok", unsaid) == NO_ANSWER.reason
