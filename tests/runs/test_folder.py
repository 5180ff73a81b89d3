"""A run on disk: appended as it goes, replaced in one step, read part by part, with the commit that it tested."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import PATIENCE_S
from project import Project, a_case
from stored_runs import REGISTRY, a_result, a_run

from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_json
from pytest_rageval.io.lock import take_lock
from pytest_rageval.run.plan import make_plan
from pytest_rageval.runs.config import dataset_version, project_version, run_config
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import RESULTS
from pytest_rageval.runs.records.result_line import RecordLine, result_record, to_line
from pytest_rageval.runs.results_file import RunWriter


@pytest.mark.reliability("disk", "two runs in one second, readers and damaged parts")
def test_two_runs_in_one_second_have_folders_of_their_own(tmp_path: Path):
    ids = {RunFolder.new(tmp_path).run_id for _ in range(5)}
    assert len(ids) == 5


@pytest.mark.reliability("disk", "two runs in one second, readers and damaged parts")
def test_a_name_that_was_asked_for_is_that_of_one_run(tmp_path: Path):
    RunFolder.new(tmp_path, "nightly")
    with pytest.raises(SettingsError, match=r"a run 'nightly' is in .* already; choose another name"):
        RunFolder.new(tmp_path, "nightly")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["nightly"]


def test_lines_are_there_as_soon_as_they_are_appended(tmp_path: Path):
    folder = RunFolder.new(tmp_path)
    folder.append("results.jsonl", '{"a":"남산"}')
    assert (folder.path / "results.jsonl").read_text(encoding="utf-8") == '{"a":"남산"}\n'
    folder.close()


def test_a_log_line_stays_one_line(tmp_path: Path):
    folder = RunFolder.new(tmp_path)
    folder.log("one\ntwo\r\\three")
    folder.close()
    assert len((folder.path / "run.log").read_text().splitlines()) == 1


@pytest.mark.reliability("disk", "two runs in one second, readers and damaged parts")
def test_a_reader_never_sees_half_a_file(tmp_path: Path):
    path = tmp_path / "metrics.json"
    write_json(path, {"n": 0, "pad": "x" * 200_000})
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            write_json(path, {"n": number, "pad": "x" * 200_000})

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        for _ in range(200):
            json.loads(path.read_text())
    finally:
        stop.set()
        writer.join(PATIENCE_S)
    assert [file.name for file in tmp_path.iterdir()] == ["metrics.json"]


def test_a_result_that_an_interrupt_left_unnoted_is_not_taken_from_its_worker_once_more(tmp_path: Path):
    plan, result = make_plan(Settings(enabled=("recall_any@k",)), REGISTRY), a_result()
    config = run_config(plan, (result.case,), (), tmp_path, "bot:answer", None)
    writer = RunWriter.new(tmp_path, plan, config)
    line = to_line(result_record(result, plan, config["config_hash"]))
    (writer.folder.path / "results-gw0.jsonl").write_text(line + "\n")
    writer.folder.append(RESULTS, line)  # and here the second Ctrl-C came
    writer.collect_results()
    writer.folder.close()
    assert (writer.folder.path / RESULTS).read_text() == line + "\n"
    assert len(writer.rows) == 1


def test_records_that_cost_nothing_are_written_in_blocks_and_none_is_lost(tmp_path: Path):
    plan = make_plan(Settings(enabled=("recall_any@k",)), REGISTRY)
    results = [a_result(id=f"q{number}") for number in range(3)]
    config = run_config(plan, [result.case for result in results], (), tmp_path, "bot:answer", None)
    writer = RunWriter.new(tmp_path, plan, config)
    records = [result_record(result, plan, config["config_hash"]) for result in results]
    writer.add([RecordLine(to_line(record).encode(), record) for record in records], is_paid=False)
    path = writer.folder.path / RESULTS
    assert len(path.read_text().splitlines()) < 3
    writer.reconcile()
    writer.folder.close()
    assert path.read_text() == "".join(f"{to_line(record)}\n" for record in records)
    assert len(writer.rows) == 3


PARTS: dict[str, tuple[str, Callable[[StoredRun], object]]] = {
    "configuration": ("config.json", lambda run: run.config),
    "aggregates": ("metrics.json", lambda run: run.finished_metrics),
    "records": ("results.jsonl", lambda run: list(run.records())),
    "scores": ("scores.jsonl", lambda run: run.scores),
    "observation": ("observations.jsonl", lambda run: run.observation("evalcases/a.jsonl::q1", 0)),
}


@pytest.mark.reliability("disk", "two runs in one second, readers and damaged parts")
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("content", [b"{\n", b"\xff\n", b'{"a":' * 10**5 + b"\n", b"[1]\n"])
def test_a_damaged_part_is_one_line_that_names_the_file(tmp_path: Path, part: str, content: bytes):
    name, read = PARTS[part]
    run = StoredRun(a_run(tmp_path, "a"))
    (run.path / name).write_bytes(content)
    with pytest.raises(SettingsError) as error:
        read(run)
    assert len(error.value.problems) == 1
    assert name in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.reliability("disk", "two runs in one second, readers and damaged parts")
@pytest.mark.parametrize("part", PARTS)
def test_the_other_parts_of_a_damaged_run_are_read_all_the_same(tmp_path: Path, part: str):
    run = StoredRun(a_run(tmp_path, "a"))
    name, read = PARTS[part]
    for other, _ in PARTS.values():
        if other not in (name, "config.json"):
            (run.path / other).write_bytes(b"{")
    assert read(run)


@pytest.mark.reliability("disk", "two runs in one second, readers and damaged parts")
def test_a_run_that_is_being_written_is_not_taken_for_an_interrupted_one(tmp_path: Path):
    run = StoredRun(a_run(tmp_path, "a", is_finished=False))
    descriptor = take_lock(run.path)
    try:
        with pytest.raises(SettingsError, match="run a is being written; wait until it has ended"):
            _ = run.finished_metrics
    finally:
        os.close(descriptor)


@pytest.mark.reliability("disk", "two runs in one second, readers and damaged parts")
def test_a_run_that_was_interrupted_has_no_aggregates_and_says_how_it_is_finished(tmp_path: Path):
    run = StoredRun(a_run(tmp_path, "a", is_finished=False))
    assert run.state == "interrupted"
    with pytest.raises(SettingsError, match="run a was interrupted; finish it first with --rageval-resume a"):
        _ = run.finished_metrics


def git(folder: Path, *arguments: str) -> str:
    names = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *names, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout.strip()


def test_a_folder_without_a_repository_has_no_version(tmp_path: Path):
    assert project_version(tmp_path) is None


def test_a_version_is_commit_branch_and_whether_tracked_files_were_changed(tmp_path: Path):
    git(tmp_path, "init", "-q", "-b", "trunk")
    (tmp_path / "bot.py").write_text("one")
    assert project_version(tmp_path) == {"commit": None, "branch": "trunk", "is_changed": False}
    git(tmp_path, "add", "bot.py")
    git(tmp_path, "commit", "-q", "-m", "one")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "untracked.txt").write_text("beside")
    assert dataset_version("hash", [tmp_path / "bot.py"], tmp_path) == commit
    assert dataset_version("hash", [tmp_path / "untracked.txt"], tmp_path) == "content:hash"
    assert project_version(tmp_path) == {"commit": commit, "branch": "trunk", "is_changed": False}
    (tmp_path / "bot.py").write_text("two")
    assert dataset_version("hash", [tmp_path / "bot.py"], tmp_path) == "content:hash"
    git(tmp_path, "checkout", "-q", "--detach")
    assert project_version(tmp_path) == {"commit": commit, "branch": None, "is_changed": True}


def test_a_run_says_which_commit_it_tested(project: Project):
    project.cases([a_case("boil")])
    git(project.path, "init", "-q", "-b", "trunk")
    git(project.path, "add", ".")
    git(project.path, "commit", "-q", "-m", "one")
    project.run()
    tested = project.config()["project"]
    assert tested["branch"] == "trunk"
    page = (project.runs[-1] / "report.html").read_text(encoding="utf-8")
    about = re.findall(r'<span class="about">(.*?)</span>', page)[0]
    assert f"trunk {tested['commit'][:7]}" in about
