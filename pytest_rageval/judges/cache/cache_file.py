"""The file of a judge cache: SQLite in WAL mode, for many processes, also on read-only media."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from pytest_rageval.io.atomic import take_lock

APPLICATION_ID = 0x52414745
"""Marks a file as ours in its header ("RAGE")."""

LAYOUT = 4
"""Increased when a row's meaning changes; other layouts are not used."""

OPENING_S = 10.0
BUSY_S = 5.0

COLUMNS = "key, created, rubric, model, question, answer, contexts, parts, judgement"


class ForeignDatabase(sqlite3.DatabaseError):
    """A database that is not a judge cache."""


def open_exclusively(open_: Callable[[], sqlite3.Connection], folder: Path) -> sqlite3.Connection:
    """Call `open_` while no other process opens a cache in this folder; retry for a while if it is busy.

    SQLite's own waiting does not cover the first opening of a file by many processes at once.
    """
    deadline = time.monotonic() + OPENING_S
    while True:
        try:
            with _locked(folder):
                return open_()
        except (OSError, sqlite3.Error) as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
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
    (things,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not (application or layout or things):
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


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder against others that open a cache in it; raise BlockingIOError if it is locked."""
    descriptor = take_lock(folder)  # on a file system without locks, SQLite's own must suffice
    try:
        yield
    finally:
        os.close(descriptor)


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
