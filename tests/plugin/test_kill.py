"""kill -9 at random moments: nothing that was finished is lost or asked again, and the end is that of a whole run."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import ending, wait_until
from processes import kill as kill_all
from project import Project, a_case, a_missed_case
from reliability import Tally

pytestmark = pytest.mark.child_process

COUNTING_BOT = """
import asyncio, bot, os
async def answer(question):
    await asyncio.sleep(0.01)
    found = bot.answer(question)
    descriptor = os.open("asked.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, (question + "\\n").encode())
    os.close(descriptor)
    return found
"""
CASES = [*(a_case(f"q{n}", f"boiling {n}") for n in range(50)), a_missed_case("missed", question="boiling missed")]
LONGEST = 3.5
"""Seconds after its start within which a run is killed: some die before the first case, some are not hit."""


@pytest.fixture
def counting(project: Project) -> Project:
    project.write("counting.py", COUNTING_BOT)
    project.configure('target = "counting:answer"\nconcurrency = 4\nlook_ahead = 8')
    project.cases(CASES)
    return project


def start(project: Project, *how: str) -> subprocess.Popen[bytes]:
    # Its workers have the same standard error, which ends with the last of them.
    return project.start("-q", *how, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def kept(folder: Path) -> set[str]:
    """Questions of which a whole line is on disk: of a result or of what was observed."""
    found = set()
    for path in [*folder.glob("results*.jsonl"), *folder.glob("observations*.jsonl")]:
        for line in path.read_bytes().split(b"\n")[:-1]:
            record = json.loads(line)
            if (record["error"] or {}).get("kind") == "crash":
                continue  # stands for a case that nobody finished
            found.add(record["case"]["question"] if "case" in record else record["question"])
    return found


def has_begun(project: Project) -> bool:
    return any(path.stat().st_size for run in project.runs for path in run.glob("results*.jsonl"))


Kill = Callable[["subprocess.Popen[bytes]"], None]


def kill_a_worker(process: subprocess.Popen[bytes]) -> None:
    asking = ["pgrep", "-P", str(process.pid)]
    if workers := subprocess.run(asking, capture_output=True, text=True, check=False, timeout=60).stdout.split():
        with contextlib.suppress(ProcessLookupError):  # the run ended meanwhile
            os.kill(int(workers[0]), signal.SIGKILL)


WAYS: dict[str, tuple[list[str], Kill]] = {
    "one process": ([], kill_all),
    "machine of two workers": (["-n", "2"], kill_all),
    "controller of two workers": (["-n", "2"], subprocess.Popen.kill),
    "one of two workers": (["-n", "2"], kill_a_worker),
}


def one_round(project: Project, how: list[str], kill: Kill, moment: float | None) -> None:
    """Kill a run at that moment, in seconds after its start, or else once it has done something; then finish it."""
    for name in ("asked.txt", "reports/runs", "reports/metrics.json"):
        subprocess.run(["rm", "-rf", str(project.path / name)], check=True, timeout=60)
    process = start(project, *how)
    if moment is None:
        wait_until(lambda: has_begun(project), "something is recorded")
    else:
        time.sleep(moment)
    if process.poll() is None:
        kill(process)
    ending(process)  # with its workers, which notice that nobody controls them
    if not any((run / "config.json").is_file() for run in project.runs):  # none had begun: a folder at most is there
        project.run(*how).assert_outcomes(passed=50, failed=1)
        return
    asked_file = project.path / "asked.txt"
    before = asked_file.read_text().splitlines() if asked_file.exists() else []
    done = kept(project.runs[-1])
    assert done <= {case["question"] for case in CASES}
    project.run("--rageval-resume", "latest", *how).assert_outcomes(passed=50, failed=1)
    after = Counter(asked_file.read_text().splitlines()[len(before) :])
    assert not done & after.keys(), "asked again though it was kept"
    assert set(after.values()) <= {1}
    assert len(project.runs) == 1
    assert len(project.records()) == len(CASES)  # which sees to it that no case is there twice


@pytest.fixture
def whole(counting: Project) -> str:
    counting.run()
    return counting.stable_metrics()


@pytest.mark.reliability("crashes", "kill -9 at a random moment, then resume")
@pytest.mark.parametrize("way", ["one process", "controller of two workers", "one of two workers"])
def test_a_killed_run_is_finished(counting: Project, whole: str, way: str):
    how, kill = WAYS[way]
    one_round(counting, how, kill, None)
    assert counting.stable_metrics() == whole


@pytest.mark.torture
@pytest.mark.reliability("crashes", "kill -9 at a random moment, then resume")
@pytest.mark.parametrize("way", WAYS)
def test_killed_at_25_random_moments(counting: Project, whole: str, way: str, tally: Tally):
    how, kill = WAYS[way]
    moments = random.Random(way)
    tally.tried(25)
    for number in range(25):
        moment = moments.uniform(0.3, LONGEST)
        one_round(counting, how, kill, moment)
        assert counting.stable_metrics() == whole, f"round {number}, killed after {moment:.3f} s"
