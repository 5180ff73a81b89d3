"""The judge cache: one SQLite file in WAL mode with a row per judgement, shared by processes and threads.

The cache never fails a run: problems with its file go into `notes`, one line each, and judging continues without it.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic_core import to_json

from pytest_rageval.config.settings import Settings
from pytest_rageval.io.lock import take_lock
from pytest_rageval.io.messages import Unsound
from pytest_rageval.io.records import RecordReader
from pytest_rageval.io.strict_json import parse
from pytest_rageval.judges.cache.cache_key import PARTS, KeyParts, distance
from pytest_rageval.model import Judgement
from pytest_rageval.text import excerpt

APPLICATION_ID = 0x52414745
"""Marks a file as ours in its header ("RAGE")."""

LAYOUT = 4
"""Increased when a row's meaning changes; other layouts are not used."""

OPENING_S = 10.0
"""Seconds in which many processes that begin at once may open the file one after the other."""
BUSY_S = 5.0
"""Seconds that SQLite waits for another process to finish its write."""
LARGEST = 1 << 20
"""Characters of a judgement and its parts as JSON; larger ones are not stored."""

_TOO_LONG = f"it is longer than {LARGEST:,} characters"

MOST_NOTES = 20
"""Further ones would say the same of further entries."""
LOOKED_AT = 50
"""Entries compared at most to find the nearest."""

TIME = "%Y-%m-%dT%H:%M:%SZ"
COLUMNS = "key, created, rubric, model, question, answer, contexts, parts, judgement"
_GET = "SELECT CAST(judgement AS BLOB) FROM judgements WHERE key = ?"
PUT = f"INSERT OR REPLACE INTO judgements ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608  our own words
_KEPT = "SELECT key, CAST(parts AS BLOB) FROM judgements WHERE rubric = ? AND parts IS NOT NULL"
_ALIKE = (("answer", "contexts"), ("answer",), ("contexts", "question"), ("contexts",), ("question",), ())
"""Parts that the nearest entry has in common, the most telling first; each look-up has an index."""
_Row = tuple[Any, ...]


