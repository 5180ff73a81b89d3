"""Metrics of abstention, scope, queries and graphs."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from typing import Any

import pytest
from observations import REGISTRY, a_case, answered, assert_score, judged, score, scores, traced

from pytest_rageval.matching.places import observe
from pytest_rageval.metrics.abstention import ANSWERABLE, NO_ANSWER, UNANSWERABLE, AbstentionVerdict, abstention
from pytest_rageval.metrics.citations import NO_PLACES, NO_SELECTION, NOT_SELECTING, UNKNOWN_MODE
from pytest_rageval.metrics.graph import NO_RESULTS, UNLABELLED
from pytest_rageval.metrics.query import NO_TRACE
from pytest_rageval.model import Anchor, Answer, Edge, Entity, FolderSelection, Gold, Observation, Score, Trace


def classified(obs, value: float):
    found = judged(obs, "abstention", value)
    judgement = replace(found.judgements["abstention"], scores={"abstained": value})
    return replace(found, judgements={"abstention": judgement})


PROJECT = replace(answered("A colleague will call you back."), refusals=("will call you back",))
BY_PHRASING = classified(answered("Paris"), 1)
BY_PHRASING = replace(
    BY_PHRASING,
    judgements={"abstention": replace(BY_PHRASING.judgements["abstention"], extra={"decided_by": "phrasing"})},
)
VERDICTS = {
    "the system's own word comes before a judge": (classified(answered("", abstained=False), 1), False, "response"),
    "the system says that it abstained": (answered("Paris", abstained=True), True, "response"),
    "a blank answer is an abstention": (classified(answered("  \n"), 0), True, "empty answer"),
    "then the judge decides": (classified(answered("I cannot say."), 1), True, "judge"),
    "the judge sees an answer": (classified(answered("Paris"), 0), False, "judge"),
    "the judge went by phrasing": (BY_PHRASING, True, "phrasing"),
    "without a judge phrasing decides": (answered("The notes do not mention it."), True, "phrasing"),
    "an answer without a judge": (answered("Paris"), False, "phrasing"),
    "a phrase that is only the project's": (replace(PROJECT, refusals=()), False, "phrasing"),
    "phrases of the project count": (PROJECT, True, "phrasing"),
}


@pytest.mark.parametrize(("obs", "abstained", "decided_by"), VERDICTS.values(), ids=VERDICTS)
def test_who_says_that_the_system_abstained(obs, abstained, decided_by):
    assert abstention(obs) == AbstentionVerdict(abstained, decided_by)


REFUSED, MADE_UP = answered("", answerable=False), answered("Paris", answerable=False)
SCORES = {
    "an unanswerable case wants an abstention": ("abstention_accuracy", REFUSED, 1),
    "an answer to an unanswerable case": ("abstention_accuracy", MADE_UP, 0),
    "an abstention is no hallucination": ("hallucinated", REFUSED, 0),
    "a made-up answer is one": ("hallucinated", MADE_UP, 1),
    "over-abstention is not asked of unanswerable cases": ("over_abstention", REFUSED, UNANSWERABLE),
    "an answerable case wants an answer": ("over_abstention", answered(""), 1),
    "an answer is no over-abstention": ("over_abstention", answered("Paris"), 0),
    "accuracy is not asked of answerable cases": ("abstention_accuracy", answered("Paris"), ANSWERABLE),
    "hallucination is not asked of answerable cases": ("hallucinated", answered("Paris"), ANSWERABLE),
    "a record without an answer": ("abstention_accuracy", answered(None, answerable=False), NO_ANSWER),
    "a declared abstention without an answer": (
        "abstention_accuracy", answered(None, answerable=False, abstained=True), 1),
    "over-abstention of a record without an answer": ("over_abstention", answered(None), NO_ANSWER),
}  # fmt: skip


@scores(SCORES)
def test_what_follows_from_it(name, obs, expected):
    assert_score(name, obs, expected)


def test_the_score_says_who_decided():
    assert REGISTRY.measure("abstention_accuracy", 5)(REFUSED) == Score(1.0, {"decided_by": "empty answer"})


def searched(
    *folders: str, gold=("lab/imaging/drift.md",), sent: str | None = "on", reported=None, fallback=None
) -> Observation:
    extra = {} if reported is None else {"mode": reported}
    selection = FolderSelection(folders, fallback=fallback, extra=extra)
    params = {} if sent is None else {"folder_mode": sent}
    case = a_case(gold=Gold(supports=tuple(map(Anchor, gold))))
    return observe(case, Answer("Yes.", folder_selection=selection), params=params)


@pytest.mark.parametrize("folder", ["lab/imaging", "lab", "lab/imaging/", "/lab", "./lab/imaging", "lab\\imaging"])
def test_a_folder_includes_all_that_is_below_it(folder):
    assert score("scope_miss", searched(folder)) == 0


@pytest.mark.parametrize("folder", ["lab/im", "imaging", "labs", "lab/imaging/raw", "Lab"])
def test_other_folders_do_not(folder):
    assert score("scope_miss", searched(folder)) == 1


BY_IDS = observe(
    a_case(gold=Gold(supports=(Anchor("lab/a.md"),), chunk_ids=("c1",))),
    Answer("Yes.", folder_selection=FolderSelection(("desk",))),
    gold_by="ids",
    params={"folder_mode": "on"},
)
UNREPORTED = observe(a_case(gold=Gold(supports=(Anchor("a.md"),))), Answer("Yes."), params={"folder_mode": "on"})
MISSES = {
    **{f"the root {root!r} includes everything": (searched("elsewhere", root), 0) for root in ("", "/", ".", "./")},
    "an empty selection means all folders": (searched(), 0),
    "one gold within the selection is enough": (searched("a", "b", gold=("c/x.md", "b/y.md")), 0),
    "no gold within the selection is a miss": (searched("a", "b", gold=("c/x.md", "d/y.md")), 1),
    "letters are compared whatever their composition": (
        searched(unicodedata.normalize("NFD", "노트"), gold=("노트/시장.md",)), 0),
    "a later fallback undoes no miss": (searched("elsewhere", sent="on_with_fallback", fallback=True), 1),
    "the mode that was sent counts first": (searched("elsewhere", sent="on", reported="off"), 1),
    "a mode off that was sent counts first": (searched("elsewhere", sent="off", reported="on"), NOT_SELECTING),
    "else the mode that is reported": (searched("elsewhere", sent=None, reported="on_with_fallback"), 1),
    **{f"the mode {mode!r} selects nothing": (searched("elsewhere", sent=None, reported=mode), NOT_SELECTING)
       for mode in ("off", "auto", 1, ["on"])},
    "without a mode there is no score": (searched("elsewhere", sent=None), UNKNOWN_MODE),
    "without a place there is no score": (searched("elsewhere", gold=()), NO_PLACES),
    "without a selection there is no score": (UNREPORTED, NO_SELECTION),
    "places count where retrieval is measured by ids": (BY_IDS, 1),
}  # fmt: skip


@scores({sentence: ("scope_miss", *row) for sentence, row in MISSES.items()})
def test_what_is_a_miss(name, obs, expected):
    assert_score(name, obs, expected)


L1 = [
    ("entity_link_f1", "kg_entities", "entities", Entity),
    ("concept_map_f1", "concepts", "concepts", str),
    ("constraint_extraction_f1", "constraints", "constraints", str),
]


def a_trace(key: str, made: Any, found: Any) -> Trace:
    parts: dict[str, Any] = {key: None if found is None else tuple(map(made, found))}
    return Trace(**parts)


def edges(found: str | None, gold: str | None) -> Observation:
    """Edges found and expected, separated by commas."""
    parsed = [None if text is None else tuple(map(Edge.parse, filter(None, text.split(",")))) for text in (found, gold)]
    return traced(Trace(kg_edges=parsed[0]), kg_edges=parsed[1])


GRAPH = traced(Trace(kg_entities=("x", "y", "B", "a")), kg_entities=("a", "b"))
L1_SCORES = (
    ("a set F1", ("a", "b", "c", "c"), ("b", "c", "d", "e", "f"), 0.5),
    ("labels without case, width and margin", (" ＬＡＮＥＩＧＥ ", "설화수"), ("laneige", "설화수"), 1),
    ("nothing is expected and nothing found", (), (), 1),
    ("nothing is expected and something found", ("a",), (), 0),
    ("something is expected and nothing found", (), ("a",), 0),
    ("no such part of the trace", None, ("a",), NO_TRACE),
)
GRAPH_SCORES = {
    **{f"{sentence}: {name}": (name, traced(a_trace(key, made, found), **{gold: wanted}), value)
       for name, gold, key, made in L1 for sentence, found, wanted, value in L1_SCORES},
    **{f"no trace: {name}": (name, traced(None, **{gold: ()}), NO_TRACE) for name, gold, _, _ in L1},
    **{f"no gold: {name}": (name, traced(Trace()), f"no {key} are labelled") for name, _, key, _ in L1},
    **{f"hits at {k}": (f"hits@{k}", GRAPH, value) for k, value in ((1, 0), (2, 0), (3, 1))},
    **{f"entities at {k}": (f"kg_entity_recall@{k}", GRAPH, value) for k, value in ((2, 0), (3, 0.5), (4, 1))},
    "graph results that are empty": ("hits", traced(Trace(kg_entities=()), kg_entities=("a",)), 0),
    "graph results that are not reported": ("hits", traced(Trace(), kg_entities=("a",)), NO_RESULTS),
    "no entity is expected": ("kg_entity_recall", traced(Trace(kg_entities=("a",)), kg_entities=()), UNLABELLED),
    "an edge is right if all its parts are": (
        "kg_edge_f1", edges("Laneige|hasproduct|b08xyz,laneige|soldIn|us",
                            "laneige -hasProduct-> B08XYZ,laneige|soldIn|kr"), 0.5),
    "no edge is expected and none found": ("kg_edge_f1", edges("", ""), 1),
    "no edge is expected and one found": ("kg_edge_f1", edges("a|b|c", ""), 0),
    "edges that are not reported": ("kg_edge_f1", edges(None, ""), NO_RESULTS),
    "edges that are not labelled": ("kg_edge_f1", edges("", None), "no graph edges are labelled"),
}  # fmt: skip


@scores(GRAPH_SCORES)
def test_the_score_of_a_trace(name, obs, expected):
    assert_score(name, obs, expected)
