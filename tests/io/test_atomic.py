"""Files that are written for good: whole or not at all, and never over another."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_rageval.io.atomic import write_new


def no_links(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.fixture(params=[True, False], ids=["with hard links", "without"])
def _links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(os, "link", no_links)


@pytest.mark.usefixtures("_links")
def test_a_new_file_is_whole_and_leaves_nothing_beside_it(tmp_path: Path):
    path = tmp_path / "below" / "v1.toml"
    write_new(path, b"content\n")
    assert path.read_bytes() == b"content\n"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.usefixtures("_links")
def test_a_file_that_is_there_is_never_replaced(tmp_path: Path):
    path = tmp_path / "v1.toml"
    write_new(path, b"first")
    with pytest.raises(FileExistsError):
        write_new(path, b"second")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_written_for_good_is_for_reading_only(tmp_path: Path):
    write_new(tmp_path / "v1.toml", b"x")
    assert (tmp_path / "v1.toml").stat().st_mode & 0o777 == 0o444


def test_what_is_written_reaches_the_disk_before_its_name_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    steps: list[str] = []

    def noted(name: str, step: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            steps.append(name)
            step(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", noted("sync", os.fsync))
    monkeypatch.setattr(os, "link", noted("name", os.link))
    write_new(tmp_path / "v1.toml", b"x")
    assert steps == ["sync", "name", "sync"]
