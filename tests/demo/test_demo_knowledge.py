"""What the demo understands of a question, and what its graph holds about it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest_rageval.demo
from pytest_rageval.demo.knowledge import Graph, load_graph

SHIPPED = Path(pytest_rageval.demo.__file__).parent / "knowledge" / "graph.toml"


def a_graph() -> Graph:
    def entity(name: str, kind: str, *names: str) -> dict[str, Any]:
        return {"id": name, "type": kind, "names": list(names)}

    def edge(written: str) -> dict[str, str]:
        return dict(zip(("subject", "predicate", "object"), written.split(), strict=True))

    return Graph(
        {
            "entity": [
                entity("moru", "Brand", "Moru", "모루"),
                entity("onda", "Brand", "Onda"),
                entity("stick", "Product", "oil stick", "stick"),
                entity("pad", "Product", "pad"),
                entity("yuja", "Ingredient", "yuja"),
                entity("japan", "Market", "Japan", "일본"),
            ],
            "edge": [
                edge("moru hasProduct pad"),
                edge("onda hasProduct stick"),
                edge("pad containsIngredient yuja"),
                edge("stick soldIn japan"),
            ],
            "concept": [{"id": "formula", "terms": ["ingredient", "ingredients", "성분"]}],
            "constraint": [{"id": "only_2024", "terms": ["in 2024", "2024년"]}],
            "predicate": [
                {"id": "hasProduct", "terms": ["products", "제품"], "domain": "Brand", "range": "Product"},
                {"id": "containsIngredient", "terms": ["ingredients"], "domain": "Product", "range": "Ingredient"},
                {"id": "soldIn", "terms": ["sold in"], "domain": "Product", "range": "Market"},
            ],
        }
    )


def linked(question: str) -> list[str]:
    return [entity["id"] for entity in a_graph().trace(question)["entities"]]


def edges(question: str, graph: Graph | None = None) -> list[str]:
    return [" ".join(edge.values()) for edge in (graph or a_graph()).trace(question)["kg_edges"]]


def test_entities_are_linked_in_the_order_of_the_question_whatever_their_case():
    assert linked("Does ONDA or moru have a pad?") == ["onda", "moru", "pad"]


def test_a_korean_name_is_linked_with_its_particle_and_not_as_part_of_another_word():
    assert linked("모루의 제품") == ["moru"]
    assert linked("모루는 일본에서 팔리나?") == ["moru", "japan"]
    assert linked("모루히네와 사모루") == []


def test_a_name_inside_a_word_or_inside_a_longer_name_is_not_linked():
    assert linked("padlock and sticky") == []
    assert [entity["text"] for entity in a_graph().trace("the oil stick")["entities"]] == ["oil stick"]


def test_concepts_and_constraints_come_from_their_terms():
    found = a_graph().trace("Which ingredients were used in 2024?")
    assert (found["concepts"], found["constraints"]) == (["formula"], ["only_2024"])
    assert a_graph().trace("2024년에 쓴 성분표")["concepts"] == ["formula"]


def test_the_asked_predicate_gives_the_edge_and_its_answer_ranks_before_the_entity_of_the_question():
    assert edges("Which products has Moru?") == ["moru hasProduct pad"]
    assert a_graph().trace("Which products has Moru?")["kg_entities"] == ["pad", "moru"]


def test_a_predicate_that_does_not_fit_the_entity_is_followed_over_one_step():
    found = edges("Which ingredients are in what Moru makes?")
    assert found == ["moru hasProduct pad", "pad containsIngredient yuja"]


def test_between_two_linked_entities_the_edge_that_joins_them_is_the_answer():
    assert edges("Is the pad a product of Moru?") == ["moru hasProduct pad"]


def test_an_inference_names_the_edges_that_it_rests_on():
    trace = a_graph().trace("Tell me about Onda")
    assert trace["inferences"] == [
        {
            "subject": "onda",
            "predicate": "presentIn",
            "object": "japan",
            "because": [
                {"subject": "onda", "predicate": "hasProduct", "object": "stick"},
                {"subject": "stick", "predicate": "soldIn", "object": "japan"},
            ],
        }
    ]
    assert trace["entity_types"] == {"stick": "Product", "onda": "Brand", "japan": "Market"}


def test_a_question_about_nothing_in_the_graph_leaves_the_trace_empty():
    trace = a_graph().trace("What is the frame rate?")
    assert not any(trace.values())


def test_the_shipped_graph_declares_all_that_its_edges_name():
    tables = tomllib.loads(SHIPPED.read_text(encoding="utf-8"))
    entities = {entity["id"]: entity["type"] for entity in tables["entity"]}
    predicates = {row["id"]: (row["domain"], row["range"]) for row in tables["predicate"]}
    for row in tables["edge"]:
        ends = (entities[row["subject"]], entities[row["object"]])
        assert ends == predicates[row["predicate"]], row
    hero = edges("What is the hero product of Laneige?", load_graph(SHIPPED))
    assert hero == ["laneige hasHeroProduct B08XYZ"]
