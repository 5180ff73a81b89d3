"""A labelling session without a screen: pools, marks, undo over all cases, saving, second opinions, drafts."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labelling import Bot, Desk, a_bare, point, settle

from pytest_rageval.cases.discovery import find_case_files
from pytest_rageval.cases.loading import load_file
from pytest_rageval.cases.marks import Marks, Place
from pytest_rageval.label.notes_search import NotesSearch
from pytest_rageval.model import Anchor, Answer, AskRequest, Chunk


def test_chunks_without_paths_are_marked_by_id(folder: Desk):
    folder.write(a_bare("one"))
    session = folder.session(Bot({"q": (Chunk("c1", text="x"), Chunk("c2", text="y"), Chunk(text="z"))}))
    session.extend(2)
    session.toggle_gold()
    assert "says no id" in session.message
    session.put_in_group(2)
    assert session.message == "groups are for places; this case's golds are ids"
    assert session.save()
    assert set(folder.cases()["one"].gold.chunk_ids or ()) == {"c1", "c2"}


def test_undo_goes_back_over_all_cases_and_redo_forward(folder: Desk):
    folder.write(a_bare("one"), a_bare("two"))
    before = folder.file.read_bytes()
    session = folder.session()
    point(session, "a").toggle_gold()
    point(session, "b").toggle_gold()
    session.go(1)
    session.set_answerable(is_answerable=False)
    session.go(-1)
    after = folder.file.read_bytes()
    assert session.undo_steps == 3
    session.undo()
    assert session.case.id == "two"
    session.undo()
    session.undo()
    assert (session.case.id, session.marks) == ("one", Marks())
    session.undo()
    assert session.message == "nothing to undo"
    session.save()
    assert folder.file.read_bytes() == before
    for _ in range(3):
        session.redo()
    session.save()
    assert folder.file.read_bytes() == after
    session.redo()
    assert session.message == "nothing to redo"


@given(st.lists(st.sampled_from(["gold", "irrelevant", "group", "down", "u", "a", "next", "back"]), max_size=12))
def test_after_any_keys_all_undone_is_the_file_as_it_was(tmp_path_factory: pytest.TempPathFactory, keys: list[str]):
    desk = Desk(tmp_path_factory.mktemp("any"))
    supports = [{"rel_path": "notes/a.md"}, {"rel_path": "notes/z.md"}]
    desk.write(a_bare("one"), a_bare("two", gold_supports=supports, required_support_groups=[[0], [1]]))
    before = desk.file.read_bytes()
    session = desk.session()
    actions = {
        "gold": session.toggle_gold, "irrelevant": session.toggle_irrelevant, "group": lambda: session.put_in_group(2),
        "down": lambda: session.move(1), "u": lambda: session.set_answerable(is_answerable=False),
        "a": lambda: session.set_answerable(is_answerable=True), "next": lambda: session.go(1),
        "back": lambda: session.go(-1),
    }  # fmt: skip
    try:
        for key in keys:
            actions[key]()
            settle(session)
        assert session.save(), session.message
        for _ in range(session.undo_steps):
            session.undo()
        assert session.save()
        assert desk.file.read_bytes() == before
    finally:
        desk.sources[0].close()


def test_a_session_resumes_at_the_first_case_without_a_label_and_t_finds_the_next(folder: Desk):
    folder.write(a_bare("one", answerable=False), a_bare("two"), a_bare("three", gold_supports=[{"rel_path": "x"}]),
                 a_bare("four"))  # fmt: skip
    session = folder.session()
    assert (session.case.id, session.labelled) == ("two", 2)
    session.next_unlabelled()
    assert session.case.id == "four"
    session.skip()
    assert session.message == "this is the last case"
    session.next_unlabelled()
    assert session.case.id == "two"
    session.next_unlabelled()
    assert session.message == "no other case is left to be labelled"


def test_a_target_that_blocks_its_loop_does_not_keep_anybody_from_quitting(
    folder: Desk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pytest_rageval.label.opening.CLOSE_PATIENCE_S", 0.1)
    is_over = threading.Event()

    class Blocking(Bot):
        async def ask(self, request: AskRequest) -> Answer:
            is_over.wait(120)
            return Answer("x", chunks=())

    folder.write(a_bare("a"))
    source = folder.source(Blocking())
    source.pool(load_file(folder.file, folder.path).cases[0])
    start = time.monotonic()
    source.close()
    assert time.monotonic() - start < 60
    is_over.set()


def test_a_file_changed_meanwhile_is_kept_and_the_labels_too(folder: Desk):
    folder.write(a_bare("one"), a_bare("two"))
    session = folder.session()
    point(session, "a").toggle_gold()
    folder.write(a_bare("theirs"))
    session.go(1)
    assert "was changed by another program meanwhile" in session.message
    assert ".labels-" in session.store.file_name
    point(session, "b").toggle_gold()
    session.save()
    assert [*folder.cases()] == ["theirs"]
    (aside,) = folder.path.glob("cases.labels-*.jsonl")
    assert aside.name in session.message
    kept = load_file(aside, folder.path)
    assert [(case.id, case.gold.supports) for case in kept.cases] == [
        ("one", (Anchor("notes/a.md"),)), ("two", (Anchor("notes/b.md"),)),
    ]  # fmt: skip
    assert find_case_files(folder.path, ("*.jsonl",)) == [folder.file]


def test_drafts_are_accepted_dropped_and_taken_back(folder: Desk):
    folder.file.write_text('{"id": "old", "question": "x"}')  # without a line end
    drafts = folder.write(*(a_bare(f"d{at}") for at in range(3)), name="cases.drafts.jsonl")
    before = drafts.read_bytes(), folder.file.read_bytes()
    session = folder.session(file=drafts)
    point(session, "a").toggle_gold()
    session.decide("accepted")
    session.decide("dropped")
    assert session.case.id == "d2"
    assert [*folder.cases()] == ["old", "d0"]
    assert folder.cases()["d0"].gold.supports == (Anchor("notes/a.md"),)
    assert [case.id for case in load_file(drafts, folder.path).cases] == ["d2"]
    assert (session.labelled, session.undo_steps) == (2, 3)
    for _ in range(3):
        session.undo()
    session.save()
    assert (drafts.read_bytes(), folder.file.read_bytes()) == before


def test_a_draft_whose_id_is_taken_is_not_accepted(folder: Desk):
    folder.write(a_bare("same", "other question"))
    session = folder.session(file=folder.write(a_bare("same"), name="cases.drafts.jsonl"))
    session.decide("accepted")
    assert "cases.jsonl has a case with this id; press e" in session.message
    session.edit_draft('{"id": "new", "question": "q"}')
    session.decide("accepted")
    assert [*folder.cases()] == ["same", "new"]


def test_a_draft_with_another_id_is_dropped_after_it_was_accepted(folder: Desk):
    session = folder.session(file=folder.write(a_bare("old"), name="cases.drafts.jsonl"))
    session.decide("accepted")
    session.edit_draft('{"id": "new", "question": "q"}')
    session.decide("dropped")
    assert session.save(), session.message
    assert not folder.file.read_text()


def test_a_mark_that_an_edited_draft_lacks_does_not_come_back(folder: Desk):
    drafts = folder.write(a_bare("old"), name="cases.drafts.jsonl")
    session = folder.session(file=drafts)
    point(session, "a").toggle_gold()
    assert session.save()
    session.edit_draft('{"id": "new", "question": "q"}')
    assert session.save(), session.message
    assert drafts.read_text() == '{"id": "new", "question": "q"}\n'


def test_a_draft_that_was_appended_before_we_were_stopped_is_not_appended_twice(folder: Desk):
    drafts = folder.write(a_bare("a"), a_bare("b"), name="cases.drafts.jsonl")
    folder.write(a_bare("a"))
    session = folder.session(file=drafts)
    session.decide("accepted")
    assert [*folder.cases()] == ["a"]
    assert [case.id for case in load_file(drafts, folder.path).cases] == ["b"]


@pytest.mark.parametrize("changed", ["cases.jsonl", "cases.drafts.jsonl"])
def test_drafts_or_cases_changed_meanwhile_are_kept_and_the_draft_too(folder: Desk, changed: str):
    folder.write(a_bare("old"))
    drafts = folder.write(a_bare("a"), a_bare("b"), name="cases.drafts.jsonl")
    session = folder.session(file=drafts)
    point(session, "a").toggle_gold()
    theirs = folder.write(a_bare("theirs"), name=changed)
    session.decide("accepted")
    assert "was changed by another program meanwhile" in session.message
    assert [case.id for case in load_file(theirs, folder.path).cases] == ["theirs"]
    (aside,) = folder.path.glob("cases.drafts.labels-*.jsonl")
    assert load_file(aside, folder.path).cases[0].gold.supports == (Anchor("notes/a.md"),)


def test_an_edited_draft_that_is_no_case_is_not_taken(folder: Desk):
    drafts = folder.write(a_bare("a"), name="cases.drafts.jsonl")
    session = folder.session(file=drafts)
    for text in ("{", '{"id": "a"}', "[]", '{"id": "a", "question": "q", "quesion": 1}'):
        session.edit_draft(text)
        assert "not taken" in session.message
    assert session.case.id == "a"
    assert find_case_files(folder.path, ("*.jsonl",)) == []


NOTE = """# Water

