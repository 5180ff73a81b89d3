"""Run folders as rows: runs in every state, what is read again, what filters and history find."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from stored_runs import a_result, a_run, rewrite, some_cases, store_full
from web_app import served

from pytest_rageval.io.lock import take_lock
from pytest_rageval.web import run_list
from pytest_rageval.web.run_list import (
    RunFilter,
    RunFolders,
)
from pytest_rageval.web.run_rows import RunRow, read_run
from pytest_rageval.web.site import Site, WebSettings


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    return tmp_path / "reports"


@pytest.fixture
def folders(tmp_path: Path, reports: Path) -> RunFolders:
    return RunFolders(Site(WebSettings(root=tmp_path, reports=reports, data=tmp_path / "data")))


def rows(folders: RunFolders, **narrowed: str) -> dict[str, RunRow]:
    """The runs that a filter leaves, as they are now."""
    return {run.run_id: run for run in RunFilter(**narrowed).of(folders.rows())}


def test_runs_in_every_state_are_rows(reports: Path, folders: RunFolders):
    store_full(reports, "worse", some_cases(3), comparison=None)
    rewrite(reports / "runs/worse/metrics.json", lambda metrics: metrics.update(
        verdict={"tone": "amber", "word": "Worse", "sentence": "Worse: 3.", "problems": {}}))  # fmt: skip
    a_run(reports, "part", a_result("a"), missing=("evalcases/a.jsonl::b",))
    a_run(reports, "stopped", a_result("a"), is_finished=False)
    writing = a_run(reports, "running", a_result("a"), is_finished=False)
    broken = a_run(reports, "broken")
    (broken / "metrics.json").write_text('{"metrics":')
    (reports / "runs" / "empty").mkdir()
    strange = a_run(reports, "strange")
    rewrite(strange / "metrics.json", lambda metrics: metrics.update(comparison=["no", "mapping"]))
    lock = take_lock(writing)
    try:
        runs = rows(folders)
    finally:
        os.close(lock)
    assert {run_id: run.state for run_id, run in runs.items()} == {
        "worse": "worse", "part": "partial", "stopped": "stopped", "running": "running", "broken": "unreadable",
        "empty": "unreadable", "strange": "unreadable",
    }  # fmt: skip
    assert "metrics.json" in str(runs["broken"].problem)
    assert "config.json" in str(runs["empty"].problem)
    assert "its page says how to finish it" in str(runs["stopped"].problem)
    assert rows(folders)["running"].state == "stopped", "nobody writes it any more, and no file of it has changed"


def test_only_what_changed_is_read_again(reports: Path, folders: RunFolders, monkeypatch: pytest.MonkeyPatch):
    for number in range(5):
        a_run(reports, f"run-{number}")
    rows(folders)
    read: list[str] = []

    def watched(folder: Path) -> RunRow:
        read.append(folder.name)
        return read_run(folder)

    monkeypatch.setattr(run_list, "read_run", watched)
    assert rows(folders).keys() == {f"run-{number}" for number in range(5)}
    assert read == []
    rewrite(reports / "runs/run-3/metrics.json", lambda metrics: metrics.update(description="said later"))
    a_run(reports, "run-5")
    shutil.rmtree(reports / "runs" / "run-0")
    runs = rows(folders)
    assert sorted(read) == ["run-3", "run-5"]
    assert runs["run-3"].description == "said later"
    assert "run-0" not in runs


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
@pytest.mark.parametrize("name", ["config.json", "metrics.json", "results.jsonl", "observations.jsonl", "scores.jsonl"])
def test_a_pipe_or_a_folder_in_place_of_a_file_is_said_and_never_waited_for(
    tmp_path: Path, reports: Path, name: str, make: Callable[[Path], None]
):
    file = a_run(reports, "one", a_result("a")) / name
    file.unlink(missing_ok=True)
    make(file)
    with served(tmp_path) as app:
        for address in ("/", "/runs", "/runs/one", "/runs/one/cases/a", "/runs/one/export.csv", "/compare?a=one&b=one"):
            assert app.get(address).status_code < 500
