"""What a job reads and writes: the keys of `.env`, a bounded log, the progress of a run's folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.masking import Mask
from pytest_rageval.web.jobs.job_files import LONGEST_LINE, JobLog, log_tail
from pytest_rageval.web.jobs.job_status import ProgressReader
from pytest_rageval.web.jobs.jobs import read_env_file, run_environment


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


def test_no_file_holds_no_variable(tmp_path: Path):
    assert read_env_file(tmp_path / ".env") == {}


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
    with JobLog(file, Mask(["sk-secret-word"]), most_bytes=10_000) as log:
        for number in range(2000):
            log.add(f"line {number} with sk-secret-word\n".encode())
        log.add(b"\x1b[31m<script>\xff" + b"x" * 10_000)
    assert file.stat().st_size <= 10_000 + LONGEST_LINE
    lines = log_tail(file)
    assert len(lines) == 200
    assert lines[-2] == "line 1999 with ***"
    assert lines[-1].startswith("\\x1b[31m<script>")
    assert "secret" not in file.read_text()


def record(key: str, outcome: str, trial: int = 0, cost: float | None = None, **more: object) -> str:
    before = {"schema": 2, "case_key": key, "outcome": outcome, "reason": 'says "outcome":"error"'}
    behind = {"cost": {"judge_cost_usd": cost}, "trial": trial, "attempts": 1}
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
