"""kill -9 of a command with two workers at each change of its files: nothing on disk is lost or asked again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from kill_points import Killing
from processes import IS_THOROUGH
from project import StoredProject, a_case, a_missed_case, rageval
from reliability import Tally
from run_invariants import check_files, check_one_record_a_case, stable, whole_lines

pytestmark = pytest.mark.child_process

BOT = """
import bot, os

def answer(question):
    descriptor = os.open("asked.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, (question + "\\n").encode())
    os.close(descriptor)
    return bot.answer(question)
"""
CASES = [
    *(a_case(f"q{number}", f"boiling {number}") for number in range(5)),
    a_missed_case("missed", question="missed"),
]
RUN = ("run", "--workers", "2", "--update-baseline", "--force")
TELLING = ("write results.jsonl 2", "rename config.json 2", "rename baseline.json 1")
"""Points of the quick form."""


def lines(path: Path) -> list[Any]:
    return list(whole_lines(path)) if path.exists() else []


@pytest.mark.reliability("crashes", "kill -9 of a command with workers at each change of a file, then resume")
def test_a_command_with_workers_that_is_killed_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
):
    project = StoredProject.new(tmp_path / "project", CASES, 'target = "noting:answer"\nretries = 0')
    project.write("noting.py", BOT)
    monkeypatch.chdir(project.path)
    reports, asked = project.path / "reports", project.path / "asked.txt"
    run = reports / "runs" / "one"
    killing = Killing(reports, tmp_path)
    assert killing.run("", "rageval", *RUN, "--run-id", "one") == 1, killing.output
    whole = stable(run / "metrics.json")
    baseline = stable(reports / "baseline.json")
    points = killing.points if IS_THOROUGH else TELLING
    assert IS_THOROUGH or {*TELLING} <= {*killing.points}, killing.points
    for point in points:
        print("killed at", point)
        shutil.rmtree(reports)
        asked.unlink(missing_ok=True)
        # Records arrive in any order and number of writes: a point that is not reached is none.
        if killing.run(point, "rageval", *RUN, "--run-id", "one") >= 0:
            continue
        tally.tried()
        check_files(reports)
        kept = {line["case"]["question"] for line in lines(run / "observations.jsonl")}
        kept |= {line["question"] for line in lines(run / "results.jsonl")}
        before = len(asked.read_text().splitlines()) if asked.exists() else 0
        how = ("--resume", "one") if (run / "config.json").exists() else ("--run-id", "one")
        if how[0] == "--run-id":
            shutil.rmtree(run, ignore_errors=True)
        ended = rageval(project.path, *RUN, *how)
        assert ended.returncode == 1, ended.stdout + ended.stderr
        again = asked.read_text().splitlines()[before:]
        assert not kept & {*again}, "asked again though its answer is on disk"
        check_one_record_a_case(run, len(CASES))
        assert stable(run / "metrics.json") == whole
        assert stable(reports / "baseline.json") == baseline
