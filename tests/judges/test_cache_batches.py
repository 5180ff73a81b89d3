"""Judgements that come in the same moment, written to the cache together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from counting_judge import Counting, a_request

from pytest_rageval.judges.cache.cache_key import KeyParts, cache_key
from pytest_rageval.judges.cache.cached_judge import CachedJudge
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache
from pytest_rageval.model import Judgement, JudgeRequest


class Batches(SqliteCache):
    """The cache, and how many judgements it was given at a time."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.sizes: list[int] = []

    def put_all(self, new: Iterable[tuple[str, Judgement, KeyParts | None]]) -> None:
        entries = list(new)
        self.sizes.append(len(entries))
        super().put_all(entries)


@pytest.fixture
def batches(tmp_path: Path) -> Iterator[Batches]:
    cache = Batches(tmp_path / "batches.sqlite")
    yield cache
    cache.close()


def test_judgements_of_one_moment_are_kept_together_before_any_of_them_is_handed_out(batches: Batches):
    async def kept(judge: CachedJudge, request: JudgeRequest) -> bool:
        await judge.judge(request)
        return batches.get(cache_key(request, "counting/1")) is not None

    async def judge_all() -> list[bool]:
        judge = CachedJudge(Counting(), batches)
        return await asyncio.gather(*(kept(judge, a_request(f"q{number}")) for number in range(5)))

    assert all(asyncio.run(judge_all()))
    assert batches.sizes == [5]


def test_a_judgement_whose_case_is_cancelled_is_kept_with_the_others(batches: Batches):
    async def judge_all() -> None:
        judge = CachedJudge(Counting(), batches)
        tasks = [asyncio.create_task(judge.judge(a_request(f"q{number}"))) for number in range(3)]
        for _ in range(2):  # asked; judged, and about to be written
            await asyncio.sleep(0)
        assert len(judge._unwritten) == 3
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    asyncio.run(judge_all())
    assert all(batches.get(cache_key(a_request(f"q{number}"), "counting/1")) for number in range(3))
