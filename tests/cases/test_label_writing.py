"""Labels written into case files: the labelled lines change where they must, every other byte stays."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_rageval.cases.case_text import MarkedCase, case_text, edited_row, row_texts
from pytest_rageval.cases.case_writer import CaseWriter, ChangedMeanwhile
from pytest_rageval.cases.json_edit import edited_json
from pytest_rageval.cases.loading import load_file
from pytest_rageval.cases.marks import Marks, case_with_marks
from pytest_rageval.cases.note_folder import changed_notes, note_hashes
from pytest_rageval.errors import CaseError
from pytest_rageval.io.lock import take_lock
from pytest_rageval.model import Anchor, EvalCase

GO = Anchor("notes/go.md", "# Go > ## 정렬")
JS = Anchor("notes/js.md", "# JS")


def written(path: Path, line: int, marks: Marks) -> tuple[str, EvalCase]:
    """The line of a file once the marks are written, and the case that it is then."""
    loaded = load_file(path, path.parent)
    assert not loaded.problems
    case = next(case for case in loaded.cases if case.source.line == line)
    text = case_text(path.read_bytes(), path.name)
    content = text.composed({line: text.line_with(MarkedCase(case, marks, {}))})
    before, after = path.read_bytes().split(b"\n"), content.split(b"\n")
    assert [at for at, (old, new) in enumerate(zip(before, after, strict=True), 1) if old != new] in ([line], [])
    path.write_bytes(content)
    again = load_file(path, path.parent)
    assert not again.problems
    return after[line - 1].decode(), next(case for case in again.cases if case.source.line == line)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cases.jsonl"


def test_a_bare_question_gets_its_places_at_the_end_in_its_own_spacing(file: Path):
    file.write_bytes('\ufeff{"id":"a","question":"왜?"}\r\n\n  {"id": "b",  "question": "x"}'.encode())
    line, case = written(file, 1, Marks(golds=(GO,)))
    gold = '{"rel_path":"notes/go.md","heading_path":"# Go > ## 정렬"}'
    assert line == '\ufeff{"id":"a","question":"왜?","gold_supports":[' + gold + "]}\r"
    assert case.gold.supports == (GO,)
    line, _ = written(file, 3, Marks(golds=(JS,)))
    assert line.startswith('  {"id": "b",  "question": "x", "gold_supports": [')


def test_key_order_and_what_a_place_says_besides_stay(file: Path):
    kept = {"rel_path": "old.md", "date": "2024-05", "heading_path": "# Old", "snippets": ["x"]}
    record = {"gold_supports": [kept], "question": "q", "required_support_groups": [[0]], "id": "a", "tags": ["t"]}
    file.write_text(json.dumps(record) + "\n")
    marks = Marks.of(load_file(file, file.parent).cases[0]).with_gold(GO, 2)
    line, case = written(file, 1, marks)
    after = json.loads(line)
    assert [*after] == [*record]
    assert [*after["gold_supports"][0]] == [*kept]
    assert case.gold.support_groups == ((0,), (1,))


def test_marks_that_are_taken_back_give_the_line_back_byte_for_byte(file: Path):
    line = '{"id" : "a", "question":"q","gold_supports":[ {"rel_path":"x.md" } ],"answerable":true }'
    file.write_text(line)
    case = load_file(file, file.parent).cases[0]
    text = case_text(file.read_bytes(), file.name)
    assert text.line_with(MarkedCase(case, Marks.of(case), {"x.md": "0" * 16})) == line


def test_canonical_cases_are_labelled_inside_their_gold(file: Path):
    file.write_text('{"id": "a", "question": "q", "gold": {"supports": [{"rel_path": "x.md"}], "answer": "y"}}\n')
    line, case = written(file, 1, Marks(golds=(Anchor("x.md"), GO), groups=((0,), (1,)), irrelevant=(JS,)))
    assert [*json.loads(line)] == ["id", "question", "gold"]
    assert [*json.loads(line)["gold"]] == ["supports", "answer", "support_groups", "irrelevant_supports"]
    assert (case.gold.support_groups, case.gold.irrelevant_supports) == (((0,), (1,)), (JS,))


def test_the_layers_spelling_gets_ids_and_keeps_needing_the_graph(file: Path):
    gold = {"doc_chunk_ids": ["c1"], "relevance": {"c1": 2, "c9": 0}, "kg_entities": ["x"]}
    file.write_text(json.dumps({"id": "a", "question": "q", "gold": gold}) + "\n")
    line, case = written(file, 1, Marks("ids", ("c2",), irrelevant=("c3",)))
    after = json.loads(line)
    assert after["gold"]["doc_chunk_ids"] == ["c2"]
    assert after["gold"]["relevance"] == {"c9": 0}
    assert (case.gold.chunk_ids, case.gold.irrelevant_ids, case.requires_kg) == (("c2",), ("c3",), True)


def test_places_beside_layers_keep_what_an_absent_requires_kg_means(file: Path):
    file.write_text('{"id": "a", "question": "q", "gold": {"answer": "x"}}\n')
    before = load_file(file, file.parent).cases[0]
    _, case = written(file, 1, Marks(golds=(GO,)))
    assert (case.requires_kg, case.gold.supports) == (before.requires_kg, (GO,))


def test_the_ids_spelling_gets_ids(file: Path):
    file.write_text('{"id": "a", "query": "q", "relevant_ids": ["t01"], "category": "retrieval"}\n')
    line, case = written(file, 1, Marks("ids", ("t01", "t02#1"), irrelevant=("t03",)))
    assert json.loads(line)["relevant_ids"] == ["t01", "t02#1"]
    assert (case.gold.irrelevant_ids, case.gold.ids_are_prefixes) == (("t03",), True)


def test_unanswerable_empties_what_is_there_and_adds_no_key_but_its_own(file: Path):
    rule = {"gold_supports": [{"rel_path": "a.md"}, {"rel_path": "b.md"}], "recency_conflict_rule": "cite_newer"}
    file.write_text(json.dumps({"id": "a", "question": "q", "required_support_groups": [[0, 1]]} | rule) + "\n")
    marks = Marks.of(load_file(file, file.parent).cases[0]).unanswerable()
    line, case = written(file, 1, marks)
    assert json.loads(line) == {
        "id": "a", "question": "q", "required_support_groups": [], "gold_supports": [],
        "recency_conflict_rule": None, "answerable": False,
    }  # fmt: skip
    assert case.answerable is False


def test_marks_that_contradict_the_case_are_refused_in_one_line(file: Path):
    file.write_text('{"id": "a", "query": "q", "relevant_ids": [], "category": "negative"}\n')
    case = load_file(file, file.parent).cases[0]
    text = case_text(file.read_bytes(), file.name)
    with pytest.raises(CaseError, match=r"case 'a': answerable is true, but a negative case") as refusal:
        text.line_with(MarkedCase(case, Marks("ids", answerable=True), {}))
    assert len(refusal.value.problems) == 1


def test_hashes_of_the_notes_are_kept_with_the_label_and_tell_a_changed_note(file: Path):
    notes = file.parent / "notes"
    notes.mkdir()
    (notes / "go.md").write_text("# Go\n")
    file.write_text('{"id": "a", "question": "q", "metadata": {"x": 1}}\n')
    case = load_file(file, file.parent).cases[0]
    hashes = note_hashes(notes, ["notes/go.md", "gone.md"])
    text = case_text(file.read_bytes(), file.name)
    file.write_bytes(text.composed({1: text.line_with(MarkedCase(case, Marks(golds=(GO,)), hashes))}))
    labelled = load_file(file, file.parent).cases[0]
    assert labelled.metadata == {"x": 1, "note_hashes": hashes}
    assert [*changed_notes(labelled, notes)] == []
    (notes / "go.md").write_text("# Go 2\n")
    assert [*changed_notes(labelled, notes)] == ["notes/go.md"]


_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=8)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(_TEXTS, _VALUES, max_size=5), _TEXTS, _VALUES, st.sampled_from([None, (",", ":"), (" , ", " : ")])
)
def test_an_edit_sets_its_key_and_nothing_else(record: dict[str, Any], key: str, value: Any, style: Any):
    text = json.dumps(record, separators=style, ensure_ascii=False)
    edited = edited_json(text, {(key,): value})
    assert json.loads(edited) == {**record, key: value}
    inner = edited_json(text, {("gold", key): value})
    gold = record.get("gold")
    assert json.loads(inner) == {**record, "gold": {**(gold if isinstance(gold, dict) else {}), key: value}}


def test_cells_of_a_csv_row_change_and_other_rows_stay(tmp_path: Path):
    file = tmp_path / "cases.csv"
    file.write_bytes(
        b"id,question,reference,gold_supports,answerable\r\n"
        b'a,"Why, ""so""\n?",because,,\r\nb,"How?", x ,"[{""rel_path"": ""x.md""}]",true\r\n'
    )
    cases = load_file(file, tmp_path).cases
    text = case_text(file.read_bytes(), file.name)
    changed = {case.source.line: text.line_with(MarkedCase(case, Marks(golds=(GO,)), {})) for case in cases}
    content = text.composed(changed)
    assert content.startswith(b'id,question,reference,gold_supports,answerable\r\na,"Why, ""so""\n?",because,"[{""rel')
    assert b"\r\nb,How?, x ," in content
    file.write_bytes(content)
    again = load_file(file, tmp_path)
    assert (again.problems, [case.gold.supports for case in again.cases]) == ((), [(GO,), (GO,)])
    unanswerable = text.line_with(MarkedCase(cases[1], Marks.of(cases[1]).unanswerable(), {}))
    assert unanswerable == "b,How?, x ,,false\r\n"


def test_a_csv_file_without_the_column_says_which_is_lacking(tmp_path: Path):
    file = tmp_path / "cases.csv"
    file.write_text("question,reference\nWhy?,x\n")
    case = load_file(file, tmp_path).cases[0]
    text = case_text(file.read_bytes(), file.name)
    with pytest.raises(CaseError, match=r"cases\.csv: case '\w+': the header lacks the column gold_supports"):
        text.line_with(MarkedCase(case, Marks(golds=(GO,)), {}))
    assert text.line_with(MarkedCase(case, Marks.of(case), {})) == "Why?,x\n"


def test_a_row_with_other_line_separators_in_its_cells_keeps_them(tmp_path: Path):
    file = tmp_path / "cases.csv"
    file.write_bytes("id,question,gold_supports\na,Why\u2028so?,\nb,How?,\n".encode())
    case = load_file(file, tmp_path).cases[0]
    text = case_text(file.read_bytes(), file.name)
    content = text.composed({case.source.line: text.line_with(MarkedCase(case, Marks(golds=(GO,)), {}))})
    assert content.decode().startswith('id,question,gold_supports\na,Why\u2028so?,"[{""rel_path"": ""notes/go.md""')
    assert content.endswith(b"\nb,How?,\n")


@example([["", "", "\n"]])
@given(st.lists(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\0")), min_size=3, max_size=3)))
def test_rows_are_cut_where_the_csv_module_cuts_them(rows: list[list[str]]):
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    texts = [text for _, text in row_texts(stream.getvalue()) if text]
    assert [next(csv.reader(io.StringIO(text, newline=""))) for text in texts] == rows
    for text, row in zip(texts, rows, strict=True):
        edited = edited_row(text, ["a", "b", "c"], {"b": 'new, "cell"\n'})
        assert next(csv.reader(io.StringIO(edited, newline=""))) == [row[0], 'new, "cell"\n', row[2]]


def test_the_first_write_keeps_the_old_file_and_its_permissions(file: Path):
    file.write_bytes(b"old")
    file.chmod(0o640)
    writer = CaseWriter(file)
    writer.write(b"new")
    writer.write(b"newer")
    assert (file.read_bytes(), writer.backup.read_bytes()) == (b"newer", b"old")
    assert file.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in file.parent.iterdir()) == ["cases.jsonl", "cases.jsonl.bak"]


def test_a_link_is_followed_and_stays_a_link(file: Path):
    real = file.with_name("real.jsonl")
    real.write_bytes(b"old")
    file.symlink_to(real)
    CaseWriter(file).write(b"new")
    assert file.is_symlink()
    assert real.read_bytes() == b"new"


def test_a_file_changed_meanwhile_is_left_as_it_is(file: Path):
    file.write_bytes(b"old")
    writer = CaseWriter(file)
    file.write_bytes(b"theirs")
    with pytest.raises(ChangedMeanwhile, match="changed by another program meanwhile"):
        writer.write(b"ours")
    assert file.read_bytes() == b"theirs"


def test_a_folder_that_stays_locked_is_said(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pytest_rageval.cases.case_writer.LOCK_PATIENCE_S", 0.05)
    file.write_bytes(b"old")
    descriptor = take_lock(file.parent)
    try:
        with pytest.raises(CaseError, match=r"keeps .* locked"):
            CaseWriter(file).write(b"new")
    finally:
        os.close(descriptor)
    assert file.read_bytes() == b"old"


def test_a_file_that_may_not_be_written_is_said_at_once(file: Path, monkeypatch: pytest.MonkeyPatch):
    file.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != file)
    with pytest.raises(CaseError, match="cannot be written"):
        CaseWriter(file)


def test_groups_follow_their_golds():
    marks = Marks().with_gold(GO).with_gold(JS)
    assert (marks.groups, marks.group_of(1)) == ((), 1)
    marks = marks.in_group(1, 2)
    assert marks.groups == ((0,), (1,))
    assert marks.with_gold(Anchor("c.md"), 2).groups == ((0,), (1, 2))
    assert marks.without_golds([0]).groups == ((0,),)
    assert marks.in_group(1, 1).groups == ((0, 1),)
    assert Marks(golds=(GO,)).in_group(0, 1).groups == ((0,),)


def test_a_place_is_gold_or_irrelevant_never_both():
    marks = Marks().with_irrelevant(GO).with_gold(GO)
    assert (marks.golds, marks.irrelevant) == ((GO,), ())
    marks = marks.with_irrelevant(GO)
    assert (marks.golds, marks.irrelevant) == ((), (GO,))
    assert Marks(answerable=False).with_gold(GO).answerable


def test_marks_are_read_as_they_are_written():
    case = EvalCase("a", "q")
    for marks in (Marks(golds=(GO, JS), groups=((0,), (1,)), irrelevant=(Anchor("x"),)), Marks("ids", ("c",)), Marks()):
        assert Marks.of(case_with_marks(case, marks)) == marks
