"""kill -9 at each change that a run makes to its files: nothing finished is lost or asked again, the end is whole."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from kill_points import Killing
from processes import IS_THOROUGH
from project import ALONE, Project, a_case, a_missed_case, plain
from reliability import Tally
from run_invariants import check_files, check_one_record_a_case, stable, whole_lines

pytestmark = [pytest.mark.child_process, pytest.mark.usefixtures("alone")]

BOT = """
import bot, os

def note(name, what):
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, (what + "\\n").encode())
    os.close(descriptor)

def answer(question):
    note("asked.txt", question)
    if "broken" in question:
        raise ValueError("the index is gone")
    if "improved" in question and not os.path.exists("is-improved"):
        return {"answer": "", "abstained": True, "debug": {"retrieved_chunks": []}}
    found = bot.answer(question)
    found["answer"] += f" ({question})"
    return found
"""
JUDGE = """
import pytest
from noting import note

class Judge:
    model = "counting/1"
    heuristic = False

    async def score_groundedness(self, answer, context):
        note("judged.txt", answer.rpartition("(")[2].removesuffix(")"))
        return 1.0

@pytest.fixture(scope="session")
def rag_judge():
    return Judge()

@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    if report.when == "call" and report.nodeid.startswith("evalcases"):
        note("reported.txt", report.nodeid)
