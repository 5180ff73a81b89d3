"""Each verb on a stored run of which a file is not there: none of them turns the failed run green."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import SOME, StoredProject, a_missed_case, rageval

pytestmark = pytest.mark.reliability("disk", "verbs on runs without one of their files", costs="false green")

FILES = ("config.json", "metrics.json", "results.jsonl", "observations.jsonl", "scores.jsonl")
VERBS = {
    "score": ("score", "one"),
    "aggregate": ("score", "one", "--aggregate-only"),
    "score with labels": ("score", "one", "--cases", "evalcases"),
    "judge": ("judge", "one", "--judge", "lexical"),
    "abstention": ("abstention", "one"),
    "gate": ("gate", "one"),
    "compare": ("compare", "two", "one"),
}


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> StoredProject:
    """A run that passes and one that fails."""
    project = StoredProject.new(tmp_path_factory.mktemp("absent") / "project", SOME)
    project.pytest(run_id="two")
    project.cases([*SOME, a_missed_case("missed")])
    project.pytest(run_id="one")
    return project


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("verb", VERBS)
def test_a_failed_run_without_a_file_is_not_turned_green(two_runs: StoredProject, tmp_path: Path, verb: str, name: str):
    project = two_runs.copied(tmp_path / "project")
    (project.folder("one") / name).unlink()
    before = project.files("one")
    done = rageval(project.path, *VERBS[verb])
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    if done.returncode == 2:
        # What was refused is as it was.
        assert project.files("one") == before
