"""The index of run folders: what it holds of runs in every state, what a scan reads again, and what damages it."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from processes import PATIENCE_S
from stored_runs import a_result, a_run, an_error, at, rewrite, some_cases, store_full, updated

from pytest_rageval.comparison.verdict_sentence import with_verdict
from pytest_rageval.io.atomic import take_lock
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.web.case_list import case_rows_page
from pytest_rageval.web.index.case_tables import open_cases
from pytest_rageval.web.index.run_index import RunIndex
from pytest_rageval.web.index.run_queries import (
    UNVERSIONED,
    RunFilter,
    datasets_run,
    latest_of_series,
    past_runs,
    run_by_id,
    run_choices,
    run_list,
)
from pytest_rageval.web.index.run_rows import IndexedRun, RunRow, read_run

LONG_ENOUGH = 60


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    return tmp_path / "reports"


@pytest.fixture
def index(tmp_path: Path, reports: Path) -> RunIndex:
    return RunIndex(tmp_path / "data" / "rageval.sqlite", reports / "runs", tmp_path / "data" / "jobs")


def rows(index: RunIndex, **narrowed: str) -> dict[str, RunRow]:
    """The runs that a filter leaves, after a scan."""
    progress = index.refresh(LONG_ENOUGH)
    assert progress.is_done
    assert progress.problem is None
    found = index.read(lambda connection: run_list(connection, RunFilter(**narrowed), size=5_000))
    return {run.run_id: run for run in found.runs}


def test_a_run_is_a_row_with_the_verdict_that_it_ended_with(reports: Path, index: RunIndex):
    a_run(reports, "good", a_result("a"), a_result("b"), description="the first one")
    a_run(reports, "bad", a_result("a"), an_error("b", "no answer"))
    runs = rows(index)
    assert {run.run_id: (run.state, run.cases, run.passed, run.errors) for run in runs.values()} == {
        "good": ("passed", 2, 2, 0),
        "bad": ("failed", 2, 1, 1),
    }
    for run_id, run in runs.items():
        verdict = with_verdict(StoredRun(reports / "runs" / run_id).finished_metrics)["verdict"]
        assert (run.tone, run.word, run.sentence) == (verdict["tone"], verdict["word"], verdict["sentence"])
    assert (runs["good"].source, runs["good"].agent, runs["good"].description) == ("pytest", None, "the first one")


def test_the_versions_that_a_run_was_begun_with_are_columns(reports: Path, index: RunIndex):
    origin = {
        "agent": "shop-bot",
        "agent_version": 4,
        "dataset": "products",
        "dataset_version": 2,
        "source": "connector",
    }
    a_run(reports, "one", changed={"origin": origin})
    run = rows(index)["one"]
    assert {name: getattr(run, name) for name in origin} == {name: str(value) for name, value in origin.items()}


def test_worse_partial_stopped_running_and_unreadable_runs_are_rows_with_their_state(reports: Path, index: RunIndex):
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
    huge = a_run(reports, "huge")
    rewrite(huge / "metrics.json", lambda metrics: metrics.update(total_tests=10**30))
    lock = take_lock(writing)
    try:
        runs = rows(index)
    finally:
        os.close(lock)
    assert {run_id: run.state for run_id, run in runs.items()} == {
        "worse": "worse", "part": "partial", "stopped": "stopped", "running": "running", "broken": "unreadable",
        "empty": "unreadable", "strange": "unreadable", "huge": "unreadable",
    }  # fmt: skip
    assert "metrics.json" in str(runs["broken"].problem)
    assert "config.json" in str(runs["empty"].problem)
    assert "its page says how to finish it" in str(runs["stopped"].problem)
    assert rows(index)["running"].state == "stopped", "nobody writes it any more, and no file of it has changed"


def test_a_scan_reads_what_changed_and_nothing_else(reports: Path, index: RunIndex, monkeypatch: pytest.MonkeyPatch):
    for number in range(5):
        a_run(reports, f"run-{number}")
    rows(index)
    read: list[str] = []

    def watched(folder: Path, stamp: str) -> IndexedRun:
        read.append(folder.name)
        return read_run(folder, stamp)

    monkeypatch.setattr("pytest_rageval.web.index.run_index.read_run", watched)
    assert rows(index).keys() == {f"run-{number}" for number in range(5)}
    assert read == []
    rewrite(reports / "runs/run-3/metrics.json", lambda metrics: metrics.update(description="said later"))
    a_run(reports, "run-5")
    shutil.rmtree(reports / "runs" / "run-0")
    runs = rows(index)
    assert sorted(read) == ["run-3", "run-5"]
    assert runs["run-3"].description == "said later"
    assert "run-0" not in runs


def test_sixty_runs_are_found_by_every_filter(reports: Path, index: RunIndex):
    template = a_run(reports, "run-00", a_result("a"), a_result("b"))
    for number in range(1, 60):
        folder = shutil.copytree(template, template.with_name(f"run-{number:02}"))
        agent = {"agent": f"bot-{number % 3}", "agent_version": 1, "dataset": "faq", "dataset_version": number % 2 + 1,
                 "source": ("connector", "uploaded answers")[number % 2]}  # fmt: skip
        begun = f"2026-03-01T{number // 60:02}:{number % 60:02}:00.000000+00:00"
        changed = {"begun": begun} | ({"origin": agent} if number % 3 else {})
        rewrite(folder / "config.json", updated(**changed))
        if number % 10 == 0:
            (folder / "metrics.json").unlink()
    assert len(rows(index)) == 60
    assert len(rows(index, agent="bot-1")) == 20
    assert len(rows(index, agent=UNVERSIONED)) == 20
    assert len(rows(index, agent="bot-1", dataset="faq", source="connector")) == 10
    assert len(rows(index, state="stopped")) == 5
    assert rows(index, text="RUN-07").keys() == {"run-07"}
    assert rows(index, text="'; DROP TABLE runs; --") == {}
    choices = index.read(run_choices)
    assert choices.agents == ["bot-1", "bot-2", UNVERSIONED]
    assert choices.states == ["passed", "stopped"]
    page = index.read(lambda connection: run_list(connection, RunFilter(), page=2, size=25))
    assert (len(page.runs), page.left, page.total) == (25, 60, 60)
    latest = index.read(lambda connection: latest_of_series(connection, 10))
    assert [run.agent for run in latest] == [None, "bot-2", "bot-1"]


def test_history_reads_the_runs_of_one_data_set_in_time(reports: Path, index: RunIndex):
    for number in range(4):
        a_run(reports, f"run-{number}", a_result("a", recall=number / 4), ended=at(number), k=5)
    a_run(reports, "other", a_result("z"), ended=at(9))
    rows(index)
    sets = index.read(datasets_run)
    assert sorted(each.runs for each in sets) == [1, 4]
    cases = StoredRun(reports / "runs/run-0").config["dataset_hash"]
    history = index.read(lambda connection: past_runs(connection, cases))
    assert [run.run_id for run in history] == [f"run-{number}" for number in range(4)]
    assert [run.value("recall_any@k") for run in history] == [0.0, 0.25, 0.5, 0.75]


# ── the file ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_deleting_the_file_loses_nothing(reports: Path, index: RunIndex):
    a_run(reports, "one")
    before = rows(index)
    for path in index.file.path.parent.iterdir():
        path.unlink()
    assert rows(index) == before


@pytest.mark.parametrize("kind", ["text", "cut", "foreign"])
def test_a_file_that_cannot_be_used_is_set_aside_and_built_anew_which_is_said_once(
    reports: Path, index: RunIndex, kind: str
):  # fmt: skip
    a_run(reports, "one")
    before = rows(index)
    path = index.file.path
    for part in path.parent.glob("*-*"):
        part.unlink()
    if kind == "text":
        path.write_text("not a database" * 100)
    elif kind == "cut":
        content = path.read_bytes()
        path.write_bytes(content[:5000] + b"\xff" * (len(content) - 5000))
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA application_id = 7")
        connection.close()
    assert rows(index) == before
    (problem,) = index.file.take_problems()
    assert "set aside as rageval.sqlite.broken-" in problem
    assert index.file.take_problems() == []
    assert len(list(path.parent.glob("*.broken-*"))) >= 1


@pytest.mark.parametrize("layout", [1, 2**31 - 1])
def test_a_file_of_another_layout_is_made_anew_silently(reports: Path, index: RunIndex, layout: int):
    a_run(reports, "one")
    before = rows(index)
    with closing(sqlite3.connect(index.file.path)) as connection:
        connection.execute("DROP TABLE runs")
        connection.execute("CREATE TABLE runs (of_another, layout)")
        connection.execute(f"PRAGMA user_version = {layout}")
    assert rows(index) == before
    assert index.file.take_problems() == []


def scan(path: Path, runs: Path, rounds: int) -> None:
    index = RunIndex(path, runs, path.parent / "jobs")
    for _ in range(rounds):
        assert index.refresh(LONG_ENOUGH).problem is None


def test_processes_that_scan_at_once_end_with_one_whole_index(reports: Path, index: RunIndex):
    template = a_run(reports, "run-00")
    for number in range(1, 30):
        shutil.copytree(template, template.with_name(f"run-{number:02}"))
    made = multiprocessing.get_context("spawn")
    others = [made.Process(target=scan, args=(index.file.path, index.runs, 3)) for _ in range(2)]
    for other in others:
        other.start()
    scan(index.file.path, index.runs, 3)
    for other in others:
        other.join(PATIENCE_S)
        assert other.exitcode == 0
    assert len(rows(index)) == 30
    assert index.read(lambda connection: connection.execute("PRAGMA integrity_check").fetchone()) == ("ok",)
    assert list(index.file.path.parent.glob("*.broken-*")) == []


# ── cases ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_cases_are_read_once_and_again_when_the_run_changes(reports: Path, index: RunIndex):
    folder = a_run(reports, "one", a_result("a"), a_result("b"))
    baseline = reports / "baseline.json"
    first = open_cases(index, StoredRun(folder), baseline)
    assert open_cases(index, StoredRun(folder), baseline).number == first.number
    results = folder / "results.jsonl"
    results.write_bytes(b"".join(results.read_bytes().splitlines(keepends=True)[:1]))
    second = open_cases(index, StoredRun(folder), baseline)
    assert (first.cases, second.cases) == (2, 1)
    names = "SELECT name FROM sqlite_master WHERE substr(name, 1, 6) = 'cases_'"
    tables = index.read(lambda connection: connection.execute(names).fetchall())
    assert tables == [(second.name,)]
    rows(index)
    shutil.rmtree(folder)
    rows(index)
    assert index.read(lambda connection: connection.execute("SELECT count(*) FROM case_tables").fetchone()) == (0,)


def test_cases_of_a_run_that_was_stopped_are_those_recorded(reports: Path, index: RunIndex):
    folder = a_run(reports, "one", a_result("a"), an_error("b", "no answer"), is_finished=False)
    table = open_cases(index, StoredRun(folder), reports / "baseline.json")
    page = index.read(lambda connection: case_rows_page(connection, table, "outcome:error"))
    assert [(case.id, case.why) for case in page.rows] == [("b", "timeout: no answer")]


def test_a_run_of_no_name_is_no_row(index: RunIndex):
    assert rows(index) == {}
    assert index.read(lambda connection: run_by_id(connection, "nothing")) is None
    assert index.read(lambda connection: latest_of_series(connection, 5)) == []
