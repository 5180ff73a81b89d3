"""What the demo writes: sentences of the notes, cited, or an honest nothing; and what its graph says beside it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from demo_notes import an_app, ask, chunks

import pytest_rageval.demo
from pytest_rageval.demo.knowledge import load_graph


def test_the_sentence_that_answers_comes_first_and_brings_its_neighbour(tmp_path: Path):
    note = "# Monitors\n\nThey are grey. The refresh rate is 144 Hz. One frame lasts 7 milliseconds. They are light."
    answer = ask("What is the refresh rate?", app=an_app(tmp_path, {"v/a.md": note}), min_score=0.1)
    assert answer["answer"] == "The refresh rate is 144 Hz. [1] One frame lasts 7 milliseconds. [1]"


def test_of_two_notes_that_disagree_the_newer_comes_first_and_the_older_is_named(tmp_path: Path):
    notes = {
        "v/a.md": "---\ndate: 2023-01-09\n---\n# Water\n\nEach mouse gets 1.0 ml of water per day.",
        "v/b.md": "---\ndate: 2024-09-02\n---\n# Water\n\nEach mouse gets 1.2 ml of water per day.",
    }
    answer = ask("How much water does each mouse get?", app=an_app(tmp_path, notes), min_score=0.1)
    assert answer["answer"] == (
        "Each mouse gets 1.2 ml of water per day. [1]"
        " An older note (2023-01-09, a.md) reads differently: Each mouse gets 1.0 ml of water per day. [2]"
    )
    assert [reference["date"] for reference in answer["references"]] == ["2024-09-02", "2023-01-09"]


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("What is it?", "ambiguous_question"),
        ("", "ambiguous_question"),
        ("???", "ambiguous_question"),
        ("Flibber wug quandaxle", "no_relevant_context"),
        ("Has the zebra crossing near Wimbledon tennis courts a water supply?", "insufficient_information"),
    ],
)
def test_an_abstention_says_why(tmp_path: Path, question: str, reason: str):
    app = an_app(tmp_path, {"v/a.md": "# Water\n\nEach mouse gets water."})
    answer = ask(question, app=app, min_score=0.1)
    assert answer["abstain_reason"] == reason
    assert answer["abstained"] is True
    assert answer["references"] == []


def test_references_are_among_the_retrieved_chunks_and_numbered_in_order():
    answer = ask("Which mask is the hero product of Laneige, and in which markets is it sold?", k=10)
    retrieved = {chunk["chunk_id"] for chunk in chunks(answer)}
    assert {reference["chunk_id"] for reference in answer["references"]} <= retrieved
    for place in range(1, len(answer["references"]) + 1):
        assert f"[{place}]" in answer["answer"]
    assert f"[{len(answer['references']) + 1}]" not in answer["answer"]


# ── the graph ─────────────────────────────────────────────────────────────────────────────────────────────────

GRAPH = Path(pytest_rageval.demo.__file__).parent / "knowledge" / "graph.toml"


@pytest.mark.parametrize(
    ("question", "linked", "edges"),
    [
        ("Does ONDA or moru sell a toner?", "onda moru B06GTF", None),
        ("모루는 일본에서 팔리나?", "moru japan", None),
        ("모루히네와 사모루, a tonerless padlock", "", []),
        ("Which products has Moru?", "moru", ["moru hasProduct D20YBA", "moru hasProduct D20MCP"]),
        ("What is the hero product of Laneige?", "laneige", ["laneige hasHeroProduct B08XYZ"]),
    ],
)
def test_entities_are_linked_by_whole_names_and_the_asked_predicate_gives_the_edges(
    question: str, linked: str, edges: list[str] | None
):
    trace = load_graph(GRAPH).trace(question)
    assert [entity["id"] for entity in trace["entities"]] == linked.split()
    assert edges is None or [" ".join(edge.values()) for edge in trace["kg_edges"]] == edges


def test_an_inference_names_the_edges_that_it_rests_on():
    inference = load_graph(GRAPH).trace("Tell me about Onda")["inferences"][0]
    because = [" ".join(edge.values()) for edge in inference.pop("because")]
    assert inference == {"subject": "onda", "predicate": "presentIn", "object": "japan"}
    assert because == ["onda hasProduct E33COS", "E33COS soldIn japan"]


def test_the_graph_declares_all_that_its_edges_name():
    tables = tomllib.loads(GRAPH.read_text(encoding="utf-8"))
    entities = {entity["id"]: entity["type"] for entity in tables["entity"]}
    predicates = {row["id"]: (row["domain"], row["range"]) for row in tables["predicate"]}
    for row in tables["edge"]:
        assert (entities[row["subject"]], entities[row["object"]]) == predicates[row["predicate"]], row
