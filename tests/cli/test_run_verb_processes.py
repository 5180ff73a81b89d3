"""`rageval run` as a process: Ctrl-C, resume, a terminal."""

from __future__ import annotations

import signal
import subprocess

import pytest
from processes import Terminal, ending, wait_until
from project import Project, a_case
from stored_runs import stable_bytes

SLOW = """
import asyncio, bot
async def answer(question):
    if "slow" in question:
        open("asked", "w").close()
        await asyncio.sleep(600)
    return bot.answer(question)
"""
WAITS = "while not __import__('os').path.exists('gate'): await asyncio.sleep(0.02)"
QUICK = "import bot\nasync def answer(question):\n    return bot.answer(question)\n"


def started(project: Project) -> subprocess.Popen[bytes]:
    return project.start_process("-m", "pytest_rageval", "run", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def records_on_disk(project: Project) -> int:
    return sum(path.read_bytes().count(b"\n") for path in project.path.glob("reports/runs/*/results.jsonl"))


@pytest.mark.child_process
@pytest.mark.parametrize(("number", "times"), [(signal.SIGINT, 2), (signal.SIGTERM, 1)])
def test_ctrl_c_leaves_a_partial_run_that_can_be_finished(project: Project, number: signal.Signals, times: int):
    project.write("slow.py", SLOW)
    project.configure('target = "slow:answer"')
    project.cases([a_case(f"q{n}", "boiling" if n < 6 else "boiling slow") for n in range(12)])
    process = started(project)
    wait_until(lambda: records_on_disk(project) >= 6, "the quick cases are recorded", process)
    for _ in range(times):
        process.send_signal(number)
    output = ending(process).decode()
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
    process = started(project)
    wait_until((project.path / "asked").exists, "the first question is asked", process)
    process.send_signal(signal.SIGINT)
    output = ending(process).decode()
    assert process.returncode == 2, output
    assert "interrupted before anything was answered: nothing is kept" in output
    assert "--resume" not in output
    assert "Traceback" not in output
    assert not project.runs


@pytest.mark.child_process
def test_a_terminal_shows_progress_and_is_asked_for_a_description(project: Project):
    project.write("slow.py", SLOW.replace("await asyncio.sleep(600)", WAITS))
    project.configure('target = "slow:answer"')
    project.cases([a_case("q1", "boiling"), a_case("q2", "boiling slow")])
    with Terminal(project.path, "-m", "pytest_rageval", "run") as terminal:
        terminal.until("Description of this run")
        terminal.type("größere Stücke\n")
        terminal.until("case 1 of 2")
        project.write("gate", "")
        assert terminal.ended() == 0, terminal.written
    assert project.metrics()["description"] == "größere Stücke"
