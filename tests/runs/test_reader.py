"""A stored run is read part by part; what is damaged is one line that names its file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from stored_runs import a_result, a_run

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import take_lock
from pytest_rageval.runs.reader import StoredRun

PARTS: dict[str, tuple[str, Callable[[StoredRun], object]]] = {
    "configuration": ("config.json", lambda run: run.config),
    "aggregates": ("metrics.json", lambda run: run.finished_metrics),
    "records": ("results.jsonl", lambda run: list(run.records())),
    "scores": ("scores.jsonl", lambda run: run.scores),
    "observation": ("observations.jsonl", lambda run: run.observation("evalcases/a.jsonl::q1")),
}


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


@pytest.mark.parametrize("part", PARTS)
def test_the_other_parts_of_a_damaged_run_are_read_all_the_same(tmp_path: Path, part: str):
    run = StoredRun(a_run(tmp_path, "a"))
    name, read = PARTS[part]
    for other, _ in PARTS.values():
        if other not in (name, "config.json"):
            (run.path / other).write_bytes(b"{")
    assert read(run)


def test_a_part_is_read_when_it_is_asked_for_and_then_once(tmp_path: Path):
    path = a_run(tmp_path, "a", a_result("q1"))
    run = StoredRun(path)
    metrics = run.metrics
    (path / "metrics.json").unlink()
    assert run.metrics is metrics
    assert StoredRun(path).metrics is None


def test_a_run_that_is_being_written_is_not_taken_for_an_interrupted_one(tmp_path: Path):
    run = StoredRun(a_run(tmp_path, "a", is_finished=False))
    descriptor = take_lock(run.path)
    try:
        with pytest.raises(SettingsError, match="run a is being written; wait until it has ended"):
            _ = run.finished_metrics
    finally:
        os.close(descriptor)


def test_a_run_that_was_interrupted_has_no_aggregates_and_says_how_it_is_finished(tmp_path: Path):
    run = StoredRun(a_run(tmp_path, "a", is_finished=False))
    assert run.state == "interrupted"
    with pytest.raises(SettingsError, match="run a was interrupted; finish it first with --rageval-resume a"):
        _ = run.finished_metrics
