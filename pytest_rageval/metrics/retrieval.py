"""L2 Retrieval: did the right chunks come back, and how high?

Everything is computed from `obs.hits`: for each rank, the set of golds that the chunk there matches. Relevance is
binary. A chunk may match several golds and a gold several chunks; where positions are discounted (`ndcg`, `map`) a rank
counts as relevant if it brings a gold that no earlier rank brought, so no value exceeds 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from pytest_rageval.metrics.registry import metric
from pytest_rageval.model import NotApplicable, Observation

UNLABELLED = NotApplicable("no gold is labelled")
NOT_REPORTED = NotApplicable("the system reports no retrieved chunks")
NOT_ALL_NEEDED = NotApplicable("no support groups, and the category is neither multi_hop nor synthesis")
NOT_NEGATIVE = NotApplicable("not a negative case")
NOTHING_IRRELEVANT = NotApplicable("no irrelevant gold is labelled")

_ALL_NEEDED = frozenset(("multi_hop", "synthesis"))


@metric(
    layer="L2",
    better="higher",
    binary=True,
    needs=("chunks", "gold"),
    aliases=("recall",),
    gates=("recall_any >= 1 when gold=anchors,groups=false tag L2_doc_retrieval_fail",),
)
def recall_any(obs: Observation, k: int) -> float | NotApplicable:
    """1 if any gold is among the top k chunks, else 0.

    Higher is better. Not applicable without gold or where no retrieved chunks are reported. Source: success@k of
    trec_eval.
    """
    hits = obs.matching.hits
    if hits is None or not obs.matching.golds:
        return _missing(obs)
    return float(any(hits[:k]))


@metric(
    layer="L2",
    better="higher",
    binary=True,
    needs=("chunks", "gold"),
    gates=(
        "recall_all >= 1 when groups=true tag L2_multi_hop_fail",
        "recall_all >= 1 when category=multi_hop tag L2_multi_hop_fail",
    ),
)
def recall_all(obs: Observation, k: int) -> float | NotApplicable:
    """1 if all that the answer needs is among the top k chunks, else 0.

    With `support_groups` (an OR of ANDs over the anchors): every support of at least one group; without, every gold.
    Higher is better. Not applicable without gold, where no retrieved chunks are reported, and to cases that have
    neither groups nor the category multi_hop or synthesis. Source: full-support recall of multi-hop question answering.
    """
    hits = obs.matching.hits
    if hits is None or not obs.matching.golds:
        return _missing(obs)
    groups = obs.case.gold.support_groups if obs.matching.kind == "anchors" else None
    if not groups and obs.case.category not in _ALL_NEEDED:
        return NOT_ALL_NEEDED
    found = frozenset().union(*hits[:k])
    if groups:
        return float(any(found.issuperset(group) for group in groups))
    return float(len(found) == obs.matching.golds)


@metric(
    layer="L2",
    better="higher",
    needs=("chunks", "gold"),
    gates=("context_recall >= 0.80 when gold=ids,requires_kg=false tag L2_doc_retrieval_fail",),
)
def context_recall(obs: Observation, k: int) -> float | NotApplicable:
    """Golds matched by the top k chunks / golds.

    In [0, 1], higher is better. Not applicable without gold or where no retrieved chunks are reported. Source: recall@k
    of trec_eval.
    """
    hits = obs.matching.hits
    if hits is None or not obs.matching.golds:
        return _missing(obs)
    return len(frozenset().union(*hits[:k])) / obs.matching.golds


@metric(layer="L2", better="higher", needs=("chunks", "gold"))
def precision(obs: Observation, k: int, *, denominator: Literal["returned", "k"] = "returned") -> float | NotApplicable:
    """Matching chunks among the top k / chunks returned in the top k (`denominator = "k"`: / k).

    In [0, 1], higher is better; 0 where nothing was returned. Not applicable without gold or where no retrieved chunks
    are reported. Source: with `denominator = "k"`, P@k of trec_eval.
    """
    hits = obs.matching.hits
    if hits is None or not obs.matching.golds:
        return _missing(obs)
    top = hits[:k]
    return sum(map(bool, top)) / (k if denominator == "k" else len(top) or 1)


@metric(layer="L2", better="higher", needs=("chunks", "gold"))
def mrr(obs: Observation, k: int | None = None) -> float | NotApplicable:
    """1 / rank of the first matching chunk, 0 if none matches; `mrr` in the whole list, `mrr@k` in its top k.

    In [0, 1], higher is better. Not applicable without gold or where no retrieved chunks are reported. Source:
    recip_rank of trec_eval.
    """
    hits = obs.matching.hits
    if hits is None or not obs.matching.golds:
        return _missing(obs)
    for rank, golds in enumerate(hits[:k], start=1):
        if golds:
            return 1 / rank
    return 0.0


@metric(layer="L2", better="higher", needs=("chunks", "gold"))
def ndcg(obs: Observation, k: int) -> float | NotApplicable:
    """Discounted cumulative gain of the top k, as a share of the ideal: Σ 1/log2(rank + 1) over relevant ranks / ideal.

    A rank is relevant if it brings a gold for the first time; the ideal has min(golds, k) relevant ranks at the top. In
    [0, 1], higher is better. Not applicable without gold or where no retrieved chunks are reported. Source: ndcg_cut of
    trec_eval (Järvelin and Kekäläinen 2002, with log2), binary.
    """
    hits = obs.matching.hits
    if hits is None or not obs.matching.golds:
        return _missing(obs)
    gain = sum([_discount(rank) for rank in _relevant_ranks(hits[:k])])
    return gain / _ideal_gain(min(obs.matching.golds, k)) if gain else 0.0


@metric(name="map", layer="L2", better="higher", needs=("chunks", "gold"))
def map_(obs: Observation, k: int) -> float | NotApplicable:
    """Average precision in the top k: Σ (relevant ranks so far / rank) over relevant ranks / golds.

    A rank is relevant if it brings a gold for the first time. In [0, 1], higher is better. Not applicable without gold
    or where no retrieved chunks are reported. Source: map_cut of trec_eval, which divides by all golds whatever k is.
    """
    hits = obs.matching.hits
    if hits is None or not obs.matching.golds:
        return _missing(obs)
    return sum([so_far / rank for so_far, rank in enumerate(_relevant_ranks(hits[:k]), start=1)]) / obs.matching.golds


@metric(
    layer="L2",
    better="higher",
    binary=True,
    needs=("chunks",),
    gates=("negative_accuracy >= 1 tag L2_negative_fail",),
)
def negative_accuracy(obs: Observation) -> float | NotApplicable:
    """1 if nothing was returned (above the system's own threshold) although something was asked, else 0.

    For cases of category `negative` whose list of relevant ids is empty: nothing may come. Higher is better. Not
    applicable to other cases or where no retrieved chunks are reported. Source: true negative rate.
    """
    if obs.case.category != "negative" or obs.gold.chunk_ids != ():
        return NOT_NEGATIVE
    if obs.matching.hits is None:
        return NOT_REPORTED
    return float(not obs.matching.hits)


@metric(
    layer="L2",
    better="higher",
    binary=True,
    needs=("chunks", "gold.irrelevant"),
    gates=("specificity_accuracy >= 1 tag L2_specificity_fail",),
)
def specificity_accuracy(obs: Observation, k: int) -> float | NotApplicable:
    """1 if none of the golds that must not come is among the top k chunks, else 0.

    Higher is better. Not applicable to cases without irrelevant golds or where no retrieved chunks are reported.
    Source: hard-negative tests of retrieval.
    """
    gold = obs.case.gold
    if not (gold.irrelevant_supports or gold.irrelevant_ids):
        return NOTHING_IRRELEVANT
    if obs.matching.irrelevant is None:
        return NOT_REPORTED
    return float(not any(obs.matching.irrelevant[:k]))


def _missing(obs: Observation) -> NotApplicable:
    return NOT_REPORTED if obs.golds else UNLABELLED


def _relevant_ranks(top: Sequence[frozenset[int]]) -> list[int]:
    """1-based ranks that bring a gold for the first time."""
    ranks: list[int] = []
    seen: frozenset[int] = frozenset()
    for rank, golds in enumerate(top, start=1):
        if golds and not golds <= seen:
            ranks.append(rank)
            seen |= golds
    return ranks


def _discount(rank: int) -> float:
    return _DISCOUNTS[rank] if rank < len(_DISCOUNTS) else 1 / math.log2(rank + 1)


_DISCOUNTS = (0.0, *(1 / math.log2(rank + 1) for rank in range(1, 101)))


@lru_cache(maxsize=1024)
def _ideal_gain(relevant: int) -> float:
    return sum(_discount(rank) for rank in range(1, relevant + 1))
