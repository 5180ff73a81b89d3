"""L2 Retrieval: recall, precision and ranking of the retrieved chunks against the golds.

Everything is computed from `obs.matching`: for each rank, the set of golds that the chunk there matches. Relevance is
binary, but for the grades that `ndcg` counts, and scores of the system are never used. A chunk may match several golds
and a gold several chunks; where positions are discounted or counted against the golds (`ndcg`, `map`, `r_precision`,
`f1`) a rank is relevant if it brings a gold that no earlier rank brought (`matching.fresh`), so no value exceeds 1.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Literal

from pytest_rageval.metrics.graded import discounted, graded_gains, graded_ndcg, grades
from pytest_rageval.metrics.registry import metric, not_asked_for
from pytest_rageval.model import Matching, NotApplicable, Observation
from pytest_rageval.text import counted

UNLABELLED = NotApplicable("no gold is labelled")
NOT_REPORTED = NotApplicable("the system reports no retrieved chunks, or texts without a place", is_unobserved=True)
NOT_NEGATIVE = NotApplicable("not a negative case")
NOTHING_IRRELEVANT = NotApplicable("no irrelevant gold is labelled")
NOT_ALL_NEEDED = NotApplicable("no support groups, and the category is neither multi_hop nor synthesis")

_ALL_NEEDED = frozenset(("multi_hop", "synthesis"))
_NO_GOLD: frozenset[int] = frozenset()


def _ranks(obs: Observation, k: int) -> list[int]:
    """Return the ranks within the top k that bring a gold for the first time."""
    return [rank for rank, _ in obs.matching.fresh if rank <= k]


def _golds(obs: Observation) -> str:
    return counted(obs.golds, "gold")


def _first(obs: Observation, k: int) -> str:
    if ranks := _ranks(obs, k):
        return f"the first gold is at rank {ranks[0]}"
    chunks = min(k, len(obs.hits))
    if chunks == 0:
        return "no gold among the chunks"
    if chunks == 1:
        return "no gold among the one chunk"
    return f"no gold among the top {chunks} chunks"


def _all(obs: Observation, k: int) -> str:
    numbers = sorted(gold + 1 for gold in _NO_GOLD.union(*obs.hits[:k]))
    groups = obs.gold.support_groups or [range(obs.golds)]
    written: list[str] = []
    for group in groups:
        members = ", ".join(str(gold + 1) for gold in group)
        written.append(f"{{{members}}}")
    choices = " or ".join(written)
    return f"golds found: {', '.join(map(str, numbers)) or 'none'}; wanted: {choices}"


def _precision(obs: Observation, k: int) -> str:
    top = obs.hits[:k]
    matching = sum(map(bool, top))
    return f"{matching} matching of {counted(len(top), 'chunk')} returned in the top {k}"


def _harmonic(obs: Observation, k: int) -> str:
    # Not the matching chunks of `precision`: a second chunk of the same gold counts there, and not here.
    bring = counted(_relevant(obs.matching, k), "rank brings", "ranks bring")
    returned = counted(min(len(obs.hits), k), "chunk")
    matched_golds = _count_matched(obs.matching, k)
    return f"{bring} a new gold, of {returned} returned in the top {k}; {matched_golds} of {_golds(obs)} found"


def _reciprocal(obs: Observation, k: int) -> str:
    ranks = _ranks(obs, k)
    return f"1 / rank {ranks[0]}" if ranks else "no chunk matches"


def _gains(obs: Observation, k: int) -> str:
    by_gold = grades(obs)
    if by_gold is not None:
        gains = graded_gains(obs, by_gold, k)
        best = dict(enumerate(sorted(by_gold, reverse=True)[:k], start=1))
        graded = ", ".join(f"{gain:g} at rank {rank}" for rank, gain in gains.items())
        return f"gain {discounted(gains):.4f} ({graded or 'no gold'}) / ideal {discounted(best):.4f}"
    ranks = _ranks(obs, k)
    gain = math.fsum(map(_discount, ranks))
    ideal = math.fsum(map(_discount, range(1, min(obs.golds, k) + 1)))
    return f"gain {gain:.4f} at ranks {ranks or 'none'} / ideal {ideal:.4f}"


def _precisions(obs: Observation, k: int) -> str:
    terms = " + ".join(f"{number}/{rank}" for number, rank in enumerate(_ranks(obs, k), start=1))
    return f"({terms or 0}) / {_golds(obs)}"


def _irrelevant(obs: Observation, k: int) -> str:
    top = (obs.matching.irrelevant or ())[:k]
    ranks = [rank for rank, is_irrelevant in enumerate(top, start=1) if is_irrelevant]
    return f"irrelevant golds at ranks {ranks or 'none'}"


def unranked(obs: Observation) -> NotApplicable | None:
    """Return why there is no ranking to compare with golds."""
    if obs.matching.hits is not None and obs.matching.golds:
        return None
    return NOT_REPORTED if obs.matching.golds else UNLABELLED


ranked = partial(metric, layer="L2", better="higher", needs=("chunks", "gold"), missing=unranked)


@ranked(
    binary=True,
    aliases=("recall",),
    gates=("recall_any >= 1 when gold=anchors,groups=false tag L2_doc_retrieval_fail",),
    terms=_first,
)
def recall_any(obs: Observation, k: int) -> float | NotApplicable:
    """1 if any gold is among the top k chunks, else 0.

    Higher is better. Not applicable without gold or where no retrieved chunks are reported. Source: success@k of
    trec_eval.

    Gold `a` comes at rank 3:

    >>> score("recall_any@3", retrieved("x y a", gold="a b"))
    1.0
    >>> score("recall_any@2", retrieved("x y a", gold="a b"))
    0.0
    """
    return 1.0 if obs.matching.fresh and obs.matching.fresh[0][0] <= k else 0.0


@ranked(
    binary=True,
    gates=(
        "recall_all >= 1 when groups=true tag L2_multi_hop_fail",
        "recall_all >= 1 when category=multi_hop tag L2_multi_hop_fail",
    ),
    terms=_all,
)
def recall_all(obs: Observation, k: int) -> float | NotApplicable:
    """1 if all that the answer needs is among the top k chunks, else 0.

    With `support_groups` (an OR of ANDs over the anchors): every support of at least one group; without, every gold.
    Higher is better. Not applicable without gold, where no retrieved chunks are reported, and to cases that have
    neither groups nor the category multi_hop or synthesis. Source: full-support recall of multi-hop question answering.

    Needed are (`a` and `b`) or `c`; with two chunks both `a` and `b` are there, with one only `a` is:

    >>> score("recall_all@2", retrieved("a b", gold="a b c", groups=((0, 1), (2,))))
    1.0
    >>> score("recall_all@1", retrieved("a b", gold="a b c", groups=((0, 1), (2,))))
    0.0
    """
    groups = obs.case.gold.support_groups if obs.matching.kind == "anchors" else None
    if not groups and obs.case.category not in _ALL_NEEDED:
        return NOT_ALL_NEEDED
    matched_golds = _NO_GOLD.union(*obs.hits[:k])
    if groups:
        return float(any(matched_golds.issuperset(group) for group in groups))
    return float(len(matched_golds) == obs.golds)


@ranked(
    gates=("context_recall >= 0.80 when gold=ids tag L2_doc_retrieval_fail",),
    yields_to="hits",
    terms=lambda obs, k: f"{counted(_count_matched(obs.matching, k), 'gold')} found / {_golds(obs)}",
)
def context_recall(obs: Observation, k: int) -> float | NotApplicable:
    """Golds matched by the top k chunks / golds.

    In [0, 1], higher is better. Where `hits` gates a case that requires the graph, the default gate of this one stands
    back. Not applicable without gold or where no retrieved chunks are reported. Source: recall@k of trec_eval.

    `a` and `b` come, `c` and `d` do not: 2 / 4.

    >>> score("context_recall@3", retrieved("a x b", gold="a b c d"))
    0.5
    """
    return _count_matched(obs.matching, k) / obs.golds


@ranked(terms=_precision)
def precision(obs: Observation, k: int, *, denominator: Literal["returned", "k"] = "returned") -> float | NotApplicable:
    """Matching chunks among the top k / chunks returned in the top k (`denominator = "k"`: / k).

    In [0, 1], higher is better; 0 where nothing was returned. Not applicable without gold or where no retrieved chunks
    are reported. Source: with `denominator = "k"`, P@k of trec_eval.

    Three chunks come, one matches: 1 / 3 of what was returned, 1 / 5 of what was asked for.

    >>> score("precision@5", retrieved("a x y", gold="a b"))
    0.3333333333333333
    >>> score("precision@5", retrieved("a x y", gold="a b"), denominator="k")
    0.2
    """
    top = obs.hits[:k]
    matching = len(top) - top.count(_NO_GOLD)
    if denominator == "k":
        return matching / k
    return matching / (len(top) or 1)


@ranked(terms=_reciprocal)
def mrr(obs: Observation, k: int | None = None) -> float | NotApplicable:
    """1 / rank of the first matching chunk, 0 if none matches; `mrr` in the whole list, `mrr@k` in its top k.

    In [0, 1], higher is better. Not applicable without gold or where no retrieved chunks are reported. Source:
    recip_rank of trec_eval.

    The first gold is at rank 4: 1 / 4; within the top 3 there is none.

    >>> score("mrr", retrieved("x y z b a", gold="a b"))
    0.25
    >>> score("mrr@3", retrieved("x y z b a", gold="a b"))
    0.0
    """
    if not obs.matching.fresh:
        return 0.0
    first, _ = obs.matching.fresh[0]
    if k is not None and first > k:
        return 0.0
    return 1 / first


@ranked(terms=_gains)
def ndcg(obs: Observation, k: int) -> float | NotApplicable:
    """Discounted cumulative gain of the top k, as a share of the ideal: Σ 1/log2(rank + 1) over relevant ranks / ideal.

    A rank is relevant if it brings a gold for the first time; the ideal has min(golds, k) relevant ranks at the top.
    Where `gold.relevance` has grades, a rank counts its grade instead of 1, and the ideal has the highest grades first.
    In [0, 1], higher is better. Not applicable without gold or where no retrieved chunks are reported. Source: ndcg_cut
    of trec_eval (Järvelin and Kekäläinen 2002, with log2).

    Relevant at rank 3, the ideal at rank 1: (1 / log2 4) / (1 / log2 2) = 0.5 / 1.

    >>> score("ndcg@3", retrieved("x y a", gold="a"))
    0.5
    """
    if obs.gold.relevance and (by_gold := grades(obs)) is not None:
        return graded_ndcg(obs, by_gold, k)
    # By fsum, as the ideal gain: with other rounding the same terms gave 1.0000000000000002 of it.
    gains = [_DISCOUNTS[rank] if rank < _PREPARED else _discount(rank) for rank, _ in obs.matching.fresh if rank <= k]
    if not gains:
        return 0.0
    return math.fsum(gains) / _ideal_gain(min(obs.golds, k))


@ranked(name="map", terms=_precisions)
def map_(obs: Observation, k: int) -> float | NotApplicable:
    """Average precision in the top k: Σ (relevant ranks so far / rank) over relevant ranks / golds.

    A rank is relevant if it brings a gold for the first time. In [0, 1], higher is better. Not applicable without gold
    or where no retrieved chunks are reported. Source: map_cut of trec_eval, which divides by all golds whatever k is.

    Relevant at ranks 1 and 4, of two golds: (1/1 + 2/4) / 2.

    >>> score("map@5", retrieved("a x y b", gold="a b"))
    0.75
    """
    total = 0.0
    for relevant, (rank, _) in enumerate(obs.matching.fresh, start=1):
        if rank > k:
            break
        total += relevant / rank
    return total / obs.golds


@ranked(
    terms=lambda obs, _: f"{counted(len(_ranks(obs, obs.golds)), 'gold')} in the top {obs.golds} / {_golds(obs)}",
)
def r_precision(obs: Observation) -> float | NotApplicable:
    """Relevant ranks among the top R / R, where R is the number of golds.

    A rank is relevant if it brings a gold for the first time. In [0, 1], higher is better. Not applicable without gold,
    where no retrieved chunks are reported, or where the system was asked for fewer than R. Source: Rprec of trec_eval.

    Of three golds two are among the top three: 2 / 3.

    >>> score("r_precision", retrieved("a x b c", gold="a b c"))
    0.6666666666666666
    """
    # What was not asked for could not come: the value would be of the question, not of the system.
    if obs.asked_k is not None and obs.golds > obs.asked_k:
        return not_asked_for(obs.asked_k, obs.golds)
    return _relevant(obs.matching, obs.golds) / obs.golds


@ranked(terms=_harmonic)
def f1(obs: Observation, k: int) -> float | NotApplicable:
    """Harmonic mean of P and R in the top k: P = relevant ranks / chunks returned, R = golds found / golds.

    A rank is relevant if it brings a gold for the first time; R is `context_recall`. In [0, 1], higher is better; 0
    where nothing was returned. Not applicable without gold or where no retrieved chunks are reported. Source: F of van
    Rijsbergen with β = 1 over the retrieved set, set_F of trec_eval on a list cut at k.

    One of three chunks is relevant, one of two golds is found: P = 1/3, R = 1/2, 2·P·R / (P + R) = 2/5.

    >>> score("f1@3", retrieved("a x y", gold="a b"))
    0.4
    """
    relevant = _relevant(obs.matching, k)
    if not relevant:
        return 0.0
    # 2 / (1/P + 1/R) without a rounded quotient in between.
    matched_golds = _count_matched(obs.matching, k)
    returned = min(len(obs.hits), k)
    return 2 * relevant * matched_golds / (relevant * obs.golds + returned * matched_golds)


@metric(
    layer="L2",
    better="higher",
    binary=True,
    needs=("chunks", "gold"),
    terms=lambda obs, _: f"{counted(len(obs.hits), 'chunk')} retrieved, none expected",
    gates=("negative_accuracy >= 1 tag L2_negative_fail",),
)
def negative_accuracy(obs: Observation) -> float | NotApplicable:
    """1 if nothing was returned (above the system's own threshold) although something was asked, else 0.

    For cases of category `negative` whose list of relevant ids is empty: nothing may come. Higher is better. Not
    applicable to other cases or where no retrieved chunks are reported. Source: true negative rate.

    >>> score("negative_accuracy", retrieved("", gold="", category="negative"))
    1.0
    >>> score("negative_accuracy", retrieved("x", gold="", category="negative"))
    0.0
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
    terms=_irrelevant,
    gates=("specificity_accuracy >= 1 tag L2_specificity_fail",),
)
def specificity_accuracy(obs: Observation, k: int) -> float | NotApplicable:
    """1 if none of the golds that must not come is among the top k chunks, else 0.

    Higher is better. Not applicable to cases without irrelevant golds or where no retrieved chunks are reported.
    Source: hard-negative tests of retrieval.

    The look-alike comes at rank 3:

    >>> score("specificity_accuracy@2", retrieved("a b alike", gold="a", irrelevant="alike"))
    1.0
    >>> score("specificity_accuracy@3", retrieved("a b alike", gold="a", irrelevant="alike"))
    0.0
    """
    gold = obs.case.gold
    if not (gold.irrelevant_supports or gold.irrelevant_ids):
        return NOTHING_IRRELEVANT
    if obs.matching.irrelevant is None:
        return NOT_REPORTED
    return float(not any(obs.matching.irrelevant[:k]))


def _count_matched(matching: Matching, k: int) -> int:
    """Return the number of golds that the top k chunks match."""
    counts = [so_far for rank, so_far in matching.fresh if rank <= k]
    return counts[-1] if counts else 0


def _relevant(matching: Matching, k: int) -> int:
    """Return how many of the top k ranks bring a gold for the first time."""
    return len([rank for rank, _ in matching.fresh if rank <= k])


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)


_PREPARED = 101
_DISCOUNTS = (0.0, *map(_discount, range(1, _PREPARED)))
"""The discount of each rank; ranks start at 1."""


@lru_cache(maxsize=1024)
def _ideal_gain(relevant: int) -> float:
    # By fsum, as the gain: it rounds once, so the best ranking has exactly 1, and no other has more.
    return math.fsum(map(_discount, range(1, relevant + 1)))
