"""How notes become chunks: headings, budgets, ids, and the awkward kinds."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from demo_notes import write_notes
from hypothesis import given
from hypothesis import strategies as st

from pytest_rageval.demo.chunking import Note, NoteChunk, TokenBudget, cut_note, read_notes
from pytest_rageval.words import index_terms


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


def test_a_sentence_beyond_the_budget_is_cut_between_words_and_a_word_beyond_it_is_left_out():
    sentence = " ".join(f"word{number}" for number in range(100))
    assert [chunk.token_count for chunk in cut(f"# A\n\n{sentence}", TokenBudget(30))] == [30, 30, 30, 10]
    monster = Note("v", "a.md", ("# A", "", "가" * 500 + " 끝이다."))
    found = cut_note(monster, TokenBudget(30))
    assert found.skipped == 1
    assert [chunk.text for chunk in found.chunks] == ["끝이다."]


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
