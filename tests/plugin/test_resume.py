"""A run that died is finished: nothing that was done is lost or asked again, and the result is that of a whole run."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from processes import ending, kill, wait_until
from project import SOME, Project, a_case, a_missed_case

COUNTING_BOT = """
import asyncio, bot, os
async def answer(question):
    with open("asked.txt", "a") as file:
        file.write(question + "\\n")
    if "slow" in question and not os.path.exists("fast"):
        await asyncio.sleep(600)
    if "broken" in question:
        raise ValueError("the index is gone")
    return bot.answer(question)
"""
CASES = [
    *(a_case(f"q{n}", f"boiling {n}") for n in range(8)),
    a_missed_case("missed", question="boiling missed"),
    a_case("broken", "boiling broken"),
    *(a_case(f"s{n}", f"boiling slow {n}") for n in range(8)),
]


@pytest.fixture
def counting(project: Project) -> Project:
    project.write("counting.py", COUNTING_BOT)
    project.configure('target = "counting:answer"')
    project.cases(CASES)
    return project


def asked(project: Project) -> list[str]:
    return (project.path / "asked.txt").read_text(encoding="utf-8").splitlines()


def start(project: Project, *how: str) -> subprocess.Popen[bytes]:
    return project.start(*how, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def wait_for_lines(project: Project, pattern: str, count: int, process: subprocess.Popen[bytes]) -> None:
    """Wait for so many lines in files of the run that this process writes."""

    def lines() -> int:
        return sum(len(_lines(path)) for run in project.runs for path in run.glob(pattern))

    wait_until(lambda: lines() >= count, f"{count} lines of {pattern}", process)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.child_process
def test_what_was_observed_ahead_is_not_asked_again(counting: Project):
    """The bot answered questions that pytest had not come to when the process died."""
    counting.cases([CASES[-1], *CASES[:8]])
    process = start(counting)
    wait_for_lines(counting, "observations.jsonl", 8, process)
    kill(process)
    ending(process)
    assert not (counting.runs[-1] / "results.jsonl").exists()
    counting.write("fast", "")
    before = len(asked(counting))
    counting.run("--rageval-resume", "latest").assert_outcomes(passed=9)
    assert asked(counting)[before:] == ["boiling slow 7"]


def test_a_torn_last_line_is_dropped_and_said(counting: Project):
    counting.write("fast", "")
    counting.run()
    path = counting.runs[-1] / "results.jsonl"
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: len(text) - 40], encoding="utf-8")
    before = counting.stable_metrics()
    result = counting.run("--rageval-resume", counting.runs[-1].name)
    result.assert_outcomes(passed=16, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*results.jsonl:18: was cut off while it was written, and is left out*"])
    assert counting.stable_metrics() == before
    assert len(counting.records()) == 18


def test_a_resumed_failure_is_shown_as_it_was(counting: Project):
    counting.write("fast", "")
    counting.run()
    result = counting.run("--rageval-resume", "latest")
    result.stdout.fnmatch_lines(
        ["exception: *the index is gone*", "recall_any@5 is 0, gate >= 1*", "  came *water.md*"]
    )


def test_a_redacted_run_is_finished_too(counting: Project):
    counting.write("fast", "")
    counting.run("--rageval-redact", "-k", "not s3")
    counting.run("--rageval-redact", "--rageval-resume", "latest").assert_outcomes(passed=16, failed=1, errors=1)
    assert len(asked(counting)) == 18


def test_another_configuration_is_another_run(counting: Project):
    counting.write("fast", "")
    counting.run()
    result = counting.run("--rageval-resume", "latest", "--rageval-k", "7")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--rageval-resume: run * was begun with another configuration: k was 5 and is 7"])
    counting.cases(CASES[:5])
    result = counting.run("--rageval-resume", "latest")
    result.stderr.fnmatch_lines(["*was begun with another configuration: dataset was *"])


@pytest.mark.child_process
def test_a_run_that_is_being_written_cannot_be_resumed(counting: Project):
    process = start(counting)
    wait_for_lines(counting, "results*.jsonl", 8, process)
    result = counting.run("--rageval-resume", "latest")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*is being written by another process; wait for it to end"])


@pytest.mark.child_process
@pytest.mark.parametrize(("number", "how"), [("SIGTERM", ["-n", "2"]), ("SIGHUP", [])])
def test_other_signals_end_a_run_as_ctrl_c_does(counting: Project, number: str, how: list[str]):
    signal_number = getattr(signal, number)
    inherited = signal.signal(signal_number, signal.SIG_DFL)  # these tests may themselves run under nohup
    process = start(counting, *how)
    signal.signal(signal_number, inherited)
    wait_for_lines(counting, "results*.jsonl", 8 if not how else 5, process)
    process.send_signal(signal_number)
    output = ending(process)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output.decode()
    assert counting.metrics()["partial"] is True
    assert b"Traceback" not in output
    assert not list(counting.runs[-1].glob("*-gw*"))


@pytest.mark.child_process
def test_a_session_without_a_chosen_case_leaves_no_run(counting: Project):
    counting.write("test_own.py", "def test_own(): pass\n")
    counting.run("-n", "1", "-k", "test_own").assert_outcomes(passed=1)
    assert not counting.runs


def test_a_run_that_is_resumed_says_what_it_had(project: Project):
    project.cases(SOME)
    project.run("-k", "boil", "--rageval-run-id", "half")
    result = project.run("--rageval-resume", "half")
    result.stdout.fnmatch_lines(["resumed half: 1 results were there already"])
