"""Runs that the browser starts: their files, that they go on without the server, and how they end."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from processes import PATIENCE_S, wait_until
from web_app import CONFIGURATION, an_order, ended, jobs_of, project_with_bot, under_way, until

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.lock import is_locked
from pytest_rageval.io.masking import Mask
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.web.jobs.job import LONGEST_LINE, PROCESS, JobStatus, ProgressReader, log_tail, number_in
from pytest_rageval.web.jobs.job_process import write_log
from pytest_rageval.web.keys import read_env_file, run_environment

KEY = "sk-test-1234567890abcdef"


def run_of(root: Path, job_id: str) -> StoredRun:
    return StoredRun(root / "reports" / "runs" / job_id)


@pytest.mark.child_process
def test_a_run_tells_what_it_is_made_of_and_its_key_is_in_no_file(tmp_path: Path):
    jobs = project_with_bot(tmp_path)
    job = jobs.start(an_order(2, description="from the browser"))
    status = until(jobs, job.id, ended)
    run = run_of(tmp_path, job.id)
    assert (status.state, status.progress.done, status.progress.passed) == ("finished", 2, 2)
    assert run.config["origin"]["agent_version"] == 2
    assert any("key in use: ***" in line for line in jobs.log(job.id))
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file() and file.name != ".env"]
    assert not any(KEY.encode() in content for content in written)


@pytest.mark.child_process
def test_a_case_is_seen_while_the_next_one_is_waited_for(tmp_path: Path):
    jobs = project_with_bot(tmp_path, f"BOT_GATE={tmp_path / 'never'}\n")
    job = jobs.start(an_order(8))
    status = until(jobs, job.id, lambda status: status.progress.done == 3)
    assert status.state == "running"
    until(jobs, job.id, lambda status: bool(status.progress.rate and status.progress.time_left_in_words))
    jobs.cancel(job.id)
    until(jobs, job.id, ended)


@pytest.mark.reliability("web", "runs cancelled, killed and left by their server")
@pytest.mark.child_process
def test_a_cancelled_run_waits_for_no_answer_keeps_what_ended_and_can_be_finished(tmp_path: Path):
    jobs = project_with_bot(tmp_path, f"BOT_GATE={tmp_path / 'never'}\n")
    job = jobs.start(an_order(40))
    until(jobs, job.id, under_way)
    jobs.cancel(job.id)
    status = until(jobs, job.id, ended)
    assert status.state == "stopped"
    assert 2 <= status.progress.done < 40
    assert run_of(tmp_path, job.id).metrics is not None
    (tmp_path / ".env").write_text("BOT_SECONDS=0\n")
    jobs.resume(job.id)
    status = until(jobs, job.id, ended)
    assert (status.state, status.progress.done) == ("finished", 40)
    assert run_of(tmp_path, job.id).state == "complete"


@pytest.mark.reliability("web", "runs cancelled, killed and left by their server")
@pytest.mark.child_process
def test_a_run_can_be_cancelled_while_it_starts_and_only_so_many_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pytest_rageval.web.jobs.jobs.MOST_AT_ONCE", 1)
    jobs = project_with_bot(tmp_path)
    job = jobs.start(an_order(40))
    with pytest.raises(SettingsError, match="1 at most run at the same time"):
        jobs.start(an_order(1))
    assert [status.job.id for status in jobs.going()] == [job.id]
    jobs.cancel(job.id)
    assert until(jobs, job.id, ended).state == "stopped"
    assert list(jobs.going()) == []


SERVER = """
import sys, time
from pathlib import Path
from web_app import CONFIGURATION, an_order, project_with_bot
print(project_with_bot(Path(sys.argv[1])).start(an_order(200)).id, flush=True)
time.sleep(600)
"""


@pytest.mark.reliability("web", "runs cancelled, killed and left by their server")
@pytest.mark.child_process
def test_a_run_goes_on_without_its_server_and_a_killed_run_is_said(tmp_path: Path):
    paths = os.pathsep.join([str(Path(__file__).parents[1] / "support"), os.environ.get("PYTHONPATH", "")])
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path)], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip
    assert server.stdout is not None
    job_id = server.stdout.readline().strip()
    server.kill()
    server.communicate(timeout=PATIENCE_S)
    jobs = jobs_of(tmp_path)
    assert until(jobs, job_id, under_way).state == "running"
    pid = number_in(tmp_path / "data/jobs" / job_id / PROCESS, "pid")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    status = until(jobs, job_id, ended)
    assert status.state == "killed"
    assert "gone without an end" in status.sentence
    assert "had ended, and stay" in status.sentence
    assert status.can_resume


@pytest.mark.reliability("web", "runs cancelled, killed and left by their server")
@pytest.mark.child_process
def test_a_process_that_got_the_pid_of_an_ended_run_is_not_signalled(tmp_path: Path):
    jobs = project_with_bot(tmp_path)
    folder = tmp_path / "data/jobs" / jobs.start(an_order(1)).id
    until(jobs, folder.name, ended)
    wait_until(lambda: not is_locked(folder), "its process is gone")
    (folder / "ended.json").unlink()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        (folder / PROCESS).write_text(json.dumps({"pid": other.pid}))
        jobs.cancel(folder.name)
        other.communicate(b"\n", PATIENCE_S)
    assert other.returncode == 0


@pytest.mark.reliability("web", "runs cancelled, killed and left by their server")
@pytest.mark.child_process
def test_a_run_that_cannot_begin_says_why(tmp_path: Path):
    jobs = project_with_bot(tmp_path)
    broken = CONFIGURATION.replace("slow_bot_app", "no_such_module")
    job = jobs.start(an_order(configuration=broken))
    status = until(jobs, job.id, ended)
    assert status.state == "failed"
    assert "no_such_module" in status.sentence


@pytest.mark.child_process
def test_a_configuration_that_is_none_leaves_no_job(tmp_path: Path):
    jobs = project_with_bot(tmp_path)
    with pytest.raises(SettingsError, match="concurency is not a known key"):
        jobs.start(an_order(configuration="concurency = 1\n"))
    assert list((tmp_path / "data/jobs").glob("*")) == []


@pytest.mark.child_process
def test_a_job_is_found_by_its_name_alone(tmp_path: Path):
    jobs = project_with_bot(tmp_path)
    (tmp_path / "data/jobs").mkdir(parents=True)
    for name in ("../..", "..", "/etc", "", "x\0y"):
        with pytest.raises(SettingsError, match="there is no job"):
            jobs.status(name)


@pytest.mark.reliability("web", "runs cancelled, killed and left by their server")
@pytest.mark.child_process
def test_a_run_that_is_resumed_from_two_windows_is_resumed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    jobs = project_with_bot(tmp_path, f"BOT_GATE={tmp_path / 'gate'}\n")
    job = jobs.start(an_order(30))
    until(jobs, job.id, under_way)
    jobs.cancel(job.id)
    until(jobs, job.id, ended)
    (tmp_path / ".env").write_text("BOT_SECONDS=0.05\n")

    look = jobs.status

    def slow_look(job_id: str) -> JobStatus:
        status = look(job_id)
        time.sleep(0.2)  # as long as others may take to look as well
        return status

    monkeypatch.setattr(jobs, "status", slow_look)

    def resume(_: int) -> bool:
        with suppress(SettingsError):
            jobs.resume(job.id)
            return True
        return False

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(resume, range(4))) == [False, False, False, True]
    assert until(jobs, job.id, ended).state == "finished"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("KEY=abc", "abc"),
        ("export KEY = abc", "abc"),
        ("KEY='a b # c'", "a b # c"),
        ('KEY="a=b"  # of the bot', "a=b"),
        ("KEY=", ""),
        ("\ufeffKEY=abc\r", "abc"),
    ],
)
def test_a_variable_is_what_stands_there(tmp_path: Path, line: str, value: str):
    file = tmp_path / ".env"
    file.write_text(f"{line}\n\n# a comment\n", encoding="utf-8", newline="")
    assert read_env_file(file) == {"KEY": value}


@pytest.mark.parametrize("line", ["KEY=a b", "KEY=$OTHER", 'KEY="a', "KEY='a\\nb'", "secret-word", "1KEY=a", "KEY=`a`"])
def test_a_line_that_may_mean_something_else_is_refused_without_its_value(tmp_path: Path, line: str):
    file = tmp_path / ".env"
    file.write_text(f"GOOD=1\n{line}\n")
    with pytest.raises(SettingsError) as error:
        read_env_file(file)
    (problem,) = error.value.problems
    assert problem.startswith(".env:2: ")
    assert not any(value in problem for value in ("a b", "OTHER", "secret-word"))


def test_the_environment_counts_more_and_does_not_turn_a_run_away_from_its_agent(tmp_path: Path):
    file = tmp_path / ".env"
    file.write_text("A=file\nB=file\n")
    own = {"A": "set", "RAGEVAL_TARGET": "demo", "RAGEVAL_WEB_TOKEN": "x" * 20, "PYTHONPATH": "/p"}
    environment = run_environment(tmp_path, file, own)
    assert (environment["A"], environment["B"]) == ("set", "file")
    assert not {"RAGEVAL_TARGET", "RAGEVAL_WEB_TOKEN"} & environment.keys()
    assert environment["PYTHONPATH"].split(":")[:2] == [str(tmp_path), "/p"]


def test_a_log_stays_below_its_limit_and_shows_no_credential(tmp_path: Path):
    file = tmp_path / "log.txt"
    printed = b"".join(f"line {number} with sk-secret-word\n".encode() for number in range(2000))
    printed += b"\x1b[31m<script>\xff" + b"x" * 10_000
    write_log(io.BytesIO(printed), file, Mask(["sk-secret-word"]), most_bytes=10_000)
    assert file.stat().st_size <= 10_000 + LONGEST_LINE
    lines = log_tail(file)
    assert len(lines) == 200
    assert lines[-2] == "line 1999 with ***"
    assert lines[-1].startswith("\\x1b[31m<script>")
    assert "secret" not in file.read_text()


def record(key: str, outcome: str, trial: int = 0, cost: float | None = None, **more: object) -> str:
    before = {"schema": 2, "case_key": key, "outcome": outcome, "reason": 'says "outcome":"error"'}
    behind = {"cost": {"judge_cost_usd": cost, "judge_saved_usd": None}, "trial": trial, "attempts": 1}
    return json.dumps({**before, "meta": {"outcome": "error", "trial": 7}, **more, **behind}, separators=(",", ":"))


def test_progress_counts_cases_as_they_are_written(tmp_path: Path):
    reader = ProgressReader(tmp_path, 4)
    assert reader.read().done == 0
    results = tmp_path / "results.jsonl"
    results.write_text(
        f"{record('a', 'passed', cost=0.25)}\n{record('a', 'passed', 1, cost=0.5)}\n{record('b', 'failed')[:40]}"
    )
    progress = reader.read()
    assert (progress.done, progress.passed, progress.cost_usd) == (1, 1, 0.75)
    with results.open("a") as file:
        file.write(f"{record('b', 'failed')[40:]}\n{record('c', 'error')}\n")
    progress = reader.read()
    assert (progress.done, progress.failed, progress.errors, progress.percent) == (3, 1, 1, 75)
