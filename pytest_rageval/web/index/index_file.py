"""The file of the index and its tables: made where there is none of this layout, set aside where it cannot be read."""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import fields
from pathlib import Path

from pytest_rageval.judges.cache.cache_file import Foreign, is_broken, open_alone
from pytest_rageval.web.index.run_rows import MetricMean, RunRow

APPLICATION_ID = 0x52414758
"""Marks a file as ours in its header ("RAGX")."""


def _columns(row: type) -> str:
    """Return the columns that hold the fields of a dataclass."""
    kinds = {"int": "INTEGER", "bool": "INTEGER", "float": "REAL"}
    types = ((field.name, *str(field.type).partition(" | ")[:2]) for field in fields(row))
    return ", ".join(f"{name} {kinds.get(kind, 'TEXT')}{'' if bar else ' NOT NULL'}" for name, kind, bar in types)


_RUNS = f"""
CREATE TABLE runs ({_columns(RunRow)}, PRIMARY KEY (run_id)) WITHOUT ROWID;
CREATE INDEX runs_in_time ON runs (begun, run_id);
CREATE INDEX runs_of_series ON runs (series, begun, run_id);
CREATE INDEX runs_of_dataset ON runs (dataset_hash, begun, run_id);
CREATE TABLE run_metrics (run_id TEXT NOT NULL, {_columns(MetricMean)}, PRIMARY KEY (run_id, metric)) WITHOUT ROWID;
CREATE TABLE run_settings (run_id TEXT PRIMARY KEY NOT NULL, settings TEXT NOT NULL);
"""
# The cases of a run are in two tables of their own, cases_N and texts_N, whose columns depend on the run's
# metrics. `against` is the run that was chosen to compare it with; '' stands for what it was compared with at its end.
_CASES = """
CREATE TABLE case_tables (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    against TEXT NOT NULL,
    stamp TEXT NOT NULL,
    loaded REAL NOT NULL,
    seconds REAL NOT NULL,
    cases INTEGER NOT NULL,
    facts TEXT NOT NULL
);
CREATE UNIQUE INDEX case_tables_by_run ON case_tables (run_id, against);
"""
TABLES = _RUNS + _CASES
LAYOUT = zlib.crc32(TABLES.encode()) & 0x7FFFFFFF
"""What `user_version` of a file with these tables says: it changes with them."""


BUSY_S = 30.0
"""Seconds that a writer waits for another: the cases of a large run are put in within one transaction."""


class IndexFile:
    """The file of the index. `problems` holds, until it is read, why a file was set aside."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._problems: list[str] = []

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own for whoever asks, closed at the end; in autocommit."""
        with closing(self._open()) as connection:
            yield connection

    def take_problems(self) -> list[str]:
        """What went wrong with the file since it was asked for last: each is said once."""
        problems, self._problems = self._problems, []
        return problems

    def set_aside(self, error: sqlite3.Error) -> None:
        """Rename a file that cannot be used, with what SQLite keeps beside it; the next connection begins a new one."""
        with suppress(FileNotFoundError):  # another process was faster
            name = f"{self.path.name}.broken-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**6:06}"
            self.path.rename(self.path.with_name(name))
            for part in ("-wal", "-shm"):
                with suppress(FileNotFoundError):
                    self.path.with_name(self.path.name + part).rename(self.path.with_name(name + part))
            self._problems.append(
                f"{self.path}: not a usable index ({error}); set aside as {name}, and built anew from the run folders"
            )

    def _open(self) -> sqlite3.Connection:
        if self.path.exists():
            with suppress(sqlite3.Error), ExitStack() as stack:
                connection = stack.enter_context(closing(_connected(self.path)))
                if _has_our_tables(connection):
                    stack.pop_all()
                    return connection
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return open_alone(self._prepared, self.path.parent)

    def _prepared(self) -> sqlite3.Connection:
        """A connection to a file of the present layout, while no other process prepares one."""
        try:
            return _with_tables(self.path)
        except sqlite3.Error as error:
            if not is_broken(error):
                raise
            self.set_aside(error)
            return _with_tables(self.path)


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA temp_store = MEMORY")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _has_our_tables(connection: sqlite3.Connection) -> bool:
    """Check whether the file is an index of the present layout; Foreign where it is a database of something else."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    (things,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (application or layout or things):
        raise Foreign("a database of something else")
    return bool(layout == LAYOUT)


def _with_tables(path: Path) -> sqlite3.Connection:
    connection = _connected(path)
    try:
        if not _has_our_tables(connection):
            connection.execute("PRAGMA journal_mode = WAL")
            old = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
            drops = "".join(f'DROP TABLE "{name}";' for (name,) in old.fetchall())
            end = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {LAYOUT}; COMMIT;"
            connection.executescript(f"BEGIN IMMEDIATE; {drops} {TABLES} {end}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection
