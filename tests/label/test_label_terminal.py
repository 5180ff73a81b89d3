"""`rageval label` on a real terminal: keys arrive, Ctrl-C saves, and whoever is killed loses the case on screen."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from label_desk import BOT
from labelling import write_cases
from processes import Terminal

from pytest_rageval.cases.loading import load_file

pytestmark = pytest.mark.child_process
LABEL = ("-m", "pytest_rageval", "label", "cases.jsonl")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bot.py").write_text(BOT)
    (tmp_path / "pyproject.toml").write_text('[tool.rageval]\ntarget = "bot:answer"\n')
    write_cases(tmp_path / "cases.jsonl", *({"id": f"case-{at}", "question": f"Question {at}?"} for at in range(4)))
    return tmp_path


@pytest.fixture
def terminal(folder: Path) -> Iterator[Terminal]:
    with Terminal(folder, *LABEL, TERM="xterm-256color") as terminal:
        terminal.until("chunks of 1 system (5)")
        yield terminal


def labelled(folder: Path) -> list[str]:
    loaded = load_file(folder / "cases.jsonl", folder)
    assert not loaded.problems
    assert len(loaded.cases) == 4
    return [case.id for case in loaded.cases if case.gold.supports]


def test_ctrl_c_saves_the_case_on_screen(folder: Path, terminal: Terminal):
    terminal.type(" ")
    terminal.until("unsaved")
    terminal.type("\x03")
    assert terminal.ended() == 0
    assert labelled(folder) == ["case-0"]


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM])
def test_whoever_is_killed_loses_the_case_on_screen_at_most(folder: Path, terminal: Terminal, kind: signal.Signals):
    terminal.type(" \r")
    terminal.until("Question 1?")
    terminal.type(" \r")
    terminal.until("Question 2?")
    terminal.type(" ")
    terminal.until("unsaved")
    os.kill(terminal.process.pid, kind)
    terminal.ended()
    assert set(labelled(folder)) >= {"case-0", "case-1"}
    left = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert left == {"bot.py", "pyproject.toml", "cases.jsonl", "cases.jsonl.bak"}


def test_plain_lines_on_a_terminal_prompt(folder: Path):
    with Terminal(folder, *LABEL, "--plain", TERM="xterm-256color") as terminal:
        terminal.until("> ")
        terminal.type("1\n")
        terminal.until("group 1 = {1}")
        terminal.press_ctrl_c("stopped; what was marked is in cases.jsonl")
        terminal.ended()
        assert labelled(folder) == ["case-0"]
