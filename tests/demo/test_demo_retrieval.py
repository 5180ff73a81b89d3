"""How the demo cuts its notes, what it finds in every language of theirs, and what it writes of it."""

from __future__ import annotations

import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from demo_notes import an_app, ask, chunks, write_notes
from hypothesis import given
from hypothesis import strategies as st

import pytest_rageval.demo
from pytest_rageval.demo.app import create_app
from pytest_rageval.demo.chunking import NoteChunk, TokenBudget, cut_note
from pytest_rageval.demo.knowledge import load_graph
from pytest_rageval.demo.note_files import Note, read_notes
from pytest_rageval.demo.retrieval import stem
from pytest_rageval.language.words import index_terms


def paths(answer: dict) -> list[str]:
    return [chunk["rel_path"] for chunk in chunks(answer)]


def test_a_korean_word_is_found_with_any_particle_on_it(tmp_path: Path):
    app = an_app(tmp_path, {"v/food/a.md": "# 장보기\n\n토요일에 시장에서 굴을 산다."})
    for question in ("시장", "시장은 언제?", "시장까지"):
        assert paths(ask(question, app=app, min_score=0.1))[:1] == ["food/a.md"]


@pytest.mark.parametrize(
    ("word", "other"), [("drifts", "drifting"), ("images", "imaging"), ("stopped", "stop"), ("studies", "study")]
)
def test_forms_of_a_word_share_a_stem(word: str, other: str):
    assert stem(word) == stem(other)


def test_ids_and_order_are_the_same_after_re_indexing_and_beside_other_notes(tmp_path: Path):
    notes = {"v/lab/a.md": "# A\n\nThe heron has four nodes.", "v/lab/b.md": "# B\n\nThe heron has wings."}
    before = chunks(ask("heron nodes", app=an_app(tmp_path / "one", notes), min_score=0))
    more = {**notes, "v/lab/0.md": "# Zero\n\nSomething else entirely."}
    after = chunks(ask("heron nodes", app=an_app(tmp_path / "two", more), min_score=0))
    assert [chunk["chunk_id"] for chunk in before] == [chunk["chunk_id"] for chunk in after]


def test_folders_are_chosen_by_name_title_and_heading(tmp_path: Path):
    notes = {
        "v/imaging/a.md": "# Plane\n\nThe heron is grey and stands in the water.",
        "v/ephys/b.md": "# Probe\n\nThe heron is grey and stands in the water.",
    }
    app = an_app(tmp_path, notes)
    for question, folder in (("grey heron in imaging", "imaging"), ("grey heron and the probe", "ephys")):
        selection = ask(question, app=app, min_score=0, folder_mode="on")["debug"]["folder_selection"]
        assert selection["folders"] == [folder]
        assert selection["fallback"] is False
        assert paths(ask(question, app=app, min_score=0, folder_mode="on"))[0].startswith(folder)


def test_a_wrong_choice_of_folder_misses_in_mode_on_and_is_made_good_by_the_fallback(tmp_path: Path):
    notes = {
        "v/imaging/a.md": "# Plane\n\nNothing about birds.",
        "v/ephys/b.md": "# Probe\n\nThe grey heron stands in the water.",
    }
    app = an_app(tmp_path, notes)
    question = "grey heron of the imaging plane"
    assert "ephys/b.md" not in paths(ask(question, app=app, min_score=0.1, folder_mode="on"))
    answer = ask(question, app=app, min_score=0.1)
    assert "ephys/b.md" in paths(answer)
    assert answer["debug"]["folder_selection"]["folders"] == ["imaging"]
    assert answer["debug"]["folder_selection"]["fallback"] is True


def test_coverage_counts_what_was_left_out_and_why(tmp_path: Path):
    write_notes(
        tmp_path,
        {
            "v/a.md": "# A\n\nOne two three.\n\n## B\n\nFour five.",
            "v/empty.md": "",
            "v/headings.md": "# A\n\n## B\n",
            "v/bytes.md": b"\xff",
            "w/monster.md": "가" * 500,
        },
    )
    coverage = ask("one", app=create_app(tmp_path))["debug"]["indexing_coverage"]
    del coverage["index_version"]
    assert coverage == {
        "docs_processed": 5,
        "docs_with_0_chunks": 4,
        "docs_with_0_chunks_reasons": {"context_limit_exceeded": 1, "empty": 1, "headings_only": 1, "not_utf8": 1},
        "docs_without_chunks": [
            {"vault": "v", "rel_path": "bytes.md", "reason": "not_utf8"},
            {"vault": "v", "rel_path": "empty.md", "reason": "empty"},
            {"vault": "v", "rel_path": "headings.md", "reason": "headings_only"},
            {"vault": "w", "rel_path": "monster.md", "reason": "context_limit_exceeded"},
        ],
        "chunks_attempted": 3,
        "chunks_embedded": 2,
        "chunks_skipped": 1,
        "chunks_skipped_reasons": {"context_limit_exceeded": 1},
        "chunk_token_stats": {"min": 2, "max": 3, "mean": 2.5, "p95": 3},
        "coverage_by_doc_type": {
            "markdown": {"processed": 5, "with_0_chunks": 4, "chunks_embedded": 2, "chunks_skipped": 1}
        },
        "chunker_version": "headings-1",
        "parameters": {"chunk_max_tokens": 200, "chunk_overlap": 0},
    }


