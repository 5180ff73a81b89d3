"""The points at which a process changes files below a folder, and its death by kill -9 at one of them.

A point is named by what happens, the file, and how often that has happened: `rename metrics.json 1`. It lies before the
change; a write is cut off in its middle.
"""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from processes import ForkedProcess

_RANDOM_ENDING = re.compile(r"^(\..+\.)\w{8}\.rageval-tmp$")
"""Of the name of a temporary file."""
_NEW_NAME = frozenset({"os.rename", "os.link"})
_GONE = frozenset({"os.remove", "os.rmdir"})
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class KillPoints:
    """Watches this process until its end.

    folder  changes below it are points
    at      the point at which the process dies; "" for none
    log     gets the name of each point, on a line
    """

    def __init__(self, folder: Path, at: str, log: Path) -> None:
        self._folder = str(folder)
        self._at = at
        self._counts = Counter[str]()
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._write = os.write

    def install(self) -> None:
        sys.addaudithook(self._watch)
        os.write = self._cut_off  # type: ignore[assignment] # it has the same signature
        connect = sqlite3.connect
        points = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                points.reach("sql", sql.split()[0])
                return super().execute(sql, *values)

            def executemany(self, sql: str, *values: Any) -> sqlite3.Cursor:
                points.reach("sql", sql.split()[0])
                return super().executemany(sql, *values)

        sqlite3.connect = partial(connect, factory=Connection)  # type: ignore[assignment] # it takes the same

    def is_reached(self, event: str, name: str) -> bool:
        """Count a point; return True if it is the one to die at."""
        plain_name = _RANDOM_ENDING.sub(r"\1*", name)
        kind = f"{event} {plain_name}"
        self._counts[kind] += 1
        point = f"{kind} {self._counts[kind]}"
        self._write(self._log, f"{point}\n".encode())
        return point == self._at

    def reach(self, event: str, name: str) -> None:
        if self.is_reached(event, name):
            os.kill(os.getpid(), signal.SIGKILL)

    def _watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
            self._change("open", arguments[0])
        elif event in _NEW_NAME:
            self._change(event, arguments[1])
        elif event in ("os.mkdir", *_GONE) and os.path.exists(arguments[0]) == (event in _GONE):
            # Else it changes nothing: our code makes folders and removes temporary files without looking.
            self._change(event, arguments[0])

    def _change(self, event: str, path: object) -> None:
        if isinstance(path, str | os.PathLike):
            name = os.path.abspath(path)
            if name.startswith(self._folder):
                self.reach(event.removeprefix("os."), os.path.basename(name))

    def _cut_off(self, descriptor: int, data: bytes) -> int:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        if name.startswith(self._folder) and self.is_reached("write", os.path.basename(name)):
            self._write(descriptor, memoryview(data)[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return self._write(descriptor, data)


_PROGRAM = """
import os, sys, warnings
from pathlib import Path
from kill_points import KillPoints

os.fsync = lambda descriptor: None  # nobody cuts the power
KillPoints(Path({folder!r}), {at!r}, Path({log!r})).install()
sys.argv = {words!r}
{call}
"""
_CALLS = {
    "pytest": "import pytest; sys.exit(pytest.main())",
    "rageval": "from pytest_rageval.cli.main import main; main()",
}


class Killing:
    """Runs of a command in the current folder that die at a point of their changes below `folder`."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self._folder = folder
        self._log = scratch / "points"
        self._output = scratch / "output"

    def run(self, at: str, *words: str) -> int:
        """Run a command, `pytest` or `rageval`, to its end or to this point; return its exit code."""
        self._log.unlink(missing_ok=True)
        code = _PROGRAM.format(
            folder=str(self._folder), at=at, log=str(self._log), words=list(words), call=_CALLS[words[0]]
        )
        return ForkedProcess(code, self._output).exit_code()

    def die(self, at: str, *words: str) -> None:
        """Run a command that dies at this point."""
        code = self.run(at, *words)
        assert code == -signal.SIGKILL, f"{at}: ended with {code}: {self.output}"

    @property
    def output(self) -> str:
        return self._output.read_text(encoding="utf-8")

    @property
    def points(self) -> list[str]:
        """The points that the last run passed."""
        return self._log.read_text(encoding="utf-8").splitlines()
