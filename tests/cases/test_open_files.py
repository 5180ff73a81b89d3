"""Files of cases are closed once they are read, whatever is wrong with them."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from processes import open_files

from pytest_rageval.cases.loading import load_file

BROKEN = {
    "a column twice": ("a.csv", b"id,question,id\na,b,c\n"),
    "no question": ("a.csv", b"id,x\na,b\n"),
    "an open quote": ("a.csv", b'id,question\na,"Why\n'),
    "not UTF-8": ("a.csv", b"id,question\na,\xff\n"),
    "sound": ("a.csv", b"id,question\na,Why?\n"),
    "not JSON": ("a.jsonl", b"{\n{}\n"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_no_file_stays_open(tmp_path: Path, kind: str):
    name, content = BROKEN[kind]
    (tmp_path / name).write_bytes(content)
    gc.collect()
    gc.disable()  # which would close what is left open, some time later
    try:
        load_file(tmp_path / name, tmp_path)
        assert open_files(tmp_path) == []
    finally:
        gc.enable()