class SqliteCache:
    """A cache of judgements by key, in a file that is created at the first `put`.

    `get`, `put` and `nearest` raise nothing. A broken file, or one that is no judge cache, is renamed to
    `….broken-TIMESTAMP` and a new one started. If writing is impossible (read-only, disk full), entries are still
    read. Entries are never removed here.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        # One connection for all threads, whose statements must not mix.
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._is_usable = True
        self._is_writable = True

    def get(self, key: str) -> Judgement | None:
        """Return the judgement stored under this key, or None if it is missing or unreadable."""
        rows = self._read(_GET, key)
        if not rows:
            return None
        try:
            return judgement_from_json(rows[0][0])
        except ValueError as error:
            self._note(f"{self.path}: entry {key[:12]} is unreadable and ignored: {error}")
            return None

    def put(self, key: str, judgement: Judgement, parts: KeyParts | None = None) -> None:
        """Store a judgement in place of any under this key; skip one that is not valid text."""
        self.put_all([(key, judgement, parts)])

    def put_all(self, new: Sequence[tuple[str, Judgement, KeyParts | None]]) -> None:
        """Store judgements by key in one write: one by one, each costs twice the CPU and waits for the file."""
        created = datetime.now(UTC).strftime(TIME)
        rows = []
        for key, judgement, parts in new:
            try:
                rows.append(row_of(key, created, parts, judgement))
            except ValueError as error:
                self._note(f"{self.path}: entry {key[:12]} cannot be written and is not kept: {error}")

        def write(connection: sqlite3.Connection) -> list[_Row]:
            if len(rows) == 1:
                # A single statement is a transaction of its own.
                connection.execute(PUT, rows[0])
            else:
                with transaction(connection):
                    connection.executemany(PUT, rows)
            return []

        with self._lock:
            if self._is_writable and rows:
                self._run(write, is_reading=False)

    def nearest(self, parts: KeyParts) -> KeyParts | None:
        """Return the rubric's stored parts with the same answer, else the same contexts, else the same question.

        Of several, return those with the fewest differences; if nothing is equal, any of the rubric.
        """
        for names in _ALIKE:
            values = [getattr(parts, name) for name in names]
            # A rubric that does not read this part cannot have it in common.
            if None in values:
                continue
            conditions = "".join(f" AND {name} = ?" for name in names)
            rows = self._read(f"{_KEPT}{conditions} LIMIT ?", parts.rubric, *values, LOOKED_AT)
            candidates: list[tuple[int, str, KeyParts]] = []
            for key, row in rows:
                with suppress(ValueError, RecursionError, Unsound):  # skips unreadable rows
                    candidate = PARTS.read(json.loads(row))
                    candidates.append((distance(candidate, parts), key, candidate))
            if candidates:
                # Of equal distances the first key, so that a message is the same each time.
                _, _, nearest = min(candidates, key=itemgetter(0, 1))
                return nearest
        return None

    def close(self) -> None:
        """Close the file; the next `get` or `put` opens it again."""
        with self._lock:
            self._close()

    def _read(self, statement: str, *values: Any) -> list[_Row]:
        with self._lock:
            # A look-up makes no file: a run that judges nothing leaves none.
            if self._connection is None and not self.path.exists():
                return []
            return self._run(lambda connection: connection.execute(statement, values).fetchall(), is_reading=True)

    def _run(self, use: Callable[[sqlite3.Connection], list[_Row]], *, is_reading: bool) -> list[_Row]:
        broken: sqlite3.Error | None = None
        for _ in range(2):  # if the file is broken, the second try has a new one
            connection = self._connection or self._open(broken)
            if connection is None:
                break
            try:
                return use(connection)
            except sqlite3.Error as error:
                broken = error
            if is_broken(broken):
                self._close()
                continue
            # Only this look-up is given up: the other process ends its write.
            if is_busy(broken):
                self._note(f"{self.path}: busy for {BUSY_S:g} s; what could not be looked up or kept is judged again")
            elif is_reading:
                self._is_usable = False
                self._note(f"{self.path}: cannot be read ({broken}); judgements are no longer looked up or kept")
                self._close()
            else:
                # It may still be read: a full disk, or a folder without permission to write.
                self._is_writable = False
                self._note(f"{self.path}: cannot be written ({broken}); judgements are no longer kept")
            break
        return []

    def _open(self, broken: sqlite3.Error | None) -> sqlite3.Connection | None:
        def connect_or_replace() -> sqlite3.Connection:
            # Another process may have replaced the file since: set aside only the one that was broken.
            if broken is not None and self.path.exists() and self.path.stat().st_ino == self._inode:
                self._set_aside(broken)
            try:
                connection = connect(self.path, create=True)
            except sqlite3.Error as found:
                if not is_broken(found):
                    raise
                self._set_aside(found)
                connection = connect(self.path, create=True)
            self._inode = self.path.stat().st_ino
            return connection

        if self._is_usable:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._connection = open_exclusively(connect_or_replace, self.path.parent)
            except (OSError, sqlite3.Error) as error:
                self._is_usable = False
                self._note(f"{self.path}: cannot be opened ({error}); judgements are neither looked up nor kept")
        return self._connection

    def _set_aside(self, error: sqlite3.Error) -> None:
        name = f"{self.path.name}.broken-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**9:09}"
        self.path.rename(self.path.with_name(name))
        for part in ("-wal", "-shm"):
            # A file that was closed in order has no log beside it, and another process may be faster.
            with suppress(FileNotFoundError):
                self.path.with_name(self.path.name + part).rename(self.path.with_name(name + part))
        self._note(f"{self.path}: not a usable judge cache ({error}); set aside as {name}, a new one is begun")

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _note(self, note: str) -> None:
        if note not in self.notes and len(self.notes) < MOST_NOTES:
            self.notes.append(note)


def row_of(key: str, created: str, parts: KeyParts | None, judgement: Judgement) -> tuple[str | None, ...]:
    """Return the columns of a row in the table's order; raise ValueError for invalid or overlong text."""
    written = judgement_to_json(judgement)
    if parts is None:
        if len(written) > LARGEST:
            raise ValueError(_TOO_LONG)
        return key, created, judgement.rubric, judgement.model, None, None, None, None, written
    described = json.dumps(parts.as_json(), ensure_ascii=False, allow_nan=False)
    described.encode()  # raises ValueError for half of a surrogate pair
    if len(written) + len(described) > LARGEST:
        raise ValueError(_TOO_LONG)
    hashes = (parts.question, parts.answer, parts.contexts)
    return key, created, parts.rubric, parts.model, *hashes, described, written


def judgement_to_json(judgement: Judgement) -> str:
    """Write a judgement as JSON; raise ValueError if it holds invalid text, such as half of a surrogate pair."""
    return to_json(judgement, exclude={"cached"}).decode()


_JUDGEMENTS: RecordReader[Judgement] = RecordReader(Judgement, takes_whole_floats=True)


def judgement_from_json(text: bytes | str) -> Judgement:
    """Read a judgement from JSON; raise ValueError of one line if it is not one."""
    written = text if isinstance(text, str) else text.decode("utf-8")
    usual = _JUDGEMENTS.usual(written)
    if usual is not None:
        return usual
    # Not as we write it: read once more, slowly, for a message that says what is wrong.
    try:
        return _JUDGEMENTS.read(parse(text))
    except Unsound as unsound:
        raise ValueError(excerpt(str(unsound.findings.first[0]))) from None


