"""Caches of judgements: a judge behind the one of a test, and the place of a file that may be broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cache_files import opened

from pytest_rageval.judges.cache.cached_judge import CachedJudge
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache


@pytest.fixture
def a_cached(tmp_path: Path) -> Iterator[Callable[..., CachedJudge]]:
    """Stand a judge before the one cache of this test."""
    with closing(SqliteCache(tmp_path / "cache.sqlite")) as cache:
        yield lambda judge, mode="use": CachedJudge(judge, cache, mode)


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """Where a cache may be; whatever `a_cache` opened is closed at the end."""
    yield tmp_path / "deep" / "cache.sqlite"
    while opened:
        opened.pop().close()
