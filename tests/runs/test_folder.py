"""A run on disk: appended as it goes, replaced in one step, refused before anything is lost."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from processes import PATIENCE_S

from pytest_rageval.io.atomic import write_json
from pytest_rageval.runs.folder import RunFolder


def test_two_runs_in_one_second_have_folders_of_their_own(tmp_path: Path):
    ids = {RunFolder.new(tmp_path).run_id for _ in range(5)}
    assert len(ids) == 5


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
