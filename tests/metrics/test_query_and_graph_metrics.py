"""L1 and L3: what the system linked, mapped, applied and took from its graph."""

from __future__ import annotations

import pytest
from observations import score, traced

from pytest_rageval.metrics.graph import NO_RESULTS, UNLABELLED
from pytest_rageval.metrics.query import NO_TRACE
from pytest_rageval.model import Edge, Entity, Trace

L1 = [
    ("entity_link_f1", "kg_entities", lambda names: Trace(entities=tuple(map(Entity, names)))),
    ("concept_map_f1", "concepts", lambda names: Trace(concepts=names)),
    ("constraint_extraction_f1", "constraints", lambda names: Trace(constraints=names)),
]


@pytest.mark.parametrize(("name", "gold", "trace"), L1)
def test_query_understanding_is_a_set_f1(name, gold, trace):
    assert score(name, traced(trace(("a", "b", "c", "c")), **{gold: ("b", "c", "d", "e", "f")})) == 0.5


@pytest.mark.parametrize(("name", "gold", "trace"), L1)
def test_labels_are_compared_without_case_width_and_margin(name, gold, trace):
    assert score(name, traced(trace((" ＬＡＮＥＩＧＥ ", "설화수")), **{gold: ("laneige", "설화수")})) == 1


@pytest.mark.parametrize(("name", "gold", "trace"), L1)
def test_where_nothing_is_expected_nothing_should_be_found(name, gold, trace):
    assert score(name, traced(trace(()), **{gold: ()})) == 1
    assert score(name, traced(trace(("a",)), **{gold: ()})) == 0
    assert score(name, traced(trace(()), **{gold: ("a",)})) == 0


@pytest.mark.parametrize(("name", "gold", "trace"), L1)
def test_absent_gold_and_absent_trace_have_no_score(name, gold, trace):
    assert str(score(name, traced(trace(("a",))))).endswith("labelled")
    assert score(name, traced(Trace(), **{gold: ("a",)})) == NO_TRACE.reason
    assert score(name, traced(None, **{gold: ()})) == NO_TRACE.reason


def test_hits_asks_for_one_expected_entity_in_the_top_k():
    obs = traced(Trace(kg_entities=("x", "y", "B", "a")), kg_entities=("a", "b"))
    assert [score(f"hits@{k}", obs) for k in (1, 2, 3)] == [0, 0, 1]
    assert [score(f"kg_entity_recall@{k}", obs) for k in (2, 3, 4)] == [0, 0.5, 1]


def test_graph_results_that_are_empty_and_not_reported_differ():
    assert score("hits", traced(Trace(kg_entities=()), kg_entities=("a",))) == 0
    assert score("hits", traced(Trace(), kg_entities=("a",))) == NO_RESULTS.reason
    assert score("kg_entity_recall", traced(Trace(kg_entities=("a",)), kg_entities=())) == UNLABELLED.reason


def test_an_edge_is_right_if_all_its_parts_are():
    gold = (Edge.parse("laneige -hasProduct-> B08XYZ"), Edge.parse("laneige|soldIn|kr"))
    found = (Edge.parse("Laneige|hasproduct|b08xyz"), Edge.parse("laneige|soldIn|us"))
    assert score("kg_edge_f1", traced(Trace(kg_edges=found), kg_edges=gold)) == 0.5


def test_where_no_edge_is_expected_none_should_be_found():
    assert score("kg_edge_f1", traced(Trace(kg_edges=()), kg_edges=())) == 1
    assert score("kg_edge_f1", traced(Trace(kg_edges=(Edge("a", "b", "c"),)), kg_edges=())) == 0
    assert score("kg_edge_f1", traced(Trace(), kg_edges=())) == NO_RESULTS.reason
    assert score("kg_edge_f1", traced(Trace(kg_edges=()))) == "no graph edges are labelled"
