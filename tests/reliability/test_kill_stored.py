"""kill -9 while a stored run is decided again: the run is old, or new, or says so; the same verb finishes it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kill_points import Killing
from processes import IS_THOROUGH
from project import RUN, StoredProject, a_case, a_missed_case, rageval
from reliability import Tally
from run_invariants import check_files, check_one_record_a_case, stable, whole_lines

pytestmark = pytest.mark.child_process

CASES = [*(a_case(f"q{number}", f"boiling {number}") for number in range(3)), a_missed_case("missed")]
VERBS = {
    "judge": ("judge", RUN, "--judge", "stub:2", "--metrics", "groundedness", "--judge-cache", "off"),
    "relabel": ("score", RUN, "--cases", "relabelled/evalcases/a.jsonl"),
}
READER = ("gate", RUN, "--json")


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoredProject:
    project = StoredProject.new(tmp_path / "project", CASES)
    monkeypatch.chdir(project.path)
    project.cases([*CASES[:-1], a_case("missed", tags=["relabelled"])], "relabelled/evalcases/a.jsonl")
    project.pytest()
    return project


def outcomes(reports: Path) -> dict[str, str]:
    return {record["case_key"]: record["outcome"] for record in whole_lines(reports / "runs" / RUN / "results.jsonl")}


@pytest.mark.reliability("crashes", "kill -9 while a stored run is decided again", costs="false green")
@pytest.mark.parametrize("verb", VERBS)
def test_a_killed_verb_leaves_a_run_that_is_old_or_new_or_says_so(
    stored: StoredProject, tmp_path: Path, tally: Tally, verb: str
):
    reports = stored.path / "reports"
    killing = Killing(reports, tmp_path)
    shutil.copytree(reports, tmp_path / "before")
    metrics = reports / "runs" / RUN / "metrics.json"
    before = (outcomes(reports), stable(metrics), int(rageval(stored.path, *READER).returncode))
    assert killing.run("", "rageval", *VERBS[verb]) in (0, 1), killing.output
    after = (outcomes(reports), stable(metrics), int(rageval(stored.path, *READER).returncode))
    assert before[0] != after[0]
    points = killing.points if IS_THOROUGH else [point for point in killing.points if point.startswith("rename")]
    tally.tried(len(points))
    for point in points:
        print("killed at", point)
        shutil.rmtree(reports)
        shutil.copytree(tmp_path / "before", reports)
        killing.die(point, "rageval", *VERBS[verb])
        check_files(reports)
        shown = rageval(stored.path, *READER)
        state = (outcomes(reports), stable(metrics), int(shown.returncode))
        if state not in (before, after):
            assert shown.returncode != 0
            assert "`rageval score one` finishes that" in shown.stderr + shown.stdout, state
            remedied = rageval(stored.path, "score", RUN)
            assert remedied.returncode == after[2]
            assert (outcomes(reports), stable(metrics)) == after[:2]
        again = rageval(stored.path, *VERBS[verb])
        assert again.returncode == after[2], again.stdout + again.stderr
        check_one_record_a_case(reports / "runs" / RUN, len(CASES))
        assert (outcomes(reports), stable(metrics)) == after[:2]
