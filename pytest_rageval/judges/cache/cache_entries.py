"""Listing, pruning, import and export of a cache file's entries, with errors instead of notes.

An exported cache is text to commit and compare: one judgement per line, sorted by key, equal bytes for equal content.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from pytest_rageval.errors import RagevalError, SettingsError
from pytest_rageval.io.expected import Expects
from pytest_rageval.io.lines import json_rows, read_lines
from pytest_rageval.io.messages import Report, Unsound, describe
from pytest_rageval.io.records import RecordReader
from pytest_rageval.io.strict_json import limits_broken
from pytest_rageval.judges.cache.cache_key import PARTS, KeyParts
from pytest_rageval.judges.cache.sqlite_cache import (
    LARGEST,
    PUT,
    TIME,
    connect,
    judgement_from_json,
    judgement_to_json,
    open_exclusively,
    row_of,
    transaction,
)
from pytest_rageval.judges.checked_judge import judgement_problem
from pytest_rageval.model import Json, Judgement
from pytest_rageval.text import excerpt, printable


def _time(value: str) -> str:
    with suppress(ValueError):
        if datetime.fromisoformat(value).strftime(TIME) == value:
            return value
    raise ValueError(f"is {describe(value)}, expected a time such as 2026-11-21T10:48:19Z")


LONGEST_KEY = 128


@dataclass(frozen=True, slots=True)
class Entry:
    """One judgement of a cache. `created` is UTC; `parts` is None if unknown."""

    key: Annotated[
        str,
        Field(min_length=1, max_length=LONGEST_KEY),
        Expects(f"a string of 1 to {LONGEST_KEY} characters"),
    ]
    created: Annotated[str, AfterValidator(_time), Expects("a time such as 2026-11-21T10:48:19Z")]
    judgement: Judgement
    parts: KeyParts | None = None


_ENTRIES: RecordReader[Entry] = RecordReader(Entry)


class BadEntry(ValueError):
    """A line or row that is no valid entry. The message has value and remedy, without the place."""


class EntryGroup(NamedTuple):
    """The number of judgements of one rubric by one model, and the time of the first and last."""

    rubric: str
    model: str
    entries: int
    first: str
    last: str


@contextmanager
def open_entries(path: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    """Open the cache's file; raise SettingsError of one line for any problem with it, also inside the block."""
    shown = printable(str(path))
    if not create and not path.exists():
        raise SettingsError(f"{shown}: there is no judge cache; a run whose judge is a model begins one")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(open_exclusively(lambda: connect(path, create=create), path.parent)) as connection:
            yield connection
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SettingsError(f"{shown}: not usable as a judge cache: {excerpt(reason)}") from None


def entry_groups(connection: sqlite3.Connection) -> list[EntryGroup]:
    """Count the stored judgements by rubric and model, the largest group first."""
    return [EntryGroup(*row) for row in connection.execute(_GROUPS, _EVERYTHING)]


def entries(connection: sqlite3.Connection) -> Iterator[tuple[str, Entry | BadEntry]]:
    """Yield the key of each stored judgement with its entry or its problem, in the order of the keys."""
    for key, created, parts, text in connection.execute(_ALL):
        try:
            read = None if parts is None else PARTS.read(json.loads(parts))
            yield key, _checked(Entry(key, created, judgement_from_json(text), read))
        except Unsound as unsound:
            yield key, BadEntry(excerpt(f"parts: {unsound.findings.first[0]}"))
        except (ValueError, RecursionError) as error:
            yield key, BadEntry(excerpt(str(error)))


def add(connection: sqlite3.Connection, new_entries: Iterable[Entry], *, replace: bool) -> Counter[str]:
    """Add entries, all or none; keep the stored judgement of an existing key unless `replace`.

    Return the numbers of the entries `added`, `replaced` and `kept`.
    """
    counts: Counter[str] = Counter()
    with transaction(connection):
        for entry in new_entries:
            row = connection.execute("SELECT 1 FROM judgements WHERE key = ?", (entry.key,)).fetchone()
            if row is not None and not replace:
                counts["kept"] += 1
                continue
            counts["added" if row is None else "replaced"] += 1
            connection.execute(PUT, row_of(entry.key, entry.created, entry.parts, entry.judgement))
    return counts


