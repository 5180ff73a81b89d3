"""L1 and L3: what the system linked, mapped, applied and took from its graph."""

from __future__ import annotations

from typing import Any

from observations import assert_score, scores, traced

from pytest_rageval.metrics.graph import NO_RESULTS, UNLABELLED
from pytest_rageval.metrics.query import NO_TRACE
from pytest_rageval.model import Edge, Entity, Observation, Trace

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
SCORES = {
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


@scores(SCORES)
def test_the_score_of_a_trace(name, obs, expected):
    assert_score(name, obs, expected)
