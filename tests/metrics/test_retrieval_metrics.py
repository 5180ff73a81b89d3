"""L2: what each metric says of small rankings."""

from __future__ import annotations

import math

import pytest
from observations import a_case, ranked, retrieved, score

from pytest_rageval.matching.places import observe
from pytest_rageval.metrics.retrieval import NOT_ALL_NEEDED, NOT_REPORTED, UNLABELLED
from pytest_rageval.metrics.selection import NOT_NEGATIVE
from pytest_rageval.model import Anchor, Answer, Chunk, Gold

OF_HITS = ("recall_any", "context_recall", "precision", "mrr", "ndcg", "map", "f1")


def over_sections(*headings: str, groups: tuple[tuple[int, ...], ...] | None = None, category: str | None = None):
    """Three supports A, B, C of one note; the chunks that came have these headings."""
    gold = Gold(supports=tuple(Anchor("n.md", name) for name in "ABC"), support_groups=groups)
    chunks = tuple(Chunk(rel_path="n.md", heading_path=heading) for heading in headings)
    return observe(a_case(gold=gold, category=category), Answer(chunks=chunks))


def test_recall_any_asks_for_one_gold_in_the_top_k():
    obs = retrieved(["x", "y", "a"], ["a", "b"])
    assert [score(f"recall_any@{k}", obs) for k in (1, 2, 3, 9)] == [0, 0, 1, 1]


def test_precision_divides_by_what_was_returned_unless_told_otherwise():
    obs = retrieved(["a", "x"], ["a"])
    assert score("precision@5", obs) == 0.5
    assert score("precision@5", obs, denominator="k") == 0.2
    assert score("precision@1", obs) == 1


def test_precision_counts_every_matching_chunk_of_one_gold():
    gold = Gold(chunk_ids=("t01",), ids_are_prefixes=True)
    obs = observe(a_case(gold=gold), Answer(chunks=ranked("t01#1", "t01#2", "x")))
    assert score("precision@3", obs) == pytest.approx(2 / 3)


def test_ndcg_discounts_by_the_logarithm_of_the_rank():
    obs = retrieved(["x", "a", "b"], ["a", "b", "c"])
    ideal = 1 + 1 / math.log2(3) + 1 / 2
    assert score("ndcg@3", obs) == pytest.approx((1 / math.log2(3) + 1 / 2) / ideal)


@pytest.mark.parametrize("name", ["ndcg@10", "map@10"])
def test_a_gold_counts_once_however_often_it_comes(name):
    gold = Gold(chunk_ids=("t01", "t02"), ids_are_prefixes=True)
    again = observe(a_case(gold=gold), Answer(chunks=ranked("t01#1", "t01#2", "t01#3")))
    once = observe(a_case(gold=gold), Answer(chunks=ranked("t01#1", "x", "x")))
    assert score(name, again) == score(name, once)


def test_r_precision_looks_as_far_down_as_there_are_golds():
    assert score("r_precision", retrieved(["x", "a", "b"], ["a", "b"])) == 0.5
    assert score("r_precision", retrieved(["a", "b", "x"], ["a", "b"])) == 1
    assert score("r_precision", retrieved([], ["a", "b"])) == 0


def test_r_precision_needs_as_many_chunks_asked_for_as_there_are_golds():
    obs = observe(a_case(gold=Gold(chunk_ids=("a", "b", "c"))), Answer(chunks=ranked("a", "b")), asked_k=2)
    assert score("r_precision", obs) == "the system was asked for 2 chunks, fewer than 3"


def test_f1_is_the_harmonic_mean_of_precision_and_recall():
    obs = retrieved(["a", "x", "b", "y"], ["a", "b", "c"])
    precision, recall = 2 / 4, 2 / 3
    assert score("f1@4", obs) == pytest.approx(2 * precision * recall / (precision + recall))
    assert score("f1@9", obs) == score("f1@4", obs)


