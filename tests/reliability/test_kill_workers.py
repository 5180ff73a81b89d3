"""kill -9 of a worker in each distribution of xdist: nothing finished is lost, and a resumed run is whole."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from processes import IS_THOROUGH
from project import Project, a_case, a_missed_case
from reliability import Tally
from run_invariants import check_files, check_one_record_a_case, stable, whole_lines

pytestmark = pytest.mark.child_process

BOT = """
import asyncio, bot, os, signal
from pathlib import Path

async def answer(question):
    descriptor = os.open("asked.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, (question + "\\n").encode())
    os.close(descriptor)
    await asyncio.sleep(0.005)
    if len(Path("asked.txt").read_text().splitlines()) >= int(Path("moment").read_text()):
        try:
            os.close(os.open("died", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return bot.answer(question)
"""
CASES = [*(a_case(f"q{number}", f"boiling {number}") for number in range(18)), a_missed_case("m", question="boiling m")]
DISTRIBUTIONS = {
    "blocks": (),
    "load": ("--dist", "load"),
    "worksteal": ("--dist", "worksteal"),
    "loadscope": ("--dist", "loadscope"),
    "loadfile": ("--dist", "loadfile"),
    "no": ("--dist", "no"),
    "each": ("--dist", "each"),
}
"""Without loadgroup, which waits for ever where a worker dies: a run says so when it begins."""
REPEATING = {"blocks", "loadscope", "loadfile", "each"}
"""Distributions in which another worker takes the case whose worker died, or has it anyway."""
USUAL = ("blocks", "loadscope")


@pytest.fixture
def dying(project: Project) -> Project:
    project.write("dying.py", BOT)
    project.configure('target = "dying:answer"\nconcurrency = 4\nlook_ahead = 6\nretries = 0')
    project.cases(CASES[:10], "evalcases/a.jsonl")
    project.cases(CASES[10:], "evalcases/b.jsonl")
    return project


@pytest.mark.reliability("crashes", "kill -9 of a worker, in each distribution, then resume")
@pytest.mark.parametrize(
    "distribution",
    [name if name in USUAL else pytest.param(name, marks=pytest.mark.torture) for name in DISTRIBUTIONS],
)
def test_a_killed_worker_loses_nothing(dying: Project, distribution: str, tally: Tally):
    how = ("-n", "2", *DISTRIBUTIONS[distribution])
    dying.write("moment", "1000")
    assert dying.run("--rageval-run-id", "whole").ret == pytest.ExitCode.TESTS_FAILED
    whole = stable(dying.path / "reports/metrics.json")
    moments = random.Random(distribution)
    for number in range(5 if IS_THOROUGH else 1):
        tally.tried()
        moment = moments.randint(1, len(CASES))
        print("killed at question", moment)
        run = dying.path / f"reports/runs/one-{number}"
        for name in ("asked.txt", "died"):
            (dying.path / name).unlink(missing_ok=True)
        dying.write("moment", str(moment))
        result = dying.run(*how, "--rageval-run-id", run.name)
        assert (dying.path / "died").exists()
        assert result.ret == pytest.ExitCode.TESTS_FAILED, result.stdout.str()
        check_files(dying.path / "reports")
        check_one_record_a_case(run, len(CASES))
        done = {record["question"] for record in whole_lines(run / "results.jsonl") if record["outcome"] != "error"}
        assert len(done) >= len(CASES) - 1
        asked = (dying.path / "asked.txt").read_text().splitlines()
        assert dying.run(*how, "--rageval-resume", run.name).ret == pytest.ExitCode.TESTS_FAILED
        again = Counter((dying.path / "asked.txt").read_text().splitlines()[len(asked) :])
        assert not again.keys() & done
        check_one_record_a_case(run, len(CASES))
        now = stable(run / "metrics.json")
        if distribution in REPEATING:  # then the case is flaky, and the verdict says so
            assert json.loads(now)["metrics"] == json.loads(whole)["metrics"]
            assert json.loads(now)["outcomes"] == json.loads(whole)["outcomes"]
        else:
            assert now == whole
