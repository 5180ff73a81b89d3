"""Where are judgements kept? One SQLite file, one row a judgement, shared by processes and threads.

The cache never fails a run: what is wrong with its file goes into `notes`, one line each, and judging goes on without.
"""

from __future__ import annotations

import fcntl
import os
import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from pytest_rageval.model import Judgement

APPLICATION_ID = 0x52414745
"""Marks a file as ours in its header ("RAGE")."""

LAYOUT = 1
"""Raised when a row's meaning changes; a file of another layout is set aside."""

OPENING_S = 10.0
BUSY_S = 5.0
MOST_NOTES = 20
_JUDGEMENT = TypeAdapter(Judgement)


class SqliteCache:
    """Judgements by key, in a file that is made at the first `put`.

    `get` and `put` raise nothing. A file that is no cache of ours or is broken is renamed `….broken-TIMESTAMP`
    and a new one begun; where writing is not possible (read-only, disk full) what is there is still read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._broken: tuple[int | None, sqlite3.Error | None] = (None, None)
        self._is_usable = True
        self._is_writable = True

    def get(self, key: str) -> Judgement | None:
        """The judgement kept under this key, if there is one that can be read."""
        with self._lock:
            row = self._run("SELECT judgement FROM judgements WHERE key = ?", key)
        if row is None:
            return None
        try:
            return _JUDGEMENT.validate_json(row[0])
        except ValidationError as error:
            self._note(f"{self.path}: entry {key[:12]} is unreadable and ignored: {error.errors()[0]['msg']}")
            return None

    def put(self, key: str, judgement: Judgement) -> None:
        """Keep a judgement; one that was kept under this key is replaced. What is no valid text is not kept."""
        try:
            written = _JUDGEMENT.dump_json(judgement, exclude={"cached"}, warnings="error").decode()
        except PydanticSerializationError as error:
            self._note(f"{self.path}: entry {key[:12]} cannot be written and is not kept: {error}")
            return
        with self._lock:
            if self._is_writable:
                self._run("INSERT OR REPLACE INTO judgements (key, judgement) VALUES (?, ?)", key, written)

    def close(self) -> None:
        """Give the file back; the next `get` or `put` opens it again."""
        with self._lock:
            self._close()

    def _run(self, statement: str, *values: str) -> tuple[str] | None:
        is_reading = len(values) == 1
        if is_reading and self._connection is None and not self.path.exists():
            return None
        # Twice: where the file turns out to be broken, the second round has an empty one.
        for _ in range(2):
            connection = self._connection or self._open()
            if connection is None:
                return None
            try:
                row: tuple[str] | None = connection.execute(statement, values).fetchone()
                return row
            except sqlite3.Error as error:
                if not _is_broken(error):
                    self._go_on_without(error, is_reading=is_reading)
                    return None
                connection.close()
                self._connection, self._broken = None, (self._inode, error)
        return None

    def _open(self) -> sqlite3.Connection | None:
        deadline = time.monotonic() + OPENING_S
        while self._is_usable:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with _alone(self.path.parent):
                    self._connection = self._connect_or_begin_anew()
                    self._inode = self.path.stat().st_ino
                break
            except (OSError, sqlite3.Error) as error:
                if _is_passing(error) and time.monotonic() < deadline:
                    # A stampede of processes: SQLite's own waiting does not cover the first opening of a file.
                    time.sleep(random.uniform(0.005, 0.05))  # noqa: S311  no secret, only spread
                    continue
                self._is_usable = False
                self._note(f"{self.path}: cannot be opened ({error}); judgements are neither looked up nor kept")
        return self._connection

    def _connect_or_begin_anew(self) -> sqlite3.Connection:
        inode, error = self._broken
        # Another process may have put a fresh file there since: only the one that we saw broken is set aside.
        if error is not None and self.path.exists() and self.path.stat().st_ino == inode:
            self._set_aside(error)
        self._broken = (None, None)
        try:
            return _connect(self.path)
        except sqlite3.Error as found:
            if not _is_broken(found):
                raise
            self._set_aside(found)
            return _connect(self.path)

    def _set_aside(self, error: sqlite3.Error) -> None:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        name = next(
            name
            for name in (f"{self.path.name}.broken-{stamp}{more}" for more in ("", *(f"-{n}" for n in range(2, 1000))))
            if not self.path.with_name(name).exists()
        )
        self.path.rename(self.path.with_name(name))
        for part in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                self.path.with_name(self.path.name + part).rename(self.path.with_name(name + part))
        self._note(f"{self.path}: not a usable judge cache ({error}); set aside as {name}, a new one is begun")

    def _go_on_without(self, error: sqlite3.Error, *, is_reading: bool) -> None:
        if _is_passing(error):
            self._note(f"{self.path}: busy for {BUSY_S:g} s; what could not be looked up or kept is judged again")
        elif is_reading:
            self._is_usable = False
            self._note(f"{self.path}: cannot be read ({error}); judgements are no longer looked up or kept")
            self._close()
        else:
            self._is_writable = False
            self._note(f"{self.path}: cannot be written ({error}); judgements are no longer kept")

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _note(self, note: str) -> None:
        if note not in self.notes and len(self.notes) < MOST_NOTES:
            self.notes.append(note)


class _Foreign(sqlite3.DatabaseError):
    """A database, but not one of ours."""


def _connect(path: Path) -> sqlite3.Connection:
    address = f"file:{quote(str(path.absolute()))}"
    # Read-only media: a file in WAL mode opens there only if told that nobody else writes it.
    for how in ("?mode=rwc", "?mode=ro", "?mode=ro&immutable=1"):
        connection = sqlite3.connect(
            address + how, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection)
            return connection
        except sqlite3.Error as error:
            connection.close()
            is_read_only = _name(error).startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN"))
            if not is_read_only or how.endswith("immutable=1"):
                raise
    raise AssertionError("the loop returns or raises")


def _prepare(connection: sqlite3.Connection) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    (things,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not (application or layout or things):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(_SCHEMA)
    elif application != APPLICATION_ID:
        raise _Foreign("a database of something else")
    elif layout != LAYOUT:
        raise _Foreign(f"its layout is {layout}, not {LAYOUT}")
    try:
        connection.execute("SELECT key, judgement FROM judgements LIMIT 0")
    except sqlite3.OperationalError as error:
        if _name(error) != "SQLITE_ERROR":
            raise
        raise _Foreign(str(error)) from error
    # A power cut may cost the last judgements, a crash none.
    connection.execute("PRAGMA synchronous = NORMAL")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Nobody else opens a cache in this folder meanwhile; BlockingIOError where somebody does."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            pass  # a file system without locks: SQLite's own must do
        yield
    finally:
        os.close(descriptor)


def _name(error: Exception) -> str:
    return str(getattr(error, "sqlite_errorname", ""))


def _is_broken(error: sqlite3.Error) -> bool:
    return isinstance(error, _Foreign) or _name(error).startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_FORMAT"))


def _is_passing(error: Exception) -> bool:
    return isinstance(error, BlockingIOError) or _name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


_SCHEMA = f"""
    BEGIN IMMEDIATE;
    CREATE TABLE IF NOT EXISTS judgements (key TEXT PRIMARY KEY, judgement TEXT NOT NULL) WITHOUT ROWID;
    PRAGMA application_id = {APPLICATION_ID};
    PRAGMA user_version = {LAYOUT};
    COMMIT;
"""
