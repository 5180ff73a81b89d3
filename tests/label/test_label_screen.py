"""The label screen: every key, every size, and texts that would break a screen that trusts them."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from label_desk import HOSTILE, a_session
from labelling import write_cases
from processes import PATIENCE_S
from rich.cells import cell_len
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from pytest_rageval.cases.loading import load_file
from pytest_rageval.label.label_chunk_text import ChunkText
from pytest_rageval.label.label_screen import LabelScreen
from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.model import Anchor, EvalCase

TEXTS = {name: f"{name} says\nthe price is {at}\nthird line" for at, name in enumerate("abcde")}
SIZES = ((80, 24), (40, 12), (71, 20), (200, 12))
Story = Callable[[LabelScreen, Pilot[None]], Coroutine[Any, Any, None]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_cases(tmp_path / "cases.jsonl", *({"id": f"c{at}", "question": f"질문 {at}?"} for at in range(4)))


def play(file: Path, story: Story, *, size: tuple[int, int] = (80, 24), **more: Any) -> None:
    """Run the screen without a terminal, and a story on it."""

    async def run(session: LabelSession) -> None:
        app = LabelScreen(session)
        async with app.run_test(size=size) as pilot:
            await settled(app, pilot)
            await story(app, pilot)

    with a_session(file, more.pop("texts", TEXTS), **more) as session:
        asyncio.run(run(session))


async def settled(app: LabelScreen, pilot: Pilot[None]) -> None:
    await until(lambda: app.session.waits_for is None, pilot)


async def until(condition: Callable[[], bool], pilot: Pilot[None]) -> None:
    """Let the screen work until it is so."""
    async with asyncio.timeout(PATIENCE_S):
        await pilot.pause()
        while not condition():
            await asyncio.sleep(0.01)
            await pilot.pause()


async def press(app: LabelScreen, pilot: Pilot[None], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settled(app, pilot)


def rows(app: LabelScreen) -> list[str]:
    """What the terminal shows, with a space where a key and its word must stay together."""
    strips = app.screen._compositor.render_strips(app.size)
    return [strip.text.replace("\N{NO-BREAK SPACE}", " ") for strip in strips]


def shown(app: LabelScreen) -> str:
    return "\n".join(rows(app))


def cases(file: Path) -> list[EvalCase]:
    loaded = load_file(file, file.parent)
    assert not loaded.problems
    return list(loaded.cases)


def test_space_x_digits_and_g_mark_and_enter_saves_and_goes_on(file: Path):
    async def story(app: LabelScreen, pilot: Pilot[None]) -> None:
        await press(app, pilot, "space", "down", "x", "down", "2", "down", "g", "space", "up", "up", "up", "enter")
        assert app.session.case.id == "c1"
        assert "1 labelled" in rows(app)[0]
        assert "● saved" in rows(app)[0]
        await press(app, pilot, "space", "s")
        assert app.session.case.id == "c2"

    play(file, story)
    first, second, *_ = cases(file)
    assert (len(first.gold.supports or ()), len(first.gold.irrelevant_supports or ())) == (3, 1)
    assert first.gold.support_groups is not None
    assert sum(map(len, first.gold.support_groups)) == 3
    assert second.gold.supports is None


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("space", ["▸  1 (✔) ·", "○ unsaved", "golds: {1} ", "undo: 1 step "]),
        ("space down space", ["golds: any of {1,2} "]),
        ("1 down 1", ["▸  2 (✔) 1 ", "golds: group 1 = all of {1,2}   group 2 = –"]),
        ("space down space g", ["golds: any of {1,2}   the next into group 2 "]),
        ("space x", ["▸  1 (✘) ·", "irrelevant: 1"]),
        ("x x", ["▸  1 ( ) ·", "undo: 2 steps"]),
        ("space x z z", ["▸  1 ( ) ·", "undo: 0 steps"]),
        ("space x z z Z Z", ["▸  1 (✘) ·"]),
        ("left", ["this is the first case"]),
        ("shift+down shift+down", ["▸  1", "▸  2", "▸  3"]),
        ("shift+down space escape", ["▸  2 (✔)", "   1 (✔)"]),
        ("down down shift+up x", ["▸  2 (✘)", "▸  3 (✘)"]),
        ("pagedown", ["▸  5"]),
        ("pagedown pageup", ["▸  1"]),
        ("space u", ["u again clears 1 gold; anything else keeps them"]),
        ("space u down u", ["golds: {1} ", "u again clears"]),
        ("space u u", ["answerable? [u] no", "golds: none, unanswerable"]),
        ("u a", ["answerable? [a] yes"]),
        ("v", ["snippet: ↑↓ to the last line"]),
        ("w q enter", ["no chunk here holds 'q'"]),
        ("b", ["scores are hidden"]),
    ],
)
def test_keys_are_seen_at_once(file: Path, keys: str, said: list[str]):
    async def story(app: LabelScreen, pilot: Pilot[None]) -> None:
        await press(app, pilot, *keys.split())
        for text in said:
            assert text in shown(app)

    play(file, story)


def test_v_takes_lines_as_a_snippet(file: Path):
    def snippets(app: LabelScreen) -> list[str]:
        (gold,) = app.session.marks.golds
        assert isinstance(gold, Anchor)
        return list(gold.snippets)

    async def story(app: LabelScreen, pilot: Pilot[None]) -> None:
        await press(app, pilot, "v", "down", "enter")
        assert snippets(app) == ["a says\nthe price is 0"]
        await press(app, pilot, "v", "shift+down", "shift+down", "escape")
        assert len(snippets(app)) == 1
        await press(app, pilot, "v", "v", "v", "enter", "v", "left", "left", "enter")
        assert snippets(app)[1:] == ["third line", "a say"]

    play(file, story)


def test_w_finds_and_slash_asks_more(file: Path):
    async def story(app: LabelScreen, pilot: Pilot[None]) -> None:
        await press(app, pilot, "w", *"price is 3x", "backspace")
        assert "price is 3 " in shown(app)
        await press(app, pilot, "enter")
        candidate = app.session.candidate
        assert candidate is not None
        assert candidate.chunk.chunk_id == "d"
        await press(app, pilot, "slash", "enter", "slash", "escape")
        await press(app, pilot, "slash", "m", "o", "space", "r", "enter")
        await until(lambda: app.session.message == "0 more chunks", pilot)
        app.post_message(events.Paste("q\nq"))
        await press(app, pilot, "w")
        for pasted in ("hostile\x1b[31m", "one\ntwo"):
            app.screen.post_message(events.Paste(pasted))
            await pilot.pause()
        assert app.query_one(Input).value == "one"
        await press(app, pilot, "escape")

    play(file, story)


def test_b_hides_scores_and_brackets_scroll(file: Path):
    async def story(app: LabelScreen, pilot: Pilot[None]) -> None:
        assert "hos[t]ile #" in shown(app)
        await press(app, pilot, "b")
        assert "hos[t]ile #" not in shown(app)
        await press(app, pilot, "right_square_bracket")
        assert app.query_one(ChunkText).scroll_offset.y > 0
        await press(app, pilot, "left_square_bracket", "f12", "ä")
        assert app.query_one(ChunkText).scroll_offset.y == 0

    play(file, story, texts={"a": "line\n" * 60})


@pytest.mark.parametrize(("key", "size"), [("question_mark", (80, 24)), ("space", (40, 12)), ("q", (80, 24))])
def test_any_key_closes_the_help_and_does_nothing_else(file: Path, key: str, size: tuple[int, int]):
    async def story(app: LabelScreen, pilot: Pilot[None]) -> None:
        before = shown(app)
        await press(app, pilot, "question_mark")
        words = shown(app).split()
        assert {"space", "⏎", "?", "q", "1–9", "esc", "y", "n", "e"} <= {*words}
        await press(app, pilot, key)
        assert app.is_running
        assert shown(app) == before

    play(file, story, size=size)


def test_leaving_with_what_cannot_be_saved_says_so_first(tmp_path: Path):
    file = tmp_path / "cases.csv"
    file.write_text("question\nWhy?\n")

    async def story(app: LabelScreen, pilot: Pilot[None]) -> None:
        await press(app, pilot, "space", "q")
        assert app.is_running
        assert "header lacks the column gold_supports" in app.session.message
        assert app.session.message.endswith("q again leaves without this case")
        assert "cases.csv: case" in rows(app)[-4]
        assert "q again leaves without this case" in rows(app)[-3]
        await press(app, pilot, "q")

    play(file, story)


@pytest.mark.child_process
def test_drafts_are_accepted_dropped_and_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    drafts = write_cases(tmp_path / "x.drafts.jsonl", *({"id": f"d{at}", "question": "q"} for at in range(3)))
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import sys,pathlib; p=pathlib.Path(sys.argv[1]); p.write_text(p.read_text().replace('d1','neu'))"
    )
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", shlex.join([sys.executable, str(editor)]))

    async def story(app: LabelScreen, pilot: Pilot[None]) -> None:
        assert "y accept" in shown(app)
        await press(app, pilot, "space", "y")
        assert "1 decided" in rows(app)[0]
        await press(app, pilot, "e")
        assert app.session.case.id == "neu"
        await press(app, pilot, "y", "n")
        monkeypatch.setenv("EDITOR", "/nowhere/editor")
        await press(app, pilot, "e")
        assert "$EDITOR (/nowhere/editor)" in app.session.message

    play(drafts, story)
    assert [case.id for case in cases(tmp_path / "x.jsonl")] == ["d0", "neu"]
    assert drafts.read_text() == ""
    assert "d2" in (tmp_path / "x.drafts.jsonl.bak").read_text()


def test_what_others_said_stands_beside_the_text(file: Path):
    async def story(app: LabelScreen, pilot: Pilot[None]) -> None:
        app.opinions = {"c0": ["anna: gold notes/[a].md\x1b"]}
        await press(app, pilot, "down")
        assert "anna: gold notes/[a].md\\x1b" in shown(app)

    play(file, story)


def test_a_blind_screen_shows_no_scores_no_category_and_no_gold(tmp_path: Path):
    gold = [{"rel_path": "notes/[a].md"}, {"rel_path": "notes/gone.md"}]
    case = {"id": "a", "question": "q", "category": "factual", "gold_supports": gold}
    file = write_cases(tmp_path / "cases.jsonl", case)

    async def story(app: LabelScreen, pilot: Pilot[None]) -> None:
        for word in ("#1", "factual", "✔", "gone", "0.5", "yes"):
            assert word not in shown(app)
        await press(app, pilot, "space", "q")

    play(file, story, blind="anna")
    assert cases(tmp_path / "cases.labels.anna.jsonl")[0].gold.supports
    assert json.loads(file.read_text()) == case


@pytest.mark.parametrize("size", SIZES)
def test_each_row_is_as_wide_as_the_terminal_and_the_legend_is_last(file: Path, size: tuple[int, int]):
    async def story(app: LabelScreen, pilot: Pilot[None]) -> None:
        for keys in (["space"], ["v"], ["escape"], ["w", "a"]):
            await press(app, pilot, *keys)
            assert [cell_len(row) for row in rows(app)] == [size[0]] * size[1]
            legend = "".join(rows(app)[-2:])
            assert all(words in legend for words in ("space gold", "save+next", "? all keys", "q quit"))
        assert any("(✔)" in row for row in rows(app))

    play(file, story, size=size)


@pytest.mark.parametrize("size", [(39, 24), (80, 11), (3, 2)])
def test_a_terminal_that_is_too_small_is_told_and_q_still_quits(file: Path, size: tuple[int, int]):
    async def story(app: LabelScreen, pilot: Pilot[None]) -> None:
        assert rows(app)[0].rstrip() == f"{size[0]} × {size[1]} is too small"[: size[0]].rstrip()
        await press(app, pilot, "space", "q")

    play(file, story, size=size)
    assert cases(file)[0].gold.supports


@pytest.mark.parametrize("size", [(80, 24), (40, 12)])
def test_hostile_texts_are_shown_as_text(file: Path, size: tuple[int, int]):
    async def story(app: LabelScreen, pilot: Pilot[None]) -> None:
        seen = ""
        for _ in HOSTILE:
            assert [cell_len(row) for row in rows(app)] == [size[0]] * size[1]
            assert not {"\x1b", "\x9b", "\u202e", "\u2066", "\x00", "\x07", "\t", "\r"} & set(shown(app))
            seen += "".join(row[44:-1] if size[0] == 80 else row for row in rows(app))
            await press(app, pilot, "down")
        assert "[x] [/]" in seen
        assert "\\x1b[31mred" in seen
        assert "\\u202e" in seen
        assert "yyyyyyyyyyyyyyyyyyyyyyyy" in seen
        assert "₩32,000" in seen

    play(file, story, size=size, texts=HOSTILE)


def test_a_snippet_of_a_hostile_text_is_the_text_itself(file: Path):
    async def story(app: LabelScreen, pilot: Pilot[None]) -> None:
        for row in range(len(HOSTILE)):
            candidate = app.session.candidate
            assert candidate is not None
            text = candidate.chunk.text or ""
            await press(app, pilot, "v", "down", "enter")
            if text:
                gold = app.session.marks.golds[-1]
                assert all(snippet in text for snippet in getattr(gold, "snippets", ()))
                assert app.session.matches().golds[row]
            await press(app, pilot, "down")

    play(file, story, texts=HOSTILE)


LONG_QUESTION = "Which of the creams " + "that we sold in the shop " * 40 + "costs least?"


def test_the_question_is_wrapped_with_the_expected_answer_below_and_o_opens_the_rest(tmp_path: Path):
    case = {"id": "c0", "question": LONG_QUESTION, "gold": {"answer": "The olive cream [b]costs[/b] 28,000 won."}}
    file = write_cases(tmp_path / "cases.jsonl", case)

    async def story(app: LabelScreen, pilot: Pilot[None]) -> None:
        screen = rows(app)
        assert screen[1].startswith(" Q  Which of the creams")
        assert "answerable? [a] yes" in screen[1]
        assert "… o" in screen[3]
        assert "A  The olive cream [b]costs[/b] 28,000 won." in screen[4]
        assert "a says the price is 0" in shown(app), "the first words of a passage"
        assert "costs least?" not in shown(app)
        await press(app, pilot, "o")
        assert "costs least?" in shown(app)
        assert "o closes this" in shown(app)
        await press(app, pilot, "o")
        assert "costs least?" not in shown(app)

    play(file, story)


def test_a_blind_labeller_is_not_told_the_expected_answer(tmp_path: Path):
    file = write_cases(tmp_path / "cases.jsonl", {"id": "c0", "question": "Why?", "gold": {"answer": "Because."}})

    async def story(app: LabelScreen, pilot: Pilot[None]) -> None:
        app.session.is_blind = True
        await press(app, pilot, "down")
        assert "Because." not in shown(app)

    play(file, story)