def project_cache(settings: Settings, file: Path) -> SqliteCache | None:
    """Return the cache in this file, for the caller to close, or None if nothing may be stored.

    Nothing may be with `judge_cache = "off"`, nor with `redact`, since a judgement quotes its material. `settings` are
    the project's, not those of a stored run, which may have been written without `redact`.
    """
    if settings.judge_cache == "off" or settings.redact:
        return None
    return SqliteCache(file)


# ── the file ──────────────────────────────────────────────────────────────────────────────────────────────────


class ForeignDatabase(sqlite3.DatabaseError):
    """A database that is not a judge cache."""


def open_exclusively(open_: Callable[[], sqlite3.Connection], folder: Path) -> sqlite3.Connection:
    """Call `open_` while no other process opens a cache in this folder; retry for a while if it is busy.

    SQLite's own waiting does not cover the first opening of a file by many processes at once.
    """
    deadline = time.monotonic() + OPENING_S
    while True:
        try:
            descriptor = take_lock(folder)  # on a file system without locks, SQLite's own must suffice
            try:
                return open_()
            finally:
                os.close(descriptor)
        except (OSError, sqlite3.Error) as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
        # Of different length: processes that began together would else meet again.
        time.sleep(random.uniform(0.005, 0.05))  # noqa: S311  no secret, only spread


def connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """Open a judge cache; `create` starts one in a missing or empty file. Raise ForeignDatabase for others."""
    address = f"file:{quote(str(path.absolute()))}"
    # On read-only media, a file in WAL mode opens only as immutable.
    for how in ("?mode=rwc" if create else "?mode=rw", "?mode=ro", "?mode=ro&immutable=1"):
        connection = sqlite3.connect(
            address + how, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection)
            return connection
        except sqlite3.Error as error:
            connection.close()
            is_read_only = name_of(error).startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN"))
            if not is_read_only or how.endswith("immutable=1"):
                raise
    raise AssertionError("the loop returns or raises")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block as one transaction."""
    # IMMEDIATE takes the write lock at once; a transaction that asks for it later fails without waiting.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:  # also on Ctrl-C: no transaction stays open
        # When the disk is full, SQLite has already rolled back.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def is_broken(error: sqlite3.Error) -> bool:
    """Return True if the error means that the file is not, or no longer, a judge cache."""
    return isinstance(error, ForeignDatabase) or name_of(error).startswith(
        ("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_FORMAT")
    )


def is_busy(error: Exception) -> bool:
    """Return True if the error means that another process is using the file now."""
    return isinstance(error, BlockingIOError) or name_of(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def name_of(error: Exception) -> str:
    """Return SQLite's name of an error, such as SQLITE_BUSY, or an empty string for other errors."""
    return str(getattr(error, "sqlite_errorname", ""))


def _prepare(connection: sqlite3.Connection) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    # Empty, as SQLite makes a missing file. Any other database is somebody's.
    if not (application or layout or objects):
        # In WAL mode readers do not wait for the writer: workers share the file.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(_SCHEMA)
    elif application != APPLICATION_ID:
        raise ForeignDatabase("a database of something else")
    elif layout != LAYOUT:
        raise ForeignDatabase(f"its layout is {layout}, not {LAYOUT}")
    try:
        connection.execute(f"SELECT {COLUMNS} FROM judgements LIMIT 0")  # noqa: S608  our own names
    except sqlite3.OperationalError as error:
        if name_of(error) != "SQLITE_ERROR":
            raise
        raise ForeignDatabase(str(error)) from error
    # A power cut may lose the last judgements, a crash loses none.
    connection.execute("PRAGMA synchronous = NORMAL")


# If the parts are unknown (entries from code outside this package), they and their hashes are NULL.
_SCHEMA = f"""
    BEGIN IMMEDIATE;
    CREATE TABLE IF NOT EXISTS judgements (
        key TEXT PRIMARY KEY NOT NULL,
        created TEXT NOT NULL,
        rubric TEXT NOT NULL,
        model TEXT NOT NULL,
        question TEXT,
        answer TEXT,
        contexts TEXT,
        parts TEXT,
        judgement TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS by_question ON judgements (rubric, question);
    CREATE INDEX IF NOT EXISTS by_answer ON judgements (rubric, answer, contexts);
    CREATE INDEX IF NOT EXISTS by_contexts ON judgements (rubric, contexts, question);
    PRAGMA application_id = {APPLICATION_ID};
    PRAGMA user_version = {LAYOUT};
    COMMIT;
"""