def prune(
    connection: sqlite3.Connection,
    *,
    older_than_days: int | None = None,
    model: str | None = None,
    rubric: str | None = None,
    dry_run: bool = False,
) -> list[EntryGroup]:
    """Remove the judgements that match all conditions: older than so many days, by this model, of this rubric.

    None matches everything. Return the (to be) removed judgements by rubric and model. The file shrinks.
    """
    before = None
    if older_than_days is not None:
        before = (datetime.now(UTC) - timedelta(days=older_than_days)).strftime(TIME)
    which = {"before": before, "model": model, "rubric": rubric}
    with transaction(connection):
        # Counted in the transaction that removes them: other processes may add some meanwhile.
        removed = [EntryGroup(*row) for row in connection.execute(_GROUPS, which)]
        if removed and not dry_run:
            connection.execute(_PRUNE, which)
    if removed and not dry_run:
        try:
            # After the transaction: SQLite refuses to do it within one.
            connection.execute("VACUUM")
        except sqlite3.Error as error:
            raise SettingsError(
                f"the judgements are removed, but the file could not be made smaller: {error}"
            ) from None
    return removed


_WHICH = (
    "(:before IS NULL OR created < :before) AND (:model IS NULL OR model = :model) "
    "AND (:rubric IS NULL OR rubric = :rubric)"
)
_EVERYTHING = {"before": None, "model": None, "rubric": None}
_GROUPS = (
    "SELECT rubric, model, count(*), min(created), max(created) FROM judgements "  # noqa: S608  our own words
    f"WHERE {_WHICH} GROUP BY rubric, model ORDER BY count(*) DESC, rubric, model"
)
_PRUNE = f"DELETE FROM judgements WHERE {_WHICH}"  # noqa: S608  our own words
_ALL = "SELECT key, created, CAST(parts AS BLOB), CAST(judgement AS BLOB) FROM judgements ORDER BY key"


LONGEST_LINE = 8 * LARGEST
"""Bytes: an escaped character takes up to six, and there are blanks between members."""

DEEPEST = 150
"""Levels in a judgement's `extra`: the reader of the cache allows 200 in all."""
KEYS = ("key", "created", "parts", "judgement")


def entry_line(entry: Entry) -> str:
    """Return the entry as one line of JSON, without newline; characters that steer a terminal are escaped."""
    parts = None if entry.parts is None else entry.parts.as_json()
    judgement = json.loads(judgement_to_json(entry.judgement))
    members: list[str] = []
    # The keys in this order, the keys of their values sorted.
    for name, value in zip(KEYS, (entry.key, entry.created, parts, judgement), strict=True):
        written = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)
        members.append(f'"{name}": {written}')
    line = "{" + ", ".join(members) + "}"
    return _STEERING.sub(lambda mark: f"\\u{ord(mark[0]):04x}", line)


def read_entries(path: Path) -> list[Entry]:
    """Read the lines of a file, as `entry_line` writes them; raise RagevalError with all problems."""
    report = Report(str(path))
    read: dict[str, Entry] = {}
    lines: dict[str, int] = {}
    for row in json_rows(read_lines(path, report, LONGEST_LINE), report):
        try:
            entry = _entry(row.record)
        except Unsound as unsound:
            report.add_findings(row.line, unsound.findings, None, row.column_finder().column)
            continue
        except BadEntry as problem:
            report.add(row.line, 1, str(problem))
            continue
        first = lines.setdefault(entry.key, row.line)
        if first != row.line:
            report.add(row.line, 1, f"key {entry.key[:12]}… stands in line {first} already; keep one of them")
        read[entry.key] = entry
    if report:
        raise RagevalError(*report.problems)
    return list(read.values())


def _entry(record: dict[str, Json]) -> Entry:
    if "parts" not in record:
        raise BadEntry("has no parts; write null where the key was not made of any")
    if isinstance(record.get("judgement"), dict) and "cached" in record["judgement"]:
        raise BadEntry("judgement.cached is not a known key; whether it was cached is a fact of one run")
    entry = _checked(_ENTRIES.read(record), "judgement: ")
    if problem := limits_broken(entry.judgement.extra, DEEPEST):
        raise BadEntry(f"judgement.extra {problem}")
    try:
        # All lines are checked before the first is added: an import is whole or not at all.
        row_of(entry.key, entry.created, entry.parts, entry.judgement)
    except ValueError as error:
        raise BadEntry(f"cannot be kept: {error}") from None
    return entry


def _checked(entry: Entry, label: str = "") -> Entry:
    """Return the entry; raise BadEntry if its judgement is invalid or its key does not match its parts."""
    if (problem := judgement_problem(entry.judgement)) is not None:
        raise BadEntry(f"{label}{problem}")
    if entry.parts is not None and entry.parts.key != entry.key:
        own = entry.parts.key
        raise BadEntry(f"key {entry.key[:12]}… is not that of its parts, {own[:12]}…; one of them was changed")
    return entry


_STEERING = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters escaped by `printable` but not by JSON, where they occur in strings only."""
