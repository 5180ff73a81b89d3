"""`rageval label` in front of a person: its page in the browser, its keys on a real terminal, Ctrl-C and kills."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from label_desk import BOT
from labelling import write_cases
from processes import Terminal
from project import Project

from pytest_rageval.cases.loading import load_file
from pytest_rageval.web import server


@pytest.fixture
def browser(project: Project, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser is shown of each address that is opened, in place of a server that waits for Ctrl-C."""
    shown: list[str] = []

    def serve(app: Any, settings: Any, say: Any, *, is_opened: bool, is_token_shown: bool, page: str) -> None:
        from starlette.testclient import TestClient

        assert is_opened
        assert is_token_shown
        assert settings.is_loopback
        assert settings.port == 0
        with TestClient(app, base_url="http://localhost") as client:
            response = client.get(page, headers={"Authorization": f"Bearer {settings.token}"})
            shown.append(f"{response.status_code} {response.text}")

    monkeypatch.setattr(server, "serve_web", serve)
    project.cases([{"id": "first one", "question": "Who?"}, {"id": "second", "question": "Where to, please?"}])
    project.configure('target = "bot:answer"')
    return shown


def test_the_page_of_the_file_is_opened_at_the_case(project: Project, browser: list[str]):
    assert project.rageval("label", "evalcases/a.jsonl", "--web", "--case", "second").ret == 0
    assert browser[0].startswith("200 ")
    assert "Where to, please?" in browser[0]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["evalcases/a.jsonl", "--web", "--plain"], "--web goes with --case alone"),
        (["evalcases/a.jsonl", "--web", "--target", "demo"], "--web goes with --case alone"),
        (["evalcases/a.jsonl", "--web", "--blind", "anna"], "--web goes with --case alone"),
        (["gone.jsonl", "--web"], "gone.jsonl"),
        (["elsewhere.jsonl", "--web"], "elsewhere.jsonl: is no case file of the project"),
    ],
)
def test_what_no_page_can_show_is_said(project: Project, browser: list[str], arguments: list[str], problem: str):
    project.cases([{"id": "x", "question": "Why?"}], "elsewhere.jsonl")
    result = project.rageval("label", *arguments)
    assert result.ret == 2
    assert problem in result.stderr.str()
    assert browser == []


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


@pytest.mark.child_process
def test_ctrl_c_saves_the_case_on_screen(folder: Path, terminal: Terminal):
    terminal.type(" ")
    terminal.until("unsaved")
    terminal.type("\x03")
    assert terminal.ended() == 0
    assert labelled(folder) == ["case-0"]


@pytest.mark.child_process
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


@pytest.mark.child_process
def test_plain_lines_on_a_terminal_prompt(folder: Path):
    with Terminal(folder, *LABEL, "--plain", TERM="xterm-256color") as terminal:
        terminal.until("> ")
        terminal.type("1\n")
        terminal.until("golds: {1}")
        terminal.press_ctrl_c("stopped; what was marked is in cases.jsonl")
        terminal.ended()
        assert labelled(folder) == ["case-0"]
