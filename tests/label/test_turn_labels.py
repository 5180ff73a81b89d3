"""Turns of conversations labelled like cases: into their turn of the line, and not a byte beside it."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from label_desk import BOT
from labelling import Bot, Desk, Labeller, point, settle, write_cases
from processes import Terminal
from project import Project
from web_app import WebApp, served

from pytest_rageval.cases.case_text import MarkedCase, case_text
from pytest_rageval.cases.json_edit import edited_json
from pytest_rageval.cases.loading import load_file
from pytest_rageval.cases.marks import Marks
from pytest_rageval.cases.note_folder import NOTE_HASHES
from pytest_rageval.label.label_lines import LabelLines
from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.label.marks_view import earlier_lines
from pytest_rageval.label.notes_search import NotesSearch
from pytest_rageval.model import Anchor, Chunk, EvalCase

LINE = (
    '{"id": "returns",  "metadata": {"owner": "ann\\u0061"}, "turns": [\t'
    '{"question":"What does a return cost?", "gold": {"answer": "4 euros"}, "weight_": 1.50e1},'
    ' {"question": "And from Jeju?",  "rewrite": "What does a return from Jeju cost?" } , '
    '{"question": "Thanks!"}] , "category": "policy"}'
)
LINE = LINE.replace(', "weight_": 1.50e1', "")
MESSAGES = (
    '{"id": "chat", "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Price?"}, '
    '{"role": "assistant", "content": "4 euros"},{"role":"user","content":"And from Jeju?"}]}'
)
GOLD = ', "gold_supports": [{"rel_path": "notes/b.md", "heading_path": ""}]'


def a_file(folder: Path, *lines: str) -> Path:
    file = folder / "cases.jsonl"
    file.write_bytes("\n".join(lines).encode() + b"\n")
    return file


def marked(session: LabelSession, case_id: str, note: str) -> None:
    session.open_case(case_id)
    point(session, note)
    session.toggle_gold()
    assert session.save(), session.message
    assert session.message == ""


def test_the_gold_of_a_turn_is_written_into_its_turn_and_no_other_byte_changes(folder: Desk):
    a_file(folder.path, '{"id":"x","question":"y"}', LINE, MESSAGES)
    session = folder.session()
    assert [case.id for case in session.cases] == ["x", "returns[1]", "returns[2]", "returns[3]", "chat[1]", "chat[2]"]
    marked(session, "returns[2]", "b")
    lines = folder.file.read_text().split("\n")
    assert lines[1] == LINE.replace('Jeju cost?" }', f'Jeju cost?"{GOLD} }}')
    assert (lines[0], lines[2]) == ('{"id":"x","question":"y"}', MESSAGES)
    cases = folder.cases()
    assert cases["returns[2]"].gold.supports == (Anchor("notes/b.md"),)
    assert not cases["returns[1]"].gold.supports


def test_several_turns_of_a_line_keep_their_golds_and_undo_gives_every_byte_back(folder: Desk):
    file = a_file(folder.path, LINE)
    before = file.read_bytes()
    session = folder.session()
    marked(session, "returns[2]", "b")
    marked(session, "returns[1]", "a")
    marked(session, "returns[3]", "c")
    golds = {case_id: case.gold.supports for case_id, case in folder.cases().items()}
    assert golds == {f"returns[{turn}]": (Anchor(f"notes/{name}.md"),) for turn, name in enumerate("abc", 1)}
    for _ in range(3):
        session.undo()
    session.save()
    assert file.read_bytes() == before


def test_a_turn_of_messages_has_its_gold_beside_its_message(folder: Desk):
    a_file(folder.path, MESSAGES)
    session = folder.session()
    marked(session, "chat[2]", "b")
    gold = ',"gold_supports": [{"rel_path": "notes/b.md", "heading_path": ""}]'
    assert folder.file.read_text().strip() == MESSAGES.replace('Jeju?"}', f'Jeju?"{gold.replace(",", ", ", 1)}}}')
    assert folder.cases()["chat[2]"].gold.supports == (Anchor("notes/b.md"),)
    assert folder.cases()["chat[1]"].gold.answers == ("4 euros",)


def test_what_the_conversation_says_for_its_turns_stays_true_of_a_labelled_turn(folder: Desk):
    """The hashes of notes go into the turn's metadata, which then stand in place of the conversation's."""
    notes = folder.path / "notes"
    notes.mkdir()
    (notes / "b.md").write_text("# B\n")
    a_file(folder.path, LINE)
    session = folder.session(search=NotesSearch(notes))
    marked(session, "returns[2]", "b")
    metadata = folder.cases()["returns[2]"].metadata
    assert metadata["owner"] == "anna"
    assert list(metadata[NOTE_HASHES]) == ["notes/b.md"]
    assert folder.cases()["returns[1]"].metadata == {"owner": "anna"}


def test_an_unanswerable_turn_overrides_its_conversation(folder: Desk):
    a_file(folder.path, '{"id": "c", "answerable": false, "turns": [{"question": "a"}, {"question": "b"}]}')
    session = folder.session()
    session.open_case("c[2]")
    settle(session).set_answerable()
    session.save()
    assert [case.answerable for case in folder.cases().values()] == [False, True]


def test_the_ids_of_a_turn_are_labelled_in_its_own_format(folder: Desk):
    turns = [{"question": "a", "relevant_ids": ["c9"]}, {"question": "b"}]
    write_cases(folder.file, {"id": "c", "turns": turns})
    session = folder.session(Bot((Chunk("c1", text="x"),)))
    session.open_case("c[1]")
    settle(session).toggle_gold()
    assert session.save(), session.message
    assert json.loads(folder.file.read_text())["turns"][0]["relevant_ids"] == ["c9", "c1"]


def test_turns_in_a_csv_are_labelled_in_their_cell(folder: Desk):
    file = folder.path / "cases.csv"
    file.write_bytes(
        b"id,category,turns\r\n"
        b'one,"a ""b""","[{""question"": ""q""},  {""question"": ""And?""}]"\r\n'
        b'two,,"[{""question"": ""z""}]"\r\n'
    )
    before = file.read_bytes()
    cases = load_file(file, folder.path).cases
    text = case_text(before, file.name)
    line = text.line_with(MarkedCase(cases[1], Marks(golds=(Anchor("b.md"),)), {}))
    file.write_bytes(text.composed({cases[1].source.line: line}))
    added = b', ""gold_supports"": [{""rel_path"": ""b.md"", ""heading_path"": """"}]'
    assert file.read_bytes() == before.replace(b'""And?""', b'""And?""' + added)
    assert load_file(file, folder.path).cases[1].gold.supports == (Anchor("b.md"),)


