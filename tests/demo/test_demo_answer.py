"""What the demo writes: sentences of the notes, cited, or an honest nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo_notes import an_app, ask, chunks


def test_the_sentence_that_answers_comes_first_and_brings_its_neighbour(tmp_path: Path):
    note = "# Monitors\n\nThey are grey. The refresh rate is 144 Hz. One frame lasts 7 milliseconds. They are light."
    answer = ask("What is the refresh rate?", app=an_app(tmp_path, {"v/a.md": note}), min_score=0.1)
    assert answer["answer"] == "The refresh rate is 144 Hz. [1] One frame lasts 7 milliseconds. [1]"


def test_a_question_with_two_parts_takes_sentences_of_two_notes(tmp_path: Path):
    notes = {
        "v/a.md": "# Beaks\n\nThe heron has a yellow beak.",
        "v/b.md": "# Nests\n\nThe kestrel nests in towers.",
    }
    answer = ask(
        "Which beak has the heron, and where does the kestrel nest?", app=an_app(tmp_path, notes), min_score=0.1
    )
    assert answer["answer"] == "The kestrel nests in towers. [1] The heron has a yellow beak. [2]"
    assert [reference["rel_path"] for reference in answer["references"]] == ["b.md", "a.md"]


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


def test_a_year_in_the_question_is_no_matter_of_versions(tmp_path: Path):
    notes = {
        "v/a.md": "---\ndate: 2023-12-09\n---\n# Share\n\nIn 2023 the market share was 9.1 percent.",
        "v/b.md": "---\ndate: 2024-12-02\n---\n# Share\n\nIn 2024 the market share was 8.7 percent.",
    }
    answer = ask("What was the market share in 2023?", app=an_app(tmp_path, notes), min_score=0.1)
    assert answer["answer"] == "In 2023 the market share was 9.1 percent. [1]"


def test_a_year_that_no_passage_speaks_of_is_not_answered(tmp_path: Path):
    app = an_app(tmp_path, {"v/a.md": "# Share\n\nIn 2023 the market share was 9.1 percent."})
    assert ask("What was the market share in 1999?", app=app, min_score=0.1)["abstain_reason"] == (
        "insufficient_information"
    )


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


def test_a_table_is_answered_with_the_names_of_its_columns():
    answer = ask("What was the yield of session 20241016_M304_rig3_orient?")
    assert "Session: 20241016_M304_rig3_orient; Animal: M304;" in answer["answer"]


def test_references_are_among_the_retrieved_chunks_and_numbered_in_order():
    answer = ask("Which mask is the hero product of Laneige, and in which markets is it sold?", k=10)
    retrieved = {chunk["chunk_id"] for chunk in chunks(answer)}
    assert {reference["chunk_id"] for reference in answer["references"]} <= retrieved
    for place in range(1, len(answer["references"]) + 1):
        assert f"[{place}]" in answer["answer"]
    assert f"[{len(answer['references']) + 1}]" not in answer["answer"]
