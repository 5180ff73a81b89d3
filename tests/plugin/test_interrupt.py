"""Ctrl-C ends a run at once, keeps what is finished and says that it is a part."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest
from processes import ending, wait_until
from project import Project, a_case

pytestmark = pytest.mark.child_process

SLOW = """
import asyncio, bot
async def answer(question):
    await asyncio.sleep(600 if "slow" in question else 0)
    return bot.answer(question)
"""


SLOW_SECOND = """
import asyncio, bot, itertools
asked = itertools.count()
async def answer(question):
    await asyncio.sleep(30 if next(asked) else 0)
    return bot.answer(question)
"""


@pytest.mark.parametrize("how", [[], ["-n", "2"]])
def test_ctrl_c_keeps_finished_cases_and_leaves_at_once(project: Project, how: list[str]):
    project.write("slow.py", SLOW)
    project.configure('target = "slow:answer"')
    project.cases([a_case(f"q{n}", "boiling" if n < 4 else "boiling slow") for n in range(12)])
    process = project.start(*how, stdout=subprocess.PIPE)
    finished = 4 if not how else 2
    wait_until(lambda: project.runs and len(_lines(project)) >= finished, "quick cases are recorded", process)
    process.send_signal(signal.SIGINT)
    output = ending(process)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output.decode()
    metrics = project.metrics()
    assert metrics["partial"] is True
    assert metrics["outcomes"]["passed"] >= finished
    assert b"partial run" in output
    assert b"Traceback" not in output
    assert b"! Interrupted: by SIGINT !" in output
    assert b"KeyboardInterrupt" not in output


@pytest.mark.parametrize("how", [[], ["-n", "2"]])
def test_before_the_first_case_is_done_it_is_said_how_the_run_goes_on(project: Project, how: list[str]):
    project.write("slow.py", SLOW)
    project.configure('target = "slow:answer"')
    # With workers each case is asked when it comes to that: the second trial waits.
    project.cases([a_case("q0", "boiling slow" if not how else "boiling"), a_case("q1"), a_case("q2")])
    repeat = ["--rageval-repeat", "2"] if how else []
    project.write("slow.py", SLOW if not how else SLOW_SECOND)
    process = project.start(*how, *repeat, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_until(
        lambda: project.runs and any(file.stat().st_size for file in project.runs[-1].glob("observations*")),
        "an observation",
    )
    process.send_signal(signal.SIGINT)
    output = ending(process)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output.decode()
    resume = f"pytest --rageval-resume {project.runs[-1].name} finishes the run"
    assert resume in output.decode()
    assert b"KeyboardInterrupt" not in output


def _lines(project: Project) -> list[str]:
    path = project.runs[-1] / "results.jsonl"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.mark.parametrize(
    ("how", "gap"),
    [
        ([], 0.3),
        (["-n", "2"], 0.0),
        pytest.param([], 0.0, marks=pytest.mark.torture),
        pytest.param(["-n", "2"], 0.3, marks=pytest.mark.torture),
    ],
)
def test_a_second_ctrl_c_leaves_a_partial_run_whose_metrics_are_of_its_records(
    project: Project, how: list[str], gap: float
):
    project.write("slow.py", SLOW)
    project.configure('target = "slow:answer"')
    project.cases([a_case(f"q{n}", "boiling" if n < 40 else "boiling slow") for n in range(60)])
    process = project.start(*how, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_until(lambda: project.runs and len(_lines(project)) >= 10, "ten cases are recorded", process)
    process.send_signal(signal.SIGINT)
    time.sleep(gap)
    process.send_signal(signal.SIGINT)
    output = ending(process)  # long before the slow answers come
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output.decode()
    assert b"Traceback" not in output
    metrics = project.metrics()
    assert next(iter(metrics)) == "partial"
    assert metrics["partial"] is True
    assert metrics["total_tests"] == len(project.records()) == metrics["selection"]["recorded"]
    assert not list(project.runs[-1].glob("*-gw*"))
