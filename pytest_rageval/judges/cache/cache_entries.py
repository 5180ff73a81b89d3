"""List, prune and import the entries of a cache file, for people, who want errors and not notes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.errors import SettingsError
from pytest_rageval.judges.cache.cache_file import connect, open_alone, transaction
from pytest_rageval.judges.cache.cache_key import KeyParts
from pytest_rageval.judges.cache.cached_judge import unfit
from pytest_rageval.judges.cache.judgement_json import judgement_from_json
from pytest_rageval.judges.cache.sqlite_cache import PUT, row_of
from pytest_rageval.model import Judgement
from pytest_rageval.text import excerpt, printable


class Entry(NamedTuple):
    """One judgement of a cache. `created` is UTC, as 2026-11-21T10:48:19Z; `parts` is None where they are not known."""

    key: str
    created: str
    parts: KeyParts | None
    judgement: Judgement


class Unreadable(NamedTuple):
    """An entry that is no judgement of ours, and why."""

    key: str
    reason: str


class Held(NamedTuple):
    """How many judgements of one rubric by one model there are, the first and the last of them."""

    rubric: str
    model: str
    entries: int
    first: str
    last: str


class Added(NamedTuple):
    """What became of entries that were brought in."""

    added: int = 0
    replaced: int = 0
    kept: int = 0


@contextmanager
def opened(path: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    """The cache's file, open. What is wrong with it, or goes wrong with it inside, is a SettingsError of one line."""
    shown = printable(str(path))
    if not create and not path.exists():
        raise SettingsError(f"{shown}: there is no judge cache; a run whose judge is a model begins one")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(open_alone(lambda: connect(path, create=create), path.parent)) as connection:
            yield connection
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SettingsError(f"{shown}: not usable as a judge cache: {excerpt(reason)}") from None


def held(connection: sqlite3.Connection) -> list[Held]:
    """What there is, by rubric and model; the most first."""
    return [Held(*row) for row in connection.execute(_HELD, _EVERYTHING)]


def entries(connection: sqlite3.Connection) -> Iterator[Entry | Unreadable]:
    """All that is there at this moment, in the order of the keys."""
    for key, created, parts, text in connection.execute(_ALL):
        try:
            judgement = judgement_from_json(text)
            if (problem := unfit(judgement)) is not None:
                raise ValueError(problem)
            described = None if parts is None else KeyParts.read(json.loads(parts))
            if described is not None and described.key != key:
                raise ValueError("its key is not that of its parts")
            yield Entry(key, created, described, judgement)
        except (ValueError, RecursionError) as error:
            yield Unreadable(key, excerpt(str(error)))


def add(connection: sqlite3.Connection, new_entries: Iterable[Entry], *, replace: bool) -> Added:
    """Bring entries in, all or none; of a key that is there already the judgement stays, unless `replace`."""
    added = replaced = kept = 0
    with transaction(connection):
        for entry in new_entries:
            is_there = connection.execute("SELECT 1 FROM judgements WHERE key = ?", (entry.key,)).fetchone() is not None
            if is_there and not replace:
                kept += 1
                continue
            connection.execute(PUT, row_of(*entry))
            replaced += is_there
            added += not is_there
    return Added(added, replaced, kept)


def prune(
    connection: sqlite3.Connection,
    *,
    older_than_days: int | None = None,
    model: str | None = None,
    rubric: str | None = None,
    dry_run: bool = False,
) -> list[Held]:
    """Remove what is all of: older than so many days, by this model, of this rubric. None restricts nothing.

    Returns what went (or would go) by rubric and model. The file gives the room back.
    """
    before = None
    if older_than_days is not None:
        before = (datetime.now(UTC) - timedelta(days=older_than_days)).strftime("%Y-%m-%dT%H:%M:%SZ")
    which = {"before": before, "model": model, "rubric": rubric}
    with transaction(connection):
        gone = [Held(*row) for row in connection.execute(_HELD, which)]
        if gone and not dry_run:
            connection.execute(_PRUNE, which)
    if gone and not dry_run:
        try:
            connection.execute("VACUUM")
        except sqlite3.Error as error:
            raise SettingsError(
                f"the judgements are removed, but the file could not be made smaller: {error}"
            ) from None
    return gone


_WHICH = (
    "(:before IS NULL OR created < :before) AND (:model IS NULL OR model = :model) "
    "AND (:rubric IS NULL OR rubric = :rubric)"
)
_EVERYTHING = {"before": None, "model": None, "rubric": None}
_HELD = (
    "SELECT rubric, model, count(*), min(created), max(created) FROM judgements "  # noqa: S608  our own words
    f"WHERE {_WHICH} GROUP BY rubric, model ORDER BY count(*) DESC, rubric, model"
)
_PRUNE = f"DELETE FROM judgements WHERE {_WHICH}"  # noqa: S608  our own words
_ALL = "SELECT key, created, CAST(parts AS BLOB), CAST(judgement AS BLOB) FROM judgements ORDER BY key"
