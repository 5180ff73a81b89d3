"""Ctrl-C once leaves a partial run and the baseline as it was; twice, the run is gone within two seconds."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from processes import ending, wait_until
from project import Project, a_case
from reliability import Tally
from run_invariants import check_files, stable, whole_lines

from pytest_rageval.runs.interrupts import HEEDED_WITHIN

pytestmark = pytest.mark.child_process

BOT = """
import asyncio, bot, time
async def hang(question):
    if "slow" in question:
        await asyncio.sleep(600)
    return bot.answer(question)
def block(question):
    if "slow" in question:
        time.sleep(600)
    return bot.answer(question)
def answer(question):
    return bot.answer(question) | {"answer": bot.answer(question)["answer"] + " " + question}
"""
JUDGE = """
import asyncio, pathlib, pytest
class Judge:
    model = "slow/1"
    async def score_groundedness(self, answer, context):
        if "slow" in answer:
            pathlib.Path("judging").touch()
            await asyncio.sleep(600)
        return 1.0
@pytest.fixture(scope="session")
def rag_judge():
    return Judge()
"""
PHASES = {"asking": "hanging:hang", "asking in a thread": "hanging:block", "judging": "hanging:answer"}
GONE_S = 2.0
GAPS = [0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2]
"""Seconds between two signals."""


@pytest.fixture
def hanging(project: Project) -> Project:
    project.write("hanging.py", BOT)
    project.cases([a_case(f"q{number}", "boiling" if number < 4 else f"boiling slow {number}") for number in range(12)])
    return project


def start(project: Project, phase: str, *how: str) -> subprocess.Popen[bytes]:
    """Start a run that would update the baseline, and wait until it hangs in this phase."""
    shutil.rmtree(project.path / "reports", ignore_errors=True)
    (project.path / "judging").unlink(missing_ok=True)
    if phase == "judging":
        project.write("conftest.py", JUDGE)
    project.configure(f'target = "{PHASES[phase]}"\njudge_cache = "off"\nlook_ahead = 4')
    project.write("reports/baseline.json", "{}")
    process = project.start(*how, "--rageval-update-baseline", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def hangs() -> bool:
        is_judging = phase != "judging" or (project.path / "judging").exists()
        return is_judging and sum(len(list(whole_lines(path))) for path in results(project)) >= 2

    wait_until(hangs, "two cases are recorded and others hang", process)
    return process


def results(project: Project) -> list[Path]:
    return [path for run in project.runs for path in run.glob("results*.jsonl")]


def check(project: Project, process: subprocess.Popen[bytes], output: str, gap: float = 0) -> None:
    ends = [int(pytest.ExitCode.INTERRUPTED)]
    if gap > HEEDED_WITHIN:  # the run is over by then, and the signal is for what holds the program up
        ends += [-signal.SIGINT, -signal.SIGTERM]
    assert process.returncode in ends, output
    assert "Traceback" not in output
    assert project.metrics()["partial"] is True
    assert project.metrics()["total_tests"] == len(project.records())
    assert (project.path / "reports/baseline.json").read_text() == "{}"
    check_files(project.path / "reports")
    if not gap:
        assert not list(project.runs[-1].glob("*-gw*"))


def seconds_to_leave(project: Project, phase: str, gap: float, number: int, *how: str) -> float:
    """Send a signal twice, this far apart; return how long the process lived after the second one."""
    process = start(project, phase, *how)
    process.send_signal(number)
    time.sleep(gap)
    sent_at = time.monotonic()
    process.send_signal(number)
    output = ending(process).decode()
    took = time.monotonic() - sent_at
    check(project, process, output, gap)
    return took


@pytest.mark.reliability("crashes", "SIGINT, SIGTERM or SIGHUP once, while asking or judging")
@pytest.mark.parametrize(
    ("phase", "number", "how"),
    [
        ("judging", signal.SIGINT, []),
        pytest.param("asking", signal.SIGTERM, ["-n", "2"], marks=pytest.mark.torture),
        pytest.param("asking in a thread", signal.SIGTERM, [], marks=pytest.mark.torture),
        pytest.param("asking in a thread", signal.SIGINT, ["-n", "2"], marks=pytest.mark.torture),
        pytest.param("judging", signal.SIGTERM, ["-n", "2"], marks=pytest.mark.torture),
        pytest.param("judging", signal.SIGHUP, [], marks=pytest.mark.torture),
    ],
)
def test_one_signal_leaves_a_partial_run(hanging: Project, phase: str, number: int, how: list[str]):
    process = start(hanging, phase, *how)
    os.killpg(process.pid, number)  # as a terminal does
    check(hanging, process, ending(process).decode())
    (hanging.path / "reports/baseline.json").unlink()
    run_id = hanging.runs[-1].name
    hanging.write("hanging.py", BOT.replace("600", "0"))
    (hanging.path / "conftest.py").write_text(JUDGE.replace("600", "0") if phase == "judging" else "")
    hanging.run("--rageval-resume", run_id).assert_outcomes(passed=12)
    resumed = stable(hanging.path / "reports/metrics.json")
    hanging.run().assert_outcomes(passed=12)
    assert resumed == stable(hanging.path / "reports/metrics.json")


@pytest.mark.reliability("crashes", "SIGINT or SIGTERM twice, 0 to 2 s apart")
@pytest.mark.parametrize(
    ("phase", "gap", "number", "how"),
    [
        ("asking in a thread", 0.1, signal.SIGINT, []),
        *(pytest.param("asking", gap, signal.SIGINT, [], marks=pytest.mark.torture) for gap in GAPS),
        *(pytest.param("judging", gap, signal.SIGINT, ["-n", "2"], marks=pytest.mark.torture) for gap in GAPS[::2]),
        *(pytest.param("asking", gap, signal.SIGTERM, ["-n", "2"], marks=pytest.mark.torture) for gap in GAPS[1::2]),
    ],
)
def test_two_signals_end_a_run_within_two_seconds(
    hanging: Project, phase: str, gap: float, number: int, how: list[str], tally: Tally
):
    took: list[float] = []
    while not took or (took[-1] > GONE_S and len(took) < 3):  # on a machine under load, at one of three tries
        tally.tried()
        took.append(seconds_to_leave(hanging, phase, gap, number, *how))
    assert min(took) <= GONE_S, took
