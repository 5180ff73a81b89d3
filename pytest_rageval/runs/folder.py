"""A run on disk: one folder, lines appended as cases end."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_text
from pytest_rageval.io.json_text import json_text
from pytest_rageval.io.lock import LockHeld, take_lock
from pytest_rageval.text import printable

GITIGNORE = """\
# Written once by rageval; yours to change. Only baselines are committed, with the texts of their cases.
/cache/
/metrics.json
/runs/
/sweeps/
# Left by a writer that was killed; removed later.
.*.rageval-tmp
"""
SECRET = "judge_secret"  # noqa: S105 - the name of the file
FIRST = ("partial", "selection")
MOST_OF_ONE_NAME = 10_000
"""Folders of one name and different suffixes."""


def check_reports(reports: Path) -> None:
    """Raise SettingsError unless a run can be written below this folder."""
    existing = reports
    # The folder is made with the first run: only what exists can be asked whether it may be written.
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise SettingsError(f"reports: {reports} cannot be a folder: {existing} is a file; set another with reports")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise SettingsError(f"reports: {existing} cannot be written to; set another folder with reports")


def check_run_id(reports: Path, run_id: str | None) -> None:
    """Raise SettingsError if a run of this name exists."""
    if run_id is not None and (reports / "runs" / run_id).exists():
        raise _taken(reports, run_id)


def _taken(reports: Path, run_id: str) -> SettingsError:
    return SettingsError(f"--rageval-run-id: a run {run_id!r} is in {reports / 'runs'} already; choose another name")


def utc_name() -> str:
    """Return the name of what begins now."""
    return datetime.now(UTC).strftime("%Y%m%d_%H%M%S")


def new_folder(parent: Path, name: str, *, free_in: Path | None = None) -> Path:
    """Make a folder, with a suffix such as `_2` if the name is taken; raise SettingsError if all suffixes are.

    free_in  another folder where the name must be free, too
    """
    for number in range(1, MOST_OF_ONE_NAME):
        path = parent / (name if number == 1 else f"{name}_{number}")
        if free_in is not None and (free_in / path.name).exists():
            continue
        with suppress(FileExistsError):
            # Made, not looked up before: of two processes that ask for one name, only one makes it.
            path.mkdir(parents=True)
            return path
    raise SettingsError(f"{parent}: too many folders are called {name}")


def new_reports_folder(parent: Path, name: str) -> Path:
    """Make a folder of the reports, with a suffix if the name is taken; raise SettingsError if that fails."""
    try:
        return new_folder(parent, name)
    except OSError as error:
        raise SettingsError(f"reports: {parent / name} cannot be made: {error.strerror}") from None


class RunFolder:
    """`reports/runs/<run_id>/`, open for writing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reports = path.parent.parent
        self._files: dict[str, int] = {}
        self._lock: int | None = None

    @classmethod
    def new(cls, reports: Path, wanted: str | None = None) -> RunFolder:
        """Make the folder, named as wanted, or by the UTC time with a suffix if another run began in the same second.

        Raise SettingsError if the wanted name is taken: another process may have begun it since `check_run_id`.
        """
        name = wanted or utc_name()
        folder = new_reports_folder(reports / "runs", name)
        if wanted is not None and folder.name != wanted:
            # Only empty folders can be removed this way: nothing of another run can get lost.
            folder.rmdir()
            raise _taken(reports, wanted)
        return cls(folder)

    def begin(self) -> None:
        """Lock the folder, and write the .gitignore that keeps all but baselines out of git."""
        self.lock()
        ignore = self.reports / ".gitignore"
        if not ignore.exists():
            write_text(ignore, GITIGNORE)

    def lock(self) -> None:
        """Keep other processes from finishing this run while this one writes it; SettingsError where one does.

        The lock lives as long as this process, however it ends.
        """
        try:
            self._lock = take_lock(self.path)
        except LockHeld:
            raise SettingsError(f"run {self.run_id} is being written by another process; wait for it to end") from None

    def give_secret(self, judge: object) -> None:
        """Let a judge that is a model derive its fences from this run's secret, so that the run can be asked again."""
        if hasattr(judge, "secret"):
            path = self.path / SECRET
            try:
                if not path.exists():
                    write_text(path, secrets.token_hex(16))
                judge.secret = path.read_text(encoding="ascii")
            except (OSError, ValueError):
                judge.secret = None  # random ones do as well

    @property
    def has_observations(self) -> bool:
        """Return True if this run or one of its workers has written an answer."""
        return any(file.stat().st_size for file in self.path.glob("observations*.jsonl"))

    @property
    def run_id(self) -> str:
        return self.path.name

    def append(self, name: str, line: str | bytes) -> None:
        """Append one or more lines to a file of the run; they are with the operating system on return.

        On failure, raise an OSError that names the file, and leave no partial line in it.
        """
        data = memoryview((line.encode() if isinstance(line, str) else line) + b"\n")
        written = 0
        try:
            if name not in self._files:
                # Unbuffered: what was appended survives the death of this process.
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._files[name] = os.open(self.path / name, flags, 0o666)
            # A write may be short, as on a disk that fills up.
            while written < len(data):
                written += os.write(self._files[name], data[written:])
        except OSError as error:
            if written:
                # A torn line would join the next one, and both would be lost.
                os.ftruncate(self._files[name], os.fstat(self._files[name]).st_size - written)
            raise OSError(error.errno, error.strerror, str(self.path / name)) from None

    def log(self, message: str) -> None:
        """Append a line with the time to run.log; escape line breaks and terminal control characters."""
        # Messages quote what systems send: a line break would forge a line of the log.
        shown = printable(message.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r"))
        self.append("run.log", f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {shown}")

    def close(self) -> None:
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def write_metrics(path: Path, metrics: Mapping[str, Any]) -> None:
    """Replace a metrics.json atomically, with sorted keys, so that equal metrics give equal bytes.

    The file of a partial run begins with `partial` and the selection, so that nobody mistakes it for a whole run.
    """
    first = [name for name in FIRST if metrics["partial"] and name in metrics]
    head = [_member(name, metrics[name]) for name in first]
    rest = [_member(name, metrics[name]) for name in sorted(metrics.keys() - {*first})]
    write_text(path, "{\n" + ",\n".join([*head, *rest]) + "\n}\n")


def _member(name: str, value: Any) -> str:
    return json_text({name: value}, sort_keys=True)[2:-2]
