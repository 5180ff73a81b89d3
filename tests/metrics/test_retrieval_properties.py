"""L2: what holds for every ranking, whatever its chunks match."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from observations import REGISTRY, retrieved

from pytest_rageval.matching.places import match
from pytest_rageval.matching.spellings import headings
from pytest_rageval.model import Anchor, Answer, Chunk, EvalCase, Gold, Matching, NotApplicable, Observation

OF_HITS = ("recall_any", "context_recall", "precision", "mrr", "ndcg", "map", "f1")
GOLDS = 4
RANKINGS = st.lists(st.frozensets(st.integers(0, GOLDS - 1)), max_size=8)
"""For each rank the golds that it matches: none, one or several, new ones or old ones."""
CUTS = st.integers(1, 10)


def a_ranking(hits: list[frozenset[int]]) -> Observation:
    return replace(retrieved([], ["a", "b", "c", "d"]), matching=Matching("ids", GOLDS, tuple(hits)))


def value(name: str, hits: list[frozenset[int]]) -> float:
    scored = REGISTRY.measure(name, 5)(a_ranking(hits))
    assert not isinstance(scored, NotApplicable)
    return scored.value


@given(RANKINGS, CUTS)
def test_no_value_leaves_its_scale_even_where_chunks_hold_several_golds(hits, k):
    for name in OF_HITS:
        assert 0 <= value(f"{name}@{k}", hits) <= 1
    assert 0 <= value("r_precision", hits) <= 1


@given(RANKINGS, CUTS)
def test_an_irrelevant_chunk_at_the_end_raises_no_score(hits, k):
    for name in (*(f"{name}@{k}" for name in OF_HITS), "mrr", "r_precision"):
        assert value(name, [*hits, frozenset()]) <= value(name, hits)


@given(RANKINGS, CUTS, st.randoms(use_true_random=False))
def test_what_stands_below_the_cut_off_does_not_matter(hits, k, random):
    below = hits[k:]
    random.shuffle(below)
    for name in OF_HITS:
        assert value(f"{name}@{k}", hits[:k] + below) == value(f"{name}@{k}", hits)


@given(RANKINGS, CUTS)
def test_looking_further_down_finds_no_less(hits, k):
    for name in ("recall_any", "context_recall", "mrr", "map"):
        assert value(f"{name}@{k}", hits) <= value(f"{name}@{k + 1}", hits)


@given(RANKINGS)
def test_every_gold_at_the_top_is_perfect(hits):
    perfect = [frozenset((gold,)) for gold in range(GOLDS)]
    for name in (*(f"{name}@{GOLDS}" for name in OF_HITS), "r_precision"):
        assert value(name, perfect + hits) == 1


@pytest.mark.parametrize("golds", range(1, 101))
def test_a_perfect_ranking_of_any_length_has_an_ndcg_of_exactly_1(golds):
    names = [f"d{number:03}" for number in range(golds)]
    scored = REGISTRY.measure(f"ndcg@{golds}", 5)(retrieved(names, names))
    assert scored.value == 1


@given(RANKINGS)
def test_fresh_ranks_are_those_that_bring_a_gold_for_the_first_time(hits):
    fresh = Matching("ids", GOLDS, tuple(hits)).fresh
    assert [found for _, found in fresh] == sorted({found for _, found in fresh})
    for rank, found in fresh:
        assert len(frozenset().union(*hits[:rank])) == found > len(frozenset().union(*hits[: rank - 1]))


PATHS = st.lists(st.sampled_from(["A", "A b", "Ab", "# A", "B"]), max_size=4).map(" > ".join)


def is_below(heading: str, gold: str) -> bool:
    case = EvalCase("q", "What?", gold=Gold(supports=(Anchor("n.md", gold),)))
    matching = match(case, Answer(chunks=(Chunk(rel_path="n.md", heading_path=heading),)))
    return bool(matching.fresh and not matching.doubts)


@given(PATHS, PATHS, PATHS)
def test_the_prefix_rule_of_headings_is_an_order(upper, middle, lower):
    assert is_below(upper, upper)
    if is_below(middle, upper) and is_below(lower, middle):
        assert is_below(lower, upper)
    if is_below(middle, upper) and is_below(upper, middle):
        assert headings(upper) == headings(middle)


IDS = st.text("t0#-", min_size=1, max_size=5)


def begins(name: str, gold: str) -> bool:
    case = EvalCase("q", "What?", gold=Gold(chunk_ids=(gold,), ids_are_prefixes=True))
    return bool(match(case, Answer(chunks=(Chunk(chunk_id=name),))).fresh)


@given(IDS, IDS, IDS)
def test_the_prefix_rule_of_ids_is_an_order(shorter, middle, longer):
    assert begins(shorter, shorter)
    if begins(middle, shorter) and begins(longer, middle):
        assert begins(longer, shorter)
