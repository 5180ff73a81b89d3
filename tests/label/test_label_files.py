"""Files of a labelling session: changed meanwhile, second opinions, drafts accepted and dropped."""

from __future__ import annotations

import pytest
from labelling import Desk, a_bare, point

from pytest_rageval.cases.discovery import find_case_files
from pytest_rageval.cases.loading import load_file
from pytest_rageval.model import Anchor

# ── others at the same file ───────────────────────────────────────────────────────────────────────────────────


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


# ── drafts ────────────────────────────────────────────────────────────────────────────────────────────────────


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
