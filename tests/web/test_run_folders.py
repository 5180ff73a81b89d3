"""Run folders as rows: runs in every state, what is read again, what filters and history find."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from stored_runs import a_result, a_run, an_error, at, rewrite, some_cases, store_full, updated
from web_app import served

from pytest_rageval.comparison.verdict_sentence import with_verdict
from pytest_rageval.io.atomic import take_lock
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.web import run_list
from pytest_rageval.web.run_cases import CaseQuery, recorded_cases
from pytest_rageval.web.run_list import (
    UNVERSIONED,
    RunFilter,
    RunFolders,
    datasets_run,
    latest_of_series,
    past_runs,
    recent_runs_of,
    run_choices,
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


def test_a_run_is_a_row_with_the_verdict_that_it_ended_with(reports: Path, folders: RunFolders):
    a_run(reports, "good", a_result("a"), a_result("b"), description="the first one")
    a_run(reports, "bad", a_result("a"), an_error("b", "no answer"))
    runs = rows(folders)
    assert {run.run_id: (run.state, run.cases, run.pass_rate) for run in runs.values()} == {
        "good": ("passed", 2, 1),
        "bad": ("failed", 2, 0.5),
    }
    for run_id, run in runs.items():
        verdict = with_verdict(StoredRun(reports / "runs" / run_id).finished_metrics)["verdict"]
        assert (run.tone, run.word, run.sentence) == (verdict["tone"], verdict["word"], verdict["sentence"])
    assert (runs["good"].source, runs["good"].agent, runs["good"].description) == ("pytest", None, "the first one")


def test_the_versions_that_a_run_was_begun_with_are_columns(reports: Path, folders: RunFolders):
    origin = {
        "agent": "shop-bot",
        "agent_version": 4,
        "dataset": "products",
        "dataset_version": 2,
        "source": "connector",
    }
    a_run(reports, "one", changed={"origin": origin})
    run = rows(folders)["one"]
    assert {name: getattr(run, name) for name in origin} == origin


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


def test_sixty_runs_are_found_by_every_filter(reports: Path, folders: RunFolders):
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
    assert len(rows(folders)) == 60
    assert len(rows(folders, agent="bot-1")) == 20
    assert len(rows(folders, agent=UNVERSIONED)) == 20
    assert len(rows(folders, agent="bot-1", dataset="faq", source="connector")) == 10
    assert len(rows(folders, state="stopped")) == 5
    assert rows(folders, text="RUN-07").keys() == {"run-07"}
    choices = run_choices(folders.rows())
    assert choices["agent"] == ["bot-1", "bot-2", UNVERSIONED]
    assert choices["state"] == ["passed", "stopped"]
    assert [run.agent for run in latest_of_series(folders.rows(), 10)] == [None, "bot-2", "bot-1"]


def test_history_reads_the_runs_of_one_data_set_in_time(reports: Path, folders: RunFolders):
    for number in range(4):
        a_run(reports, f"run-{number}", a_result("a", recall=number / 4), ended=at(number), k=5)
    a_run(reports, "other", a_result("z"), ended=at(9))
    rows(folders)
    assert sorted(each.runs for each in datasets_run(folders.rows())) == [1, 4]
    cases = StoredRun(reports / "runs/run-0").config["dataset_hash"]
    history = past_runs(folders.rows(), cases)
    assert [run.run_id for run in history] == [f"run-{number}" for number in range(4)]
    assert [run.value("recall_any@k") for run in history] == [0.0, 0.25, 0.5, 0.75]
    recent = recent_runs_of(folders.rows(), "run-2")
    assert [run.run_id for run in recent] == ["run-0", "run-1", "run-2"]
    assert recent_runs_of(folders.rows(), "nothing") == []


def test_cases_of_a_run_that_was_stopped_are_those_recorded(reports: Path):
    folder = a_run(reports, "one", a_result("a"), an_error("b", "no answer"), is_finished=False)
    page = recorded_cases(StoredRun(folder)).page(CaseQuery("outcome:error"))
    assert [(case.id, case.why) for case in page.rows] == [("b", "timeout: no answer")]


def test_without_a_folder_there_are_no_rows(folders: RunFolders):
    assert rows(folders) == {}
    assert latest_of_series(folders.rows(), 5) == []


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
