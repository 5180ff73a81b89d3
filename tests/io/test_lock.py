"""Locks between processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from processes import open_files

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import LockHeld, is_locked, take_lock


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
