"""Runs that are kept, and runs that go: never the baseline's, never one that is being written, nothing outside."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from stored_runs import a_run, at

from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.history import PruneResult, RunSummary, remove, run_summaries, run_summary, runs_to_prune
from pytest_rageval.runs.reader import StoredRun


def ids(runs: Iterable[RunSummary]) -> list[str]:
    return [run.run_id for run in runs]


def days_ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


def going(
    runs: Sequence[RunSummary],
    keep: int | None = None,
    older_than_days: float | None = None,
    baseline: str | None = None,
) -> PruneResult:
    return runs_to_prune(runs, keep=keep, older_than_days=older_than_days, baseline=baseline)


# ── what is there ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_that_another_process_holds_is_being_written(tmp_path: Path):
    path = a_run(tmp_path, "a", is_finished=False)
    writer = RunFolder(path)
    writer.lock()
    assert run_summary(StoredRun(path)).state == "being written"
    writer.close()
    assert run_summary(StoredRun(path)).state == "interrupted"


@pytest.mark.parametrize("name", ["config.json", "metrics.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff", b'{"a":' * 10**5])
def test_a_run_that_cannot_be_read_is_broken_and_listed_all_the_same(tmp_path: Path, name: str, content: bytes):
    path = a_run(tmp_path, "20260301_070000")
    (path / name).write_bytes(content)
    run = run_summary(StoredRun(path))
    if name == "config.json" and content == b"{}":
        assert run.state == "complete"  # nothing of it is needed here
    else:
        # metrics.json says when it ended; without that its id says when it began.
        assert (run.state, run.timestamp.isoformat()) == ("broken", at(12 if name == "config.json" else 7))


def test_folders_and_links_that_are_no_runs_are_not_listed(tmp_path: Path):
    elsewhere = a_run(tmp_path / "other", "a")
    (tmp_path / "runs" / "notes").mkdir(parents=True)
    (tmp_path / "runs" / "link").symlink_to(elsewhere)
    assert run_summaries(tmp_path) == []


# ── what may go ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def five(tmp_path: Path) -> list[RunSummary]:
    """Runs a to e, 50, 40, … 10 days old."""
    for number, name in enumerate("abcde"):
        a_run(tmp_path, name, ended=days_ago(50 - 10 * number))
    return run_summaries(tmp_path)


@pytest.mark.parametrize(
    ("keep", "older_than", "gone"),
    [(2, None, "abc"), (0, None, "abcde"), (9, None, ""), (None, 25, "abc"), (None, 0, "abcde"), (4, 25, "a"),
     (1, 35, "ab")],
)  # fmt: skip
def test_those_go_for_which_all_that_is_told_holds(five: list[RunSummary], keep, older_than, gone: str):
    found = going(five, keep, older_than)
    assert ids(found.removed) == list(gone)
    assert found.kept == []


def test_a_run_that_is_being_written_stays_whatever_its_state_was(five: list[RunSummary]):
    writer = RunFolder(five[0].path)
    writer.lock()
    found = going(five, keep=4)
    assert (found.removed, [reason for _, reason in found.kept]) == ([], ["it is being written"])
    done = remove(five[:2])
    assert (ids(done.removed), [(run.run_id, why) for run, why in done.kept]) == (["b"], [("a", "it is being written")])
    writer.close()
    assert five[0].path.exists()


def test_removing_takes_the_folder_and_nothing_that_it_links_to(tmp_path: Path, five: list[RunSummary]):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("x")
    (five[0].path / "link").symlink_to(precious)
    assert ids(remove(five[:1]).removed) == ["a"]
    assert (precious / "thesis.txt").exists()
    assert sorted(os.listdir(tmp_path / "runs")) == ["b", "c", "d", "e"]


def test_a_run_that_is_gone_already_is_said_and_the_others_go(five: list[RunSummary]):
    assert ids(remove(five[:1]).removed) == ["a"]
    done = remove(five[:2])
    assert ids(done.removed) == ["b"]
    ((run, reason),) = done.kept
    assert (run.run_id, reason.startswith("it cannot be deleted: No such file")) == ("a", True)
