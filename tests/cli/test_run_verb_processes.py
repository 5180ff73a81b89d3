"""`rageval run` as a process: Ctrl-C, resume, a terminal, files that cannot be written."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from project import Project, a_case
from run_files import stable_bytes

# ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────

SLOW = """
import asyncio, bot
async def answer(question):
    await asyncio.sleep(30 if "slow" in question else 0)
    return bot.answer(question)
"""
QUICK = "import bot\nasync def answer(question):\n    return bot.answer(question)\n"


def started(project: Project, *arguments: str, stdin: int = subprocess.DEVNULL, **streams: Any) -> Any:
    return subprocess.Popen(
        [sys.executable, "-m", "pytest_rageval", "run", *arguments],
        cwd=project.path, start_new_session=True, stdin=stdin, **streams,
    )  # fmt: skip


def wait_for_records(project: Project, number: int) -> None:
    until = time.monotonic() + 60
    while sum(path.read_bytes().count(b"\n") for path in project.path.glob("reports/runs/*/results.jsonl")) < number:
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


@pytest.mark.child_process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_leaves_a_partial_run_that_can_be_finished(project: Project, number: signal.Signals, times: int):
    project.write("slow.py", SLOW)
    project.configure('target = "slow:answer"')
    project.cases([a_case(f"q{n}", "boiling" if n < 6 else "boiling slow") for n in range(12)])
    process = started(project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for_records(project, 6)
    for _ in range(times):
        process.send_signal(number)
    output = process.communicate(timeout=20)[0].decode()
    assert process.returncode == 2, output
    run_id = project.runs[-1].name
    assert f"rageval run --resume {run_id} finishes" in output
    assert "Traceback" not in output
    assert project.metrics()["partial"]
    assert len(project.records()) == project.metrics()["selection"]["recorded"] == 6
    project.write("slow.py", QUICK)
    assert project.rageval("run", "--resume", run_id).ret == 0
    assert len(project.records()) == 12
    assert not project.metrics()["partial"]
    resumed = stable_bytes(project.runs[-1])
    assert project.run("--rageval-run-id", "whole").ret == 0
    assert stable_bytes(project.path / "reports/runs/whole") == resumed


@pytest.mark.child_process
def test_ctrl_c_before_the_first_answer_leaves_a_line(project: Project):
    project.write("slow.py", SLOW)
    project.configure('target = "slow:answer"')
    project.cases([a_case("q", "boiling slow")])
    process = started(project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    until = time.monotonic() + 60
    while not project.runs:
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=20)[0].decode()
    assert process.returncode == 2, output
    assert "interrupted" in output
    assert "Traceback" not in output
    assert not project.runs


@pytest.mark.child_process
def test_a_terminal_shows_progress_and_is_asked_for_a_description(project: Project):
    project.write("slow.py", SLOW.replace("30 if", "2.5 if"))
    project.configure('target = "slow:answer"')
    project.cases([a_case("q1", "boiling"), a_case("q2", "boiling slow")])
    ours, theirs = pty.openpty()
    process = started(project, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    is_answered = False
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        if not piece:
            break
        seen += piece
        if not is_answered and b"Description of this run" in seen:
            is_answered = True
            os.write(ours, "größere Stücke\n".encode())
    os.close(ours)
    assert process.wait(timeout=20) == 0, seen.decode()
    assert is_answered
    assert "case 1 of 2" in seen.decode()
    assert project.metrics()["description"] == "größere Stücke"
