"""`rageval label` on a real terminal: keys arrive, Ctrl-C saves, and whoever is killed loses the case on screen."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from label_desk import BOT, write_cases

from pytest_rageval.cases import load_file

pytestmark = pytest.mark.child_process
PATIENCE_S = 30


class Terminal:
    """`rageval label` on a pseudo-terminal; what it writes is read all the time."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.written = ""
        self.pid, self.descriptor = pty.fork()
        if not self.pid:
            os.chdir(folder)
            # Not as inherited: readline, which pytest imports, sets COLUMNS and LINES behind Python's back.
            environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
            command = [sys.executable, "-m", "pytest_rageval", "label", *arguments]
            os.execve(command[0], command, environment | {"TERM": "xterm-256color"})

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def read(self, seconds: float) -> bool:
        """Read what comes; False at the end."""
        if select.select([self.descriptor], [], [], seconds)[0]:
            try:
                data = os.read(self.descriptor, 65536)
            except OSError:
                return False
            self.written += data.decode("utf-8", "replace")
            return bool(data)
        return True

    def wait_for(self, text: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while text not in self.written:
            assert time.monotonic() < until, f"{text!r} never came: {self.written[-2000:]}"
            assert self.read(0.1) or text in self.written, f"ended: {self.written[-2000:]}"

    def type(self, keys: str) -> None:
        self.written = ""
        os.write(self.descriptor, keys.encode())

    def ended(self) -> int:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                while self.read(0) and select.select([self.descriptor], [], [], 0)[0]:
                    pass
                return status
        raise AssertionError(f"still running: {self.written[-2000:]}")

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.descriptor)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bot.py").write_text(BOT)
    (tmp_path / "pyproject.toml").write_text('[tool.rageval]\ntarget = "bot:answer"\n')
    write_cases(tmp_path / "cases.jsonl", *({"id": f"case-{at}", "question": f"Question {at}?"} for at in range(4)))
    return tmp_path


@pytest.fixture
def terminal(folder: Path) -> Iterator[Terminal]:
    terminal = Terminal(folder, "cases.jsonl")
    try:
        terminal.wait_for("chunks of 1 system (5)")
        yield terminal
    finally:
        terminal.close()


def labelled(folder: Path) -> list[str]:
    loaded = load_file(folder / "cases.jsonl", folder)
    assert not loaded.problems
    assert len(loaded.cases) == 4
    return [case.id for case in loaded.cases if case.gold.supports]


def test_keys_mark_and_q_ends_with_the_terminal_as_it_was(folder: Path, terminal: Terminal):
    terminal.type(" ")
    terminal.wait_for("unsaved")
    terminal.type("\r")
    terminal.wait_for("Question 1?")
    terminal.type("\x1b[B ")
    terminal.wait_for("unsaved")
    terminal.type("q")
    assert terminal.ended() == 0
    assert labelled(folder) == ["case-0", "case-1"]
    assert "\x1b[?1049l" in terminal.written
    assert "2 of 4 in cases.jsonl" in terminal.written
    assert "Traceback" not in terminal.written


def test_ctrl_c_saves_the_case_on_screen(folder: Path, terminal: Terminal):
    terminal.type(" ")
    terminal.wait_for("unsaved")
    terminal.type("\x03")
    assert terminal.ended() == 0
    assert labelled(folder) == ["case-0"]


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM])
def test_whoever_is_killed_loses_the_case_on_screen_at_most(folder: Path, terminal: Terminal, kind: signal.Signals):
    terminal.type(" \r")
    terminal.wait_for("Question 1?")
    terminal.type(" \r")
    terminal.wait_for("Question 2?")
    terminal.type(" ")
    terminal.wait_for("unsaved")
    os.kill(terminal.pid, kind)
    terminal.ended()
    assert set(labelled(folder)) >= {"case-0", "case-1"}
    left = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert left == {"bot.py", "pyproject.toml", "cases.jsonl", "cases.jsonl.bak"}


def test_the_screen_follows_the_size_of_the_terminal(terminal: Terminal):
    terminal.resize(40, 12)
    terminal.wait_for("spc gold")
    terminal.resize(30, 11)
    terminal.wait_for("too small")
    terminal.type("q")
    assert terminal.ended() == 0


def test_plain_lines_on_a_terminal_prompt(folder: Path):
    terminal = Terminal(folder, "cases.jsonl", "--plain")
    try:
        terminal.wait_for("> ")
        terminal.type("1\n")
        terminal.wait_for("golds 1")
        terminal.type("\x03")
        terminal.wait_for("stopped; what was marked is in cases.jsonl")
        terminal.ended()
        assert labelled(folder) == ["case-0"]
    finally:
        terminal.close()