"""
CASES = [
    *(a_case(f"q{number}", f"boiling {number}") for number in range(3)),
    a_case("improved", "boiling improved"),
    a_missed_case("missed", question="boiling missed"),
    a_case("broken", "boiling broken"),
]
RUN = ("--rageval-update-baseline", "--rageval-force", "-q", "-p", "no:cacheprovider")
RESUME = (*RUN, "--rageval-resume", "one")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ALONE.items():
        monkeypatch.setenv(name, value)


class Judged:
    """A project with an older baseline, and the files of a run that nobody interrupted."""

    def __init__(self, project: Project, scratch: Path) -> None:
        self.project = project
        self.reports = project.path / "reports"
        self.killing = Killing(self.reports, scratch)
        self._before = scratch / "before"
        project.write("noting.py", BOT)
        project.write("conftest.py", JUDGE)
        project.configure('target = "noting:answer"\nconcurrency = 1\nlook_ahead = 1\nretries = 0')
        project.cases(CASES)
        project.run(*RUN, "--rageval-run-id", "before")
        project.write("is-improved", "")
        shutil.rmtree(self.reports / "cache")
        shutil.copytree(self.reports, self._before)
        self.old_baseline = stable(self.reports / "baseline.json")
        self.start_over()
        assert self.killing.run("", "pytest", *plain((*RUN, "--rageval-run-id", "one"))) == 1, self.killing.output
        self.points = self.killing.points
        self.metrics = stable(self.run / "metrics.json")
        self.new_baseline = stable(self.reports / "baseline.json")
        assert self.new_baseline != self.old_baseline
        assert json.loads(self.metrics)["comparison"]["flipped_to_pass"] == ["evalcases/a.jsonl::improved"]

    @property
    def run(self) -> Path:
        return self.reports / "runs" / "one"

    def start_over(self) -> None:
        """Go back to the files that were kept last."""
        shutil.rmtree(self.reports)
        shutil.copytree(self._before, self.reports)
        for name in ("asked.txt", "judged.txt", "reported.txt"):
            (self.project.path / name).unlink(missing_ok=True)

    def keep(self) -> None:
        """Keep the files as they are now."""
        shutil.rmtree(self._before)
        shutil.copytree(self.reports, self._before)

    def noted(self, name: str) -> list[str]:
        path = self.project.path / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def check_dead(self) -> None:
        """Check what a killed run left behind."""
        check_files(self.reports)
        assert stable(self.reports / "baseline.json") in (self.old_baseline, self.new_baseline)
        on_disk = {record["case_key"] for record in self._lines("results.jsonl")}
        lost = {*self.noted("reported.txt")} - on_disk
        assert not lost, "reported as done and not on disk"

    def _lines(self, name: str) -> list[dict[str, Any]]:
        return list(whole_lines(self.run / name)) if (self.run / name).exists() else []

    def finish(self) -> None:
        """Resume the run, or run it where it had not begun; check that the end is that of a whole run."""
        observed = {str(line["case"]["question"]) for line in self._lines("observations.jsonl") if not line["error"]}
        asked, judged = self.noted("asked.txt"), self.noted("judged.txt")
        recorded = {str(line["question"]) for line in self._lines("results.jsonl")}
        if (self.run / "config.json").exists():
            ended = self.project.run(*RESUME)
        else:
            shutil.rmtree(self.run, ignore_errors=True)
            ended = self.project.run(*RUN, "--rageval-run-id", "one")
        assert ended.ret == pytest.ExitCode.TESTS_FAILED  # by the missed case and the broken one
        again = Counter(self.noted("asked.txt")[len(asked) :])
        assert not again.keys() & (observed | recorded), "asked again though its answer is on disk"
        judged_again = Counter(self.noted("judged.txt")[len(judged) :])
        assert not judged_again.keys() & recorded, "judged again though its result is on disk"
        assert set((again | judged_again).values()) <= {1}
        check_files(self.reports)
        check_one_record_a_case(self.run, len(CASES))
        assert stable(self.run / "metrics.json") == self.metrics
        assert stable(self.reports / "metrics.json") == self.metrics
        assert stable(self.reports / "baseline.json") == self.new_baseline


@pytest.fixture
def judged(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    return Judged(project, tmp_path_factory.mktemp("scratch"))


TELLING = (
    "write observations.jsonl 3",  # an answer torn in its middle
    "sql INSERT 2",  # a judgement that was paid for, before it is kept
    "write results.jsonl 3",
    "write run.log 1",  # the error of a case, whose answer is on disk and whose result is not
    "rename config.json 2",  # with the seal of the records, before any aggregate
    "open .summary.md.* 1",  # the run has ended, and its reports are missing
    "rename baseline.texts.json.gz 1",
    "rename baseline.json 1",
)
"""Points of the quick form."""


@pytest.mark.reliability("crashes", "kill -9 at each change of a file, then resume")
def test_a_run_killed_at_any_change_of_its_files_is_finished(judged: Judged, tally: Tally):
    points = judged.points if IS_THOROUGH else TELLING
    assert IS_THOROUGH or {*TELLING} <= {*judged.points}, judged.points
    tally.tried(len(points))
    for point in points:
        print("killed at", point)
        judged.start_over()
        judged.killing.die(point, "pytest", *plain((*RUN, "--rageval-run-id", "one")))
        judged.check_dead()
        judged.finish()


@pytest.mark.reliability("crashes", "temporary files that a killed run left next to the baseline")
def test_what_a_killed_run_left_beside_the_baseline_is_not_for_git_and_goes(judged: Judged):
    judged.start_over()
    judged.killing.die("rename baseline.json 1", "pytest", *plain((*RUN, "--rageval-run-id", "one")))
    [left] = judged.reports.glob(".baseline*")
    git = ("git", "-c", "safe.directory=*")
    assert judged.project.process(*git, "init", "--quiet").ret == 0
    listed = judged.project.process(*git, "ls-files", "--others", "--exclude-standard", "reports").outlines
    assert sorted(listed) == ["reports/.gitignore", "reports/baseline.json", "reports/baseline.texts.json.gz"]
    an_hour_ago = time.time() - 3600
    os.utime(left, (an_hour_ago, an_hour_ago))
    judged.finish()
    assert not list(judged.reports.rglob(".*.rageval-tmp"))


@pytest.mark.torture
@pytest.mark.reliability("crashes", "kill -9 of a resumed run at each change of a file, then resume")
def test_a_resumed_run_that_is_killed_too_is_finished(judged: Judged, tally: Tally):
    judged.start_over()
    judged.killing.die("write results.jsonl 3", "pytest", *plain((*RUN, "--rageval-run-id", "one")))
    judged.keep()
    judged.killing.run("", "pytest", *plain(RESUME))
    points = judged.killing.points
    tally.tried(len(points))
    for point in points:
        print("killed at", point)
        judged.start_over()
        judged.killing.die(point, "pytest", *plain(RESUME))
        judged.check_dead()
        judged.finish()
