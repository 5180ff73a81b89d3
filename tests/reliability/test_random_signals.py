"""Ctrl-C at random moments of a run's whole life: the baseline is old or new, and nothing finished is lost."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time

import pytest
from processes import ending, rounds
from project import Project, a_case
from reliability import Tally
from run_invariants import check_files, stable, whole_lines

pytestmark = pytest.mark.child_process

BOT = """
import asyncio, bot

async def answer(question):
    await asyncio.sleep(0.05)
    return bot.answer(question)
"""
JUDGE = """
import asyncio, pytest, time

class Judge:
    model = "slow/1"
    async def score_groundedness(self, answer, context):
        await asyncio.sleep(0.05)
        return 1.0

@pytest.fixture(scope="session")
def rag_judge():
    return Judge()

def pytest_collection_modifyitems(items):
    time.sleep(0.2)
"""
CASES = 12
UPDATE = ("--rageval-update-baseline", "--rageval-force", "-q")
GONE_S = 30.0
"""Seconds after a second signal, also on a slow machine; `test_signals` has the two seconds."""


@pytest.fixture
def slow(project: Project) -> Project:
    project.write("slow.py", BOT)
    project.write("conftest.py", JUDGE)
    project.configure('target = "slow:answer"\njudge_cache = "off"\nconcurrency = 2\nlook_ahead = 2')
    project.cases([a_case(f"q{number}", f"boiling {number}") for number in range(CASES)])
    return project


def start(project: Project, *how: str) -> subprocess.Popen[bytes]:
    shutil.rmtree(project.path / "reports", ignore_errors=True)
    project.write("reports/baseline.json", "{}")
    return project.start(*how, *UPDATE, "--rageval-run-id", "one", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def check(project: Project, process: subprocess.Popen[bytes], output: str) -> bool:
    """Check what a run left that got a signal; return True if it has to be finished."""
    reports = project.path / "reports"
    run = reports / "runs" / "one"
    check_files(reports)
    is_old = (reports / "baseline.json").read_text(encoding="utf-8") == "{}"
    if process.returncode == pytest.ExitCode.OK:
        assert not is_old, output
        return False
    ends = (pytest.ExitCode.INTERRUPTED, -signal.SIGINT, -signal.SIGTERM)
    assert process.returncode in ends, output
    if not (run / "config.json").exists():
        assert is_old, "no run, and yet a baseline"
        return False
    lines = [line for path in run.glob("results*.jsonl") for line in whole_lines(path)]
    if (run / "metrics.json").exists() and len(lines) < CASES:
        assert is_old, "the baseline of a partial run"
        assert b'"partial": true' in (run / "metrics.json").read_bytes()
    return is_old


@pytest.mark.reliability("crashes", "SIGINT or SIGTERM, once or twice, at a random moment of a run's life")
def test_a_signal_at_any_moment_leaves_an_old_or_a_new_baseline(slow: Project, tally: Tally):
    began = time.monotonic()
    whole_run = start(slow)
    assert whole_run.wait(120) == pytest.ExitCode.OK
    life = time.monotonic() - began
    whole = stable(slow.path / "reports/metrics.json")
    moments = random.Random(6)
    for number in range(rounds(60, 2)):
        tally.tried()
        moment = moments.uniform(0.1, 1.05) * life
        sent = moments.choice([signal.SIGINT, signal.SIGTERM])
        gaps = moments.choice([[], [0.0], [0.1], [0.5]])
        how = ("-n", "2") if number % 4 == 3 else ()
        print("after", moment, "of", life, sent.name, "and again after", gaps, how)
        process = start(slow, *how)
        time.sleep(moment)
        for wait in (0.0, *gaps):
            time.sleep(wait)
            if process.poll() is None:
                os.killpg(process.pid, sent)
        sent_at = time.monotonic()
        output = ending(process).decode()
        if gaps:
            assert time.monotonic() - sent_at < GONE_S, output
        if check(slow, process, output):
            assert slow.run(*UPDATE, "--rageval-resume", "one").ret == pytest.ExitCode.OK
            assert stable(slow.path / "reports/metrics.json") == whole
