"""A judge cache for each test that asks for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from pytest_rageval.judges.cache.cached_judge import CachedJudge, Mode
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache
from pytest_rageval.judges.judge import Judge


@pytest.fixture
def cache(tmp_path) -> Iterator[SqliteCache]:
    """The one cache of this test."""
    cache = SqliteCache(tmp_path / "cache.sqlite")
    yield cache
    cache.close()


@pytest.fixture
def cache_notes(cache) -> Callable[[], list[str]]:
    return lambda: list(cache.notes)


@pytest.fixture
def a_cached(cache) -> Callable[..., CachedJudge]:
    """Stand a judge before the one cache of this test."""

    def stand_before(judge: Judge, mode: Mode = "use") -> CachedJudge:
        return CachedJudge(judge, cache, mode)

    return stand_before
