"""L2: what each metric says of small rankings; the examples of its definition and trec_eval's figures say the rest."""

from __future__ import annotations

import math

import pytest
from observations import a_case, assert_score, ranked, retrieved, score, scores

from pytest_rageval.matching.places import observe
from pytest_rageval.metrics.retrieval import NOT_ALL_NEEDED, NOT_NEGATIVE, NOT_REPORTED, NOTHING_IRRELEVANT, UNLABELLED
from pytest_rageval.model import Anchor, Answer, Chunk, Gold, Observation

OF_HITS = ("recall_any", "context_recall", "precision", "mrr", "ndcg", "map", "f1")
GROUPS = ((0, 1), (2,))


def over_sections(*headings: str, **fields) -> Observation:
    """Three supports A, B, C of one note; the chunks that came have these headings."""
    gold = Gold(supports=tuple(Anchor("n.md", name) for name in "ABC"), support_groups=fields.pop("groups", None))
    chunks = tuple(Chunk(rel_path="n.md", heading_path=heading) for heading in headings)
    return observe(a_case(gold=gold, **fields), Answer(chunks=chunks))


def parts(*chunks: str, golds: tuple[str, ...] = ("t01",)) -> Observation:
    """Chunks that may be parts of one gold."""
    return observe(a_case(gold=Gold(chunk_ids=golds, ids_are_prefixes=True)), Answer(chunks=ranked(*chunks)))


def asked(k: int, *chunks: str, golds: str = "a") -> Observation:
    return observe(a_case(gold=Gold(chunk_ids=tuple(golds))), Answer(chunks=ranked(*chunks)), asked_k=k)


BOTH = observe(
    a_case(gold=Gold(supports=(Anchor("n.md"), Anchor("n.md", "A")))),
    Answer(chunks=(Chunk(rel_path="n.md", heading_path="A"),)),
)
BY_IDS = observe(
    a_case(gold=Gold(supports=(Anchor("n.md"),), support_groups=((0,),), chunk_ids=("a", "b")), category="multi_hop"),
    Answer(chunks=ranked("a")),
    gold_by="ids",
)
SCORED = observe(
    a_case(gold=Gold(chunk_ids=("a",))),
    Answer(chunks=(Chunk("x", score_final=-3.0), Chunk("a", score_final=99.0), Chunk("y", score_final=-3.0))),
)
SCORES = {
    "precision counts every matching chunk of one gold": ("precision@3", parts("t01#1", "t01#2", "x"), 2 / 3),
    "r_precision needs as many chunks asked for as there are golds": (
        "r_precision", asked(2, "a", "b", golds="abc"), "the system was asked for 2 chunks, fewer than 3"),
    "f1 of a list that ends before the cut-off": ("f1@9", retrieved(["a", "x", "b", "y"], ["a", "b", "c"]), 4 / 7),
    "f1 counts a gold once": ("f1@2", parts("t01#1", "t01#2"), 2 / 3),  # P = 1/2, R = 1
    "f1 counts a chunk with several golds as one": ("f1@2", BOTH, 1),
    "map counts a chunk with several golds as one": ("map@2", BOTH, 0.5),
    "scores of the system are never looked at": ("mrr", SCORED, 0.5),
    "ranks beyond the prepared discounts are discounted too": (
        "ndcg@200", retrieved(["x"] * 199 + ["a"], ["a"]), 1 / math.log2(201)),
    "a part of a group is not enough": ("recall_all", over_sections("A", groups=GROUPS), 0),
    "one whole group is enough": ("recall_all", over_sections("x", "C", groups=GROUPS), 1),
    "a group below the cut-off is not there": ("recall_all@1", over_sections("A", "B", groups=GROUPS), 0),
    "without groups multi_hop needs every gold": ("recall_all", over_sections("A", "B", category="multi_hop"), 0),
    "every gold in any order is all": ("recall_all", over_sections("C", "B", "A", category="multi_hop"), 1),
    "synthesis needs every gold too": ("recall_all", over_sections("A", "B", category="synthesis"), 0),
    "recall_all is for cases that need several places": (
        "recall_all", over_sections("A", "B", "C", category="factual"), NOT_ALL_NEEDED),
    "groups of anchors say nothing about ids": ("recall_all", BY_IDS, 0),
    "what a negative case brought back must be reported": (
        "negative_accuracy", retrieved(None, [], category="negative"), NOT_REPORTED),
    "a case of another category is not negative": (
        "negative_accuracy", retrieved([], [], category="retrieval"), NOT_NEGATIVE),
    "a case without a list of relevant ids is not negative": (
        "negative_accuracy", observe(a_case(category="negative", answerable=False), Answer(chunks=())), NOT_NEGATIVE),
    "specificity is for cases with irrelevant golds": (
        "specificity_accuracy", retrieved(["a"], ["a"]), NOTHING_IRRELEVANT),
    "irrelevant chunks must be reported": (
        "specificity_accuracy", retrieved(None, ["a"], gold={"irrelevant_ids": ("bad",)}), NOT_REPORTED),
    **{f"nothing retrieved is zero for {name}": (name, retrieved([], ["a"]), 0) for name in (*OF_HITS, "r_precision")},
    **{f"chunks not reported are not zero for {name}": (name, retrieved(None, ["a"]), NOT_REPORTED)
       for name in OF_HITS},
    **{f"without gold there is no {name}": (name, retrieved(["a"], []), UNLABELLED) for name in OF_HITS},
    **{f"beyond what was asked for there is no {name}": (
        f"{name}@6", asked(5, "a"), "the system was asked for 5 chunks, fewer than 6") for name in OF_HITS},
}  # fmt: skip


@scores(SCORES)
def test_the_score_of_a_ranking(name, obs, expected):
    assert_score(name, obs, expected)


@pytest.mark.parametrize("name", ["ndcg@10", "map@10"])
def test_a_gold_counts_once_however_often_it_comes(name):
    golds = ("t01", "t02")
    again, once = parts("t01#1", "t01#2", "t01#3", golds=golds), parts("t01#1", "x", "x", golds=golds)
    assert score(name, again) == score(name, once)