def test_a_turn_is_asked_after_the_references_and_searched_for_by_its_rewrite(folder: Desk):
    a_file(folder.path, LINE)
    bot = Bot()
    session = folder.session(bot)
    session.open_case("returns[2]")
    settle(session)
    request = next(request for request in bot.requests if request.question == "And from Jeju?")
    assert [tuple(turn) for turn in request.history or ()] == [
        ("user", "What does a return cost?"),
        ("assistant", "4 euros"),
    ]
    assert request.conversation_id


def test_earlier_turns_stand_above_the_question_and_a_blind_labeller_sees_no_reference(folder: Desk):
    a_file(folder.path, LINE)
    session = folder.session()
    session.open_case("returns[2]")
    assert earlier_lines(session) == ["user: What does a return cost?", "assistant: 4 euros"]
    blind = folder.session(blind="anna")
    blind.open_case("returns[2]")
    assert earlier_lines(blind) == ["user: What does a return cost?"]


def test_the_plain_face_folds_what_was_said_before(folder: Desk):
    talk = [{"question": f"Question {at}? {'really ' * 30}"} for at in range(9)]
    write_cases(folder.file, {"id": "long", "turns": talk})
    session = folder.session()
    session.open_case("long[9]")
    lines: list[str] = []
    LabelLines(session, lines.append).run(["o", "q"])
    (folded,) = [line for line in lines if line.startswith("(o shows the rest) … ")]
    assert len(folded) < 520
    assert any(line.startswith("…  user: Question 0?") and "Question 7?" in line for line in lines)


def test_labels_of_a_changed_file_go_aside_as_whole_conversations(folder: Desk):
    a_file(folder.path, LINE)
    session = folder.session()
    a_file(folder.path, LINE, "")
    session.open_case("returns[1]")
    point(session, "a").toggle_gold()
    session.save()
    session.open_case("returns[2]")
    point(session, "b").toggle_gold()
    session.save()
    (aside,) = folder.path.glob("cases.labels-*.jsonl")
    golds = [case.gold.supports for case in load_file(aside, folder.path).cases]
    assert golds == [(Anchor("notes/a.md"),), (Anchor("notes/b.md"),), None]


def test_a_draft_conversation_is_accepted_or_dropped_as_a_whole(folder: Desk):
    drafts = folder.path / "shop.drafts.jsonl"
    drafts.write_text(LINE.replace('"id"', '"tags": ["draft"], "id"') + "\n" + '{"id": "b", "question": "q"}\n')
    session = folder.session(file=drafts)
    point(session, "a").toggle_gold()
    session.decide("accepted")
    assert session.case.id == "b", "the other turns are decided with the first"
    assert session.labelled == 3
    session.save()
    accepted = load_file(folder.path / "shop.jsonl", folder.path).cases
    assert [case.id for case in accepted] == ["returns[1]", "returns[2]", "returns[3]"]
    assert accepted[0].gold.supports
    assert [case.id for case in load_file(drafts, folder.path).cases] == ["b"]
    session.open_case("returns[3]")
    session.decide("dropped")
    assert "is accepted at another of its turns" in session.message
    session.undo()
    session.save()
    assert len(load_file(drafts, folder.path).cases) == 4
    assert (folder.path / "shop.jsonl").read_text() == ""
    session.open_case("returns[2]")
    session.edit_draft('{"question": "other"}')
    assert "this draft is a conversation" in session.message


