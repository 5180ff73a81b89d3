"""A wall clock that goes back or jumps during a run or between two changes no score and hides no run."""

from __future__ import annotations

import json
import os
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from project import Project, a_case, a_missed_case
from run_invariants import check_files, check_one_record_a_case, whole_lines

from pytest_rageval.http.shared_pause import SharedPause
from pytest_rageval.runs import folder, run_ref

CASES = [*(a_case(f"q{number}", f"boiling {number}") for number in range(5)), a_missed_case("missed")]


class SetClock(datetime):
    """A clock that shows a moment of the test's choice."""

    shown = datetime(2026, 3, 1, 12, tzinfo=UTC)

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return cls.shown.astimezone(tz)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[SetClock]:
    for module in (folder, run_ref):
        monkeypatch.setattr(module, "datetime", SetClock)
    monkeypatch.setattr(SetClock, "shown", datetime.now(UTC))
    return SetClock


@pytest.fixture
def timed(project: Project) -> Project:
    project.cases(CASES)
    return project


@pytest.mark.reliability("clock", "the wall clock goes back or jumps during a run")
@pytest.mark.parametrize("step", [-3600.0, 86_400.0, 1e9, -1e9])
def test_a_clock_that_jumps_changes_nothing(timed: Project, monkeypatch: pytest.MonkeyPatch, step: float):
    timed.run().assert_outcomes(passed=5, failed=1)
    expected = timed.stable_metrics()
    shown = time.time()

    def jumping() -> float:
        nonlocal shown
        shown += step
        return max(shown, 0.0)

    monkeypatch.setattr(time, "time", jumping)
    monkeypatch.setattr(time, "time_ns", lambda: int(jumping() * 1e9))
    timed.run("--rageval-run-id", "jumping").assert_outcomes(passed=5, failed=1)
    monkeypatch.undo()
    run = timed.path / "reports/runs/jumping"
    check_files(timed.path / "reports")
    check_one_record_a_case(run, len(CASES))
    assert timed.stable_metrics() == expected
    latencies = [record["latency"]["total_ms"] for record in whole_lines(run / "results.jsonl")]
    assert all(0 <= latency < 60_000 for latency in latencies)


@pytest.mark.reliability("clock", "the wall clock was set back between two runs", costs="false green")
def test_the_run_that_began_last_is_the_latest(timed: Project, clock: type[SetClock]):
    timed.run("--rageval-run-id", "first")
    clock.shown -= timedelta(hours=1)
    timed.run("--rageval-run-id", "second")
    clock.shown -= timedelta(days=400)
    timed.run("--rageval-run-id", "third")
    runs = timed.path / "reports/runs"
    assert [path.name for path in run_ref.in_time(runs)] == ["first", "second", "third"]
    assert run_ref.find_run(timed.path / "reports", "latest").name == "third"


@pytest.mark.reliability("clock", "several runs in one second")
def test_runs_of_one_second_have_folders_of_their_own(timed: Project, clock: type[SetClock]):
    for _ in range(11):
        timed.run("-k", "q1")
    name = f"{clock.shown:%Y%m%d_%H%M%S}"
    expected = [name, *(f"{name}_{number}" for number in range(2, 12))]
    assert [path.name for path in run_ref.in_time(timed.path / "reports/runs")] == expected


@pytest.mark.reliability("clock", "the wall clock jumps while calls wait for a server")
@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_pause_lasts_as_long_as_the_server_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: float):
    pause = SharedPause(tmp_path / "pause")
    pause.extend(30)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + step)
    assert 29 < pause.seconds_left() <= 30


def a_run(runs: Path, name: str, begun: object, changed: float | None = None) -> Path:
    """Make the folder of a run that began at this moment, and was changed then."""
    folder = runs / name
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"begun": begun}), encoding="utf-8")
    for path in (folder / "config.json", folder):
        if changed is not None:
            os.utime(path, (changed, changed))
    return folder


@pytest.mark.reliability("clock", "folders of runs with odd moments, names or contents")
@pytest.mark.parametrize(
    ("begun", "changed"),
    [
        ("1931-05-04T10:00:00+00:00", -1.2e9),
        ("9999-12-31T23:59:59.999999+00:00", 2e11),
        ("9999-12-31T23:59:59.999999-05:00", None),
        ("0001-01-01T00:00:00+05:00", None),
        ("yesterday", 2e12),
        (None, -1.2e9),
        (7, None),
        ("2026-03-01T12:00:00", None),
    ],
)
def test_a_run_begins_whatever_moment_another_one_shows(timed: Project, begun: object, changed: float | None):
    runs = timed.path / "reports" / "runs"
    a_run(runs, "odd", begun, changed)
    timed.run("--rageval-run-id", "mine").assert_outcomes(passed=5, failed=1)
    assert len(run_ref.in_time(runs)) == 2
    begun_mine = datetime.fromisoformat(json.loads((runs / "mine/config.json").read_text())["begun"])
    assert begun_mine.tzinfo is not None
    assert run_ref.find_run(timed.path / "reports", "latest").name in ("mine", "odd")


@pytest.mark.reliability("clock", "folders of runs with odd moments, names or contents")
@pytest.mark.parametrize("shown", [datetime(1969, 7, 20, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)])
def test_a_run_begins_whatever_the_clock_shows(timed: Project, clock: type[SetClock], shown: datetime):
    a_run(timed.path / "reports" / "runs", "before", datetime.now(UTC).isoformat())
    clock.shown = shown
    timed.run("--rageval-run-id", "mine").assert_outcomes(passed=5, failed=1)
    assert run_ref.find_run(timed.path / "reports", "latest").name == "mine"


def test_runs_of_one_microsecond_stand_in_the_order_in_which_they_began(tmp_path: Path, clock: type[SetClock]):
    names = ["z", "y", "x"]
    for name in names:
        a_run(tmp_path, name, run_ref.next_moment(tmp_path).isoformat(timespec="microseconds"))
    assert clock.shown.year > 1
    assert [path.name for path in run_ref.in_time(tmp_path)] == names


@pytest.mark.reliability("clock", "folders of runs with odd moments, names or contents")
def test_folders_that_are_no_runs_keep_no_run_from_beginning(timed: Project):
    runs = timed.path / "reports" / "runs"
    for name in ("-rf", "a\nb", "물 ü", "*[?]", "\udcff", " "):
        a_run(runs, name, "2026-03-01T12:00:00+00:00")
    (runs / "a file").write_text("x")
    (runs / "config is a folder" / "config.json").mkdir(parents=True)
    (runs / "dangling").symlink_to(runs / "gone")
    (runs / "binary").mkdir()
    (runs / "binary" / "config.json").write_bytes(b"\xff\x00{")
    locked = a_run(runs, "locked", "2026-03-01T12:00:00+00:00")
    locked.chmod(0)
    try:
        timed.run("--rageval-run-id", "mine").assert_outcomes(passed=5, failed=1)
        assert run_ref.find_run(timed.path / "reports", "latest").name == "mine"
    finally:
        locked.chmod(0o755)


def test_a_folder_that_another_process_removes_keeps_no_run_from_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    gone = a_run(tmp_path, "gone", datetime.now(UTC).isoformat())
    listed = [gone / "config.json"]
    monkeypatch.setattr(Path, "glob", lambda _self, _pattern: iter(listed))
    shutil.rmtree(gone)
    assert run_ref.next_moment(tmp_path).year >= 2026
    assert [path.name for path in run_ref.in_time(tmp_path)] == ["gone"]
