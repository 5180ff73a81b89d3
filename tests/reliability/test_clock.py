"""A wall clock that goes back or jumps during a run or between two changes no score and hides no run."""

from __future__ import annotations

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