Water is wet, and so is this introduction.

## Boiling

Water boils at 100 degrees.

## Ice

Ice is cold.
"""


def in_notes(folder: Desk, *chunks: Chunk) -> list[Place]:
    """Label all chunks as golds, with the note known."""
    (folder.path / "notes").mkdir()
    (folder.path / "notes/water.md").write_text(NOTE, encoding="utf-8")
    folder.write({"id": "a", "question": "quokka?"})
    session = folder.session(Bot(chunks), search=NotesSearch(folder.path / "notes"))
    for row in range(len(chunks)):
        session.row = row
        session.toggle_gold()
    return list(session.marks.golds)


def test_a_gold_is_written_with_the_notes_own_heading(folder: Desk):
    (gold,) = in_notes(folder, Chunk(rel_path="water.md", heading_path="Water / BOILING", text="Water boils."))
    assert gold == Anchor("water.md", "# Water > ## Boiling")


def test_an_introduction_is_labelled_with_a_snippet_since_its_heading_covers_the_whole_note(folder: Desk):
    intro = Chunk(rel_path="water.md", heading_path="Water", text="Water is wet, and so is this introduction.")
    (gold,) = in_notes(folder, intro)
    assert gold == Anchor("water.md", "# Water", ("Water is wet, and so is this introduction.",))


def test_a_chunk_of_the_whole_note_gets_no_snippet_of_its_introduction(folder: Desk):
    (gold,) = in_notes(folder, Chunk(rel_path="water.md", heading_path="# Water", text=NOTE))
    assert gold == Anchor("water.md", "# Water")


def test_a_passage_is_one_row_however_its_headings_are_separated(folder: Desk):
    folder.write({"id": "a", "question": "quokka?"})
    text = "Water boils at 100 degrees."
    one = Bot((Chunk(rel_path="water.md", heading_path="# Water > ## Boiling", text=text),), name="one")
    two = Bot((Chunk(rel_path="water.md", heading_path="Water / Boiling", text=text),), name="two")
    assert len(folder.session(one, two).pool.candidates) == 1