def test_the_shipped_corpus_has_its_thirty_laboratory_notes_and_the_awkward_kinds():
    coverage = ask("drift")["debug"]["indexing_coverage"]
    assert coverage["docs_processed"] >= 60
    assert {"empty", "headings_only"} <= set(coverage["docs_with_0_chunks_reasons"])
    found = chunks(
        ask("session recording mice probe frame data", vaults=["lab"], k=1000, min_score=0, folder_mode="off")
    )
    assert len({chunk.get("doc_id") for chunk in found} - {None}) >= 20


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


def cut(text: str, budget: TokenBudget | None = None, *, rel_path: str = "a.md") -> tuple[NoteChunk, ...]:
    return cut_note(Note("v", rel_path, tuple(text.split("\n"))), budget or TokenBudget()).chunks


def test_each_section_is_a_chunk_with_all_headings_above_it():
    found = cut("Before.\n\n# Title\n\nIntro.\n\n## One\n\nText.\n\n### Deep\n\nMore.\n\n## Two\n\nEnd.")
    assert [(chunk.heading_path, chunk.text) for chunk in found] == [
        ("", "Before."),
        ("# Title", "Intro."),
        ("# Title > ## One", "Text."),
        ("# Title > ## One > ### Deep", "More."),
        ("# Title > ## Two", "End."),
    ]


def test_a_front_matter_is_no_text_and_lines_count_from_the_top_of_the_file(tmp_path: Path):
    write_notes(tmp_path, {"v/f/a.md": "---\ndoc_id: t01\ndate: 2024-03-04\n---\n# A\n\nFirst.\nSecond.\n"})
    (note,) = read_notes(tmp_path)
    (chunk,) = cut_note(note, TokenBudget()).chunks
    assert note.meta == {"doc_id": "t01", "date": "2024-03-04"}
    assert (chunk.start_line, chunk.end_line) == (7, 8)
    assert chunk.folder == "f"


def test_a_long_section_is_cut_between_sentences_within_the_budget():
    text = "# A\n\n" + " ".join(f"Sentence number {number} has six words." for number in range(40))
    found = cut(text, TokenBudget(50))
    assert len(found) == 5
    assert all(chunk.token_count <= 50 and chunk.text.endswith(".") for chunk in found)
    assert " ".join(chunk.text for chunk in found) == text.removeprefix("# A\n\n")


def test_overlap_repeats_the_last_sentences_of_the_chunk_before():
    text = "# A\n\n" + " ".join(f"Sentence number {number} has six words." for number in range(20))
    found = cut(text, TokenBudget(30, 12))
    for before, after in pairwise(found):
        assert before.text.split(". ")[-1].rstrip(".") in after.text
        assert after.token_count <= 30


def test_a_table_is_cut_between_rows_and_each_part_has_its_head():
    rows = "\n".join(f"| M{number} | {number} ml |" for number in range(30))
    found = cut(f"# A\n\n| Mouse | Water |\n| --- | --- |\n{rows}\n", TokenBudget(40))
    assert len(found) > 2
    assert all(chunk.text.startswith("| Mouse | Water |\n| --- | --- |\n| M") for chunk in found)
    assert all(chunk.token_count <= 40 for chunk in found)
    assert found[0].quotable[0] == "Mouse: M0; Water: 0 ml"


def test_a_chunk_keeps_its_id_when_text_is_added_above_it_or_in_other_notes():
    alone = cut("# A\n\n## B\n\nText.")[0]
    moved = cut("New intro.\n\n# A\n\nMore.\n\n## B\n\nText.")[-1]
    assert moved.chunk_id == alone.chunk_id
    assert moved.start_line != alone.start_line
    assert cut("# A\n\n## B\n\nText.", rel_path="b.md")[0].chunk_id != alone.chunk_id


@given(
    st.text(st.sampled_from("# \n-|>`~=_*1.a가あ\t:。!\\") | st.characters(codec="utf-8"), max_size=200),
    st.integers(16, 60),
    st.integers(0, 8),
)
def test_whatever_a_note_holds_its_chunks_fit_the_budget(text: str, most: int, overlap: int):
    for chunk in cut(text.replace("\r", "\n"), TokenBudget(most, overlap)):
        assert 0 <= chunk.token_count <= most
        assert chunk.token_count == len(index_terms(chunk.text))
        assert 1 <= chunk.start_line <= chunk.end_line <= text.count("\n") + text.count("\r") + 1
