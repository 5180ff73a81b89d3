"""Files of the judge cache: made, filled, looked into and changed past the cache."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from processes import python

from pytest_rageval.judges.cache.cache_key import KeyParts, key_parts
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache
from pytest_rageval.model import Judgement, JudgeRequest

A_JUDGEMENT = Judgement(
    rubric="groundedness",
    scores={"groundedness": 3.5},
    scale=(0.0, 5.0),
    reasoning='근거가 있다 \x00 😀\n"quoted"',
    supported_claims=("one", "two"),
    unsupported_claims=("three",),
    model="m/1",
    prompt_version="1+abc",
    tokens_in=100,
    tokens_out=20,
    cost_usd=0.001,
    latency_ms=12.5,
    extra={"raw": {"score": "3.5"}, "flags": ["marker quoted", None]},
)


opened: list[SqliteCache] = []
"""What `a_cache` opened, for a fixture to close."""


def a_cache(path: Path) -> SqliteCache:
    opened.append(SqliteCache(path))
    return opened[-1]


def close_all() -> None:
    while opened:
        opened.pop().close()


def the_parts(question: str = "why?", **variables: object) -> KeyParts:
    given = {"question": question, "answer": "so", "contexts": [], **variables}
    return key_parts(JudgeRequest("groundedness", "1+abc", given), "m/1", {"temperature": 0})


def rows(path: Path, query: str) -> list[tuple]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def change(path: Path, statement: str, *values: str | bytes) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


def a_filled(path: Path, count: int = 200) -> SqliteCache:
    cache = a_cache(path)
    for at in range(count):
        cache.put(f"key-{at}", A_JUDGEMENT)
    cache.close()
    assert cache.notes == []
    return cache


def set_aside(path: Path) -> list[Path]:
    return sorted(path.parent.glob("*.broken-*[0-9]"))


def run(source: str, *arguments: object, **options) -> str:
    """Run a piece of Python in a process of its own and return what it printed."""
    done = python("-W", "error", "-c", source, *map(str, arguments), cwd=Path(__file__).parents[2], **options)
    assert done.returncode == 0, done.stderr
    return done.stdout