def test_f1_counts_a_gold_once_and_a_chunk_with_several_golds_as_one():
    gold = Gold(chunk_ids=("t01",), ids_are_prefixes=True)
    twice = observe(a_case(gold=gold), Answer(chunks=ranked("t01#1", "t01#2")))
    assert score("f1@2", twice) == pytest.approx(2 / 3)  # P = 1/2, R = 1
    assert score("precision@2", twice) == 1
    both = Gold(supports=(Anchor("n.md"), Anchor("n.md", "A")))
    at_once = observe(a_case(gold=both), Answer(chunks=(Chunk(rel_path="n.md", heading_path="A"),)))
    assert score("f1@2", at_once) == 1
    assert score("map@2", at_once) == 0.5


def test_scores_of_the_system_are_never_looked_at():
    gold = Gold(chunk_ids=("a",))
    chunks = (Chunk("x", score_final=-3.0), Chunk("a", score_final=99.0), Chunk("y", score_final=-3.0))
    assert score("mrr", observe(a_case(gold=gold), Answer(chunks=chunks))) == 0.5


def test_ranks_beyond_the_prepared_discounts_are_discounted_too():
    obs = retrieved(["x"] * 199 + ["a"], ["a"])
    assert score("ndcg@200", obs) == pytest.approx(1 / math.log2(201))


@pytest.mark.parametrize("name", OF_HITS)
def test_nothing_retrieved_is_zero(name):
    assert score(name, retrieved([], ["a"])) == 0


@pytest.mark.parametrize("name", OF_HITS)
def test_chunks_that_are_not_reported_are_not_zero(name):
    assert score(name, retrieved(None, ["a"])) == NOT_REPORTED.reason


@pytest.mark.parametrize("name", OF_HITS)
def test_without_gold_there_is_no_score(name):
    assert score(name, retrieved(["a"], [])) == UNLABELLED.reason


@pytest.mark.parametrize("name", OF_HITS)
def test_a_cut_off_beyond_what_was_asked_for_has_no_score(name):
    obs = observe(a_case(gold=Gold(chunk_ids=("a",))), Answer(chunks=ranked("a")), asked_k=5)
    assert score(f"{name}@6", obs) == "the system was asked for 5 chunks, fewer than 6"


def test_recall_all_needs_every_support_of_one_group():
    groups = ((0, 1), (2,))
    assert score("recall_all", over_sections("A", groups=groups)) == 0
    assert score("recall_all", over_sections("A", "B", groups=groups)) == 1
    assert score("recall_all", over_sections("x", "C", groups=groups)) == 1
    assert score("recall_all@1", over_sections("A", "B", groups=groups)) == 0


@pytest.mark.parametrize("category", ["multi_hop", "synthesis"])
def test_recall_all_without_groups_needs_every_gold(category):
    assert score("recall_all", over_sections("A", "B", category=category)) == 0
    assert score("recall_all", over_sections("C", "B", "A", category=category)) == 1


def test_recall_all_is_for_cases_that_need_several_places():
    assert score("recall_all", over_sections("A", "B", "C", category="factual")) == NOT_ALL_NEEDED.reason


def test_groups_of_anchors_say_nothing_about_ids():
    gold = Gold(supports=(Anchor("n.md"),), support_groups=((0,),), chunk_ids=("a", "b"))
    obs = observe(a_case(gold=gold, category="multi_hop"), Answer(chunks=ranked("a")), gold_by="ids")
    assert score("recall_all", obs) == 0


def test_what_a_negative_case_brought_back_must_be_reported():
    assert score("negative_accuracy", retrieved(None, [], category="negative")) == NOT_REPORTED.reason


def test_only_a_case_with_an_empty_list_of_relevant_ids_is_negative():
    assert score("negative_accuracy", retrieved([], [], category="retrieval")) == NOT_NEGATIVE.reason
    absent = observe(a_case(category="negative", answerable=False), Answer(chunks=()))
    assert score("negative_accuracy", absent) == NOT_NEGATIVE.reason


def test_specificity_is_for_cases_with_irrelevant_golds():
    assert score("specificity_accuracy", retrieved(["a"], ["a"])) == "no irrelevant gold is labelled"
    unreported = retrieved(None, ["a"], gold={"irrelevant_ids": ("bad",)})
    assert score("specificity_accuracy", unreported) == NOT_REPORTED.reason
