"""L2 against other programs: trec_eval's figures, and ir-measures on random rankings."""

from __future__ import annotations

from dataclasses import replace

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from observations import judged_ranking, retrieved, score

TREC_NAMES = {
    "success": "recall_any",
    "recall": "context_recall",
    "P": "precision",
    "recip_rank": "mrr",
    "ndcg": "ndcg",
    "ndcg_cut": "ndcg",
    "map": "map",
    "map_cut": "map",
}
WHOLE_LIST = 1000


@pytest.mark.parametrize("name", ["trec_test", "trec_trunc", "squad_bm25"])
@pytest.mark.parametrize("gold_by", ["ids", "anchors"])
def test_figures_are_those_of_trec_eval_in_all_its_digits(name, gold_by):
    compared = 0
    for obs, expected in judged_ranking(name, gold_by):
        for figure, value in expected.items():
            stem, _, cut = figure.rpartition("_") if figure[-1].isdigit() else (figure, "", WHOLE_LIST)
            if stem not in TREC_NAMES:
                continue
            options = {"denominator": "k"} if stem == "P" else {}
            ours = score(f"{TREC_NAMES[stem]}@{cut}", obs, **options)
            assert f"{ours:.4f}" == f"{value:.4f}", (obs.case.id, figure)
            compared += 1
    assert compared >= 3 * 26


NAMES = st.text("abcdefghij", min_size=1, max_size=1)


@settings(deadline=None)
@given(
    came=st.lists(NAMES, unique=True, max_size=10),
    wanted=st.lists(NAMES, unique=True, min_size=1, max_size=8),
    k=st.integers(1, 12),
)
def test_random_rankings_score_as_in_ir_measures(came, wanted, k):
    theirs = {
        ir_measures.Success @ k: "recall_any@{}",
        ir_measures.R @ k: "context_recall@{}",
        ir_measures.P @ k: "precision@{}",
        ir_measures.RR: "mrr",
        ir_measures.RR @ k: "mrr@{}",
        ir_measures.nDCG @ k: "ndcg@{}",
        ir_measures.AP @ k: "map@{}",
    }
    qrels = [ir_measures.Qrel("q", name, 1) for name in wanted]
    run = [ir_measures.ScoredDoc("q", name, float(-rank)) for rank, name in enumerate(came)]
    found = {one.measure: one.value for one in ir_measures.iter_calc(list(theirs), qrels, run)}
    obs = retrieved(came, wanted)
    for measure, name in theirs.items():
        options = {"denominator": "k"} if name.startswith("precision") else {}
        assert score(name.format(k), obs, **options) == pytest.approx(found.get(measure, 0.0), abs=1e-9), measure


@settings(deadline=None)
@given(hits=st.lists(st.frozensets(st.integers(0, 3)), max_size=8), k=st.integers(1, 10))
def test_no_value_leaves_its_scale_even_where_chunks_hold_several_golds(hits, k):
    obs = retrieved([], ["a", "b", "c", "d"])
    obs = replace(obs, matching=replace(obs.matching, hits=tuple(hits)))
    for name in ("recall_any", "context_recall", "precision", "mrr", "ndcg", "map"):
        assert 0 <= score(f"{name}@{k}", obs) <= 1
