"""Files that are written for good, whole and never over another; locks between processes."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import open_files, python

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import replacing, write_new, write_text
from pytest_rageval.io.lock import LockHeld, is_locked, take_lock
from pytest_rageval.io.temporary_file import ABANDONED_S, SUFFIX

pytestmark = pytest.mark.reliability("disk", "files replaced in one step, and locks")


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


DYING = """
import os, pathlib, signal, sys
from pytest_rageval.io.atomic import replacing
with replacing(pathlib.Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def temporary_files(folder: Path) -> list[Path]:
    return list(folder.glob(f".*{SUFFIX}"))


def make_old(path: Path) -> None:
    before = time.time() - ABANDONED_S - 1
    os.utime(path, (before, before))


@pytest.mark.child_process
def test_what_a_killed_writer_left_is_removed_when_it_is_old(tmp_path: Path):
    path = tmp_path / "baseline.json"
    assert python("-c", DYING, path).returncode < 0
    [left] = temporary_files(tmp_path)
    write_text(path, "{}")
    assert left.exists(), "it may be a writer's that has no lock yet"
    make_old(left)
    write_text(tmp_path / "another.json", "{}")
    assert temporary_files(tmp_path) == []
    assert sorted(file.name for file in tmp_path.iterdir()) == ["another.json", "baseline.json"]


def test_the_file_of_a_slow_writer_is_never_removed(tmp_path: Path):
    path = tmp_path / "baseline.json"
    with replacing(path) as slow:
        slow.write_text("slow")
        make_old(slow)
        write_text(path, "fast")
        assert slow.exists()
    assert path.read_text() == "slow"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_whose_replacement_failed_leaves_nothing_beside_it(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path / "folder", "x")
    assert temporary_files(tmp_path) == []


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "of the user"])
def test_only_a_plain_file_with_the_whole_name_is_removed(tmp_path: Path, kind: str):
    other = tmp_path / f".baseline.json.12345678{SUFFIX}"
    if kind == "folder":
        other.mkdir()
    elif kind == "pipe":
        os.mkfifo(other)
    elif kind == "link":
        other.symlink_to(tmp_path / "elsewhere")
    else:
        other = tmp_path / ".baseline.json.original"
        other.write_text("mine")
    if kind != "link":
        make_old(other)
    write_text(tmp_path / "baseline.json", "{}")
    assert other.is_symlink() or other.exists()


def test_a_file_with_a_long_name_is_written(tmp_path: Path):
    path = tmp_path / ("물" * 83)
    write_text(path, "{}")
    assert list(tmp_path.iterdir()) == [path]


def test_a_lock_is_held_by_one_until_it_is_given_back(tmp_path: Path):
    assert not is_locked(tmp_path)
    descriptor = take_lock(tmp_path)
    assert is_locked(tmp_path)
    with pytest.raises(LockHeld):
        take_lock(tmp_path)
    os.close(descriptor)
    assert not is_locked(tmp_path)


def test_asking_whether_a_folder_is_locked_leaves_no_file_open(tmp_path: Path):
    holder = take_lock(tmp_path)
    before = open_files(tmp_path)
    assert [is_locked(tmp_path) for _ in range(3)] == [True] * 3
    assert open_files(tmp_path) == before
    os.close(holder)


def test_what_is_not_there_is_not_locked(tmp_path: Path):
    assert not is_locked(tmp_path / "gone")
    with pytest.raises(FileNotFoundError):
        take_lock(tmp_path / "gone")


def test_a_system_without_locks_is_named_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(SettingsError, match=r"no such locks \(module fcntl\); use Linux, macOS, or"):
        take_lock(tmp_path)
