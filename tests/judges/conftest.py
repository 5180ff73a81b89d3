"""What several tests of judges take: a kind of server, and the one cache of a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pytest_rageval.judges.cache.cached_judge import CachedJudge
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache


@pytest.fixture(params=["openai", "anthropic"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[SqliteCache]:
    """The one cache of this test."""
    with closing(SqliteCache(tmp_path / "cache.sqlite")) as cache:
        yield cache


@pytest.fixture
def a_cached(cache: SqliteCache) -> Callable[..., CachedJudge]:
    """Stand a judge before the one cache of this test."""
    return lambda judge, mode="use": CachedJudge(judge, cache, mode)