@pytest.mark.parametrize(
    ("text", "path", "edited"),
    [
        ('{"a": 1 }', ("b",), '{"a": 1, "b": 0 }'),
        ("{}", ("b",), '{"b": 0}'),
        ('{ "a" :{ } }', ("a", "b"), '{ "a" :{"b": 0 } }'),
        ('{"a":null,"c":"x: y"}', ("a", "b"), '{"a":{"b":0},"c":"x: y"}'),
        ('[1 , {"a": [1.0e2,2]}]', (1, "a"), '[1 , {"a": 0}]'),
        ('[{"q": "\\u00e4"}\n]', (0, "a\u00e4"), '[{"q": "\\u00e4", "a\\u00e4": 0}\n]'),
    ],
)
def test_a_value_set_in_a_text_leaves_the_rest_as_it_is(text: str, path: tuple[str | int, ...], edited: str):
    assert edited_json(text, {path: 0}) == edited


# ── the faces ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def shop(project: Project) -> Project:
    project.write("bot.py", BOT)
    project.write("evalcases/a.jsonl", LINE + "\n")
    project.configure('target = "bot:answer"')
    return project


def score_of_the_second_turn(project: Project) -> float | None:
    result = next(result for result in project.results() if result["case_key"].endswith("::returns[2]"))
    score: float | None = result["scores"].get("recall_any@5")
    return score


def test_the_command_labels_turns_a_run_takes_the_new_gold_and_opinions_are_compared(
    shop: Project, monkeypatch: pytest.MonkeyPatch
):
    def label(*arguments: str, keys: str) -> pytest.RunResult:
        monkeypatch.setattr(sys, "stdin", io.StringIO(keys))
        return shop.rageval("label", "evalcases/a.jsonl", *arguments)

    shop.rageval("run")
    assert score_of_the_second_turn(shop) is None
    first = label("--plain", "--case", "returns[2]", keys="1\nq\n")
    assert first.ret == 0
    assert "…  user: What does a return cost? · assistant: 4 euros" in first.outlines
    assert "Q  [policy] And from Jeju?" in first.outlines
    assert first.outlines[-1] == "1 of 3 in a.jsonl"
    scored = shop.rageval("score", "latest", "--cases", "evalcases")
    assert scored.ret in (0, 1), scored.stderr.str()
    assert score_of_the_second_turn(shop) == 1
    label("--plain", "--blind", "ben", "--case", "returns[2]", keys="2\nq\n")
    agreed = label("--agree", keys="")
    assert "1 case," in agreed.outlines[0]
    assert any("returns[2]: gold notes/" in line for line in agreed.outlines)


@pytest.mark.child_process
def test_the_screen_shows_what_was_said_before_a_turn(shop: Project):
    command = ("-m", "pytest_rageval", "label", "evalcases/a.jsonl", "--case", "returns[2]")
    with Terminal(shop.path, *command, TERM="xterm-256color") as terminal:
        terminal.resize(100, 30)
        terminal.until("assistant: 4 euros")
        terminal.until("chunks of 1 system (5)")
        terminal.type(" ")
        terminal.until("unsaved")
        terminal.type("q")
        assert terminal.ended() == 0
    cases = load_file(shop.path / "evalcases" / "a.jsonl", shop.path).cases
    assert [bool(case.gold.supports) for case in cases] == [False, True, False]


@pytest.fixture
def app(shop: Project) -> Iterator[WebApp]:
    with served(shop.path) as app:
        yield app


def test_the_browser_labels_a_turn_below_what_was_said_before(shop: Project, app: WebApp):
    labeller = Labeller(app, "/label/cases?file=evalcases/a.jsonl&case=returns%5B2%5D")
    assert "<summary>2 earlier messages</summary>" in labeller.page
    assert "4 euros" in labeller.page
    labeller.point("banana")
    labeller.press("gold")
    cases: Any = load_file(shop.path / "evalcases" / "a.jsonl", shop.path).cases
    by_id: dict[str, EvalCase] = {case.id: case for case in cases}
    assert by_id["returns[2]"].gold.supports == (Anchor("notes/banana.md", "# Top > ## Deep"),)
    labeller.press("undo")
    assert (shop.path / "evalcases" / "a.jsonl").read_text() == LINE + "\n"
