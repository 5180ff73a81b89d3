"""L2 against other programs: trec_eval's figures, and ir-measures on random rankings."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from random import Random

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from observations import REGISTRY, judged_ranking, retrieved, score
from processes import rounds

from pytest_rageval.metrics.registry import Measure

TREC_NAMES = {
    "success": "recall_any",
    "recall": "context_recall",
    "P": "precision",
    "recip_rank": "mrr",
    "ndcg": "ndcg",
    "ndcg_cut": "ndcg",
    "map": "map",
    "map_cut": "map",
    "Rprec": "r_precision",
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
            name = TREC_NAMES[stem]
            ours = score(name if name == "r_precision" else f"{name}@{cut}", obs, **options)
            assert f"{ours:.4f}" == f"{value:.4f}", (obs.case.id, figure)
            compared += 1
    assert compared >= 3 * 26


BATCHES, BATCH = rounds(20, 4), 500


@settings(deadline=None, max_examples=BATCHES)
@given(seed=st.integers(0, 2**32), k=st.integers(1, 12))
def test_ten_thousand_random_rankings_score_as_in_ir_measures(seed: int, k: int):
    random = Random(seed)
    theirs = {
        ir_measures.Success @ k: f"recall_any@{k}",
        ir_measures.R @ k: f"context_recall@{k}",
        ir_measures.P @ k: f"precision@{k}",
        ir_measures.RR: "mrr",
        ir_measures.RR @ k: f"mrr@{k}",
        ir_measures.nDCG @ k: f"ndcg@{k}",
        ir_measures.AP @ k: f"map@{k}",
        ir_measures.Rprec: "r_precision",
    }
    rankings = {f"q{number}": a_ranking(random) for number in range(BATCH)}
    qrels = [ir_measures.Qrel(query, name, 1) for query, (_, wanted) in rankings.items() for name in wanted]
    expected = defaultdict(float, calculated(list(theirs), qrels, rankings, WHOLE_LIST))
    # Its F is of a whole list: of one that ends at k.
    expected |= calculated([ir_measures.SetF], qrels, rankings, k)
    measures = {name: measured(name) for name in [*theirs.values(), f"f1@{k}"]}
    names = {str(one): name for one, name in theirs.items()} | {str(ir_measures.SetF): f"f1@{k}"}
    for query, (came, wanted) in rankings.items():
        obs = retrieved(came, wanted)
        for their, name in names.items():
            ours = measures[name](obs).value
            assert math.isclose(ours, expected[query, their], abs_tol=1e-9), (their, came, wanted, k)


@settings(deadline=None, max_examples=BATCHES)
@given(seed=st.integers(0, 2**32), k=st.integers(1, 12))
def test_graded_gains_score_as_in_ir_measures(seed: int, k: int):
    random = Random(seed)
    rankings = {f"q{number}": a_ranking(random) for number in range(BATCH)}
    relevance = {
        query: {name: float(random.randint(1, 4)) for name in wanted} for query, (_, wanted) in rankings.items()
    }
    qrels = [
        ir_measures.Qrel(query, name, int(grade))
        for query, grades in relevance.items()
        for name, grade in grades.items()
    ]
    expected = calculated([ir_measures.nDCG @ k], qrels, rankings, WHOLE_LIST)
    ndcg = measured(f"ndcg@{k}")
    for query, (came, _) in rankings.items():
        ours = ndcg(retrieved(came, (), gold={"relevance": relevance[query]})).value
        theirs = expected.get((query, str(ir_measures.nDCG @ k)), 0.0)
        assert math.isclose(ours, theirs, abs_tol=1e-9), (came, relevance[query], k)


def a_ranking(random: Random) -> tuple[list[str], list[str]]:
    """What came, in order, and what was wanted, out of a few names, so that they often meet."""
    names = list("abcdefghijklmnop"[: random.randint(8, 16)])
    return random.sample(names, random.randint(0, 8)), random.sample(names, random.randint(1, 8))


def calculated(measures, qrels, rankings, k: int) -> dict[tuple[str, str], float]:
    run = [
        ir_measures.ScoredDoc(query, name, float(-rank))
        for query, (came, _) in rankings.items()
        for rank, name in enumerate(came[:k])
    ]
    return {(one.query_id, str(one.measure)): one.value for one in ir_measures.iter_calc(measures, qrels, run)}


def measured(name: str) -> Measure:
    measure = REGISTRY.measure(name, 5)
    options = {"denominator": "k"} if name.startswith("precision") else {}
    return Measure(replace(measure.metric, options=options), measure.k)
