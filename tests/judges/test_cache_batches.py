"""Judgements that come in the same moment, written to the cache together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from counting_judge import Counting, a_request

from pytest_rageval.judges.cache.cache_key import KeyParts, key_parts
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
        return batches.get(key_parts(request, "counting/1").key) is not None

    async def judge_all() -> list[bool]:
        judge = CachedJudge(Counting(), batches)
        return await asyncio.gather(*(kept(judge, a_request(f"q{number}")) for number in range(5)))

    assert all(asyncio.run(judge_all()))
    assert batches.sizes == [5]


class Noting(Counting):
    """Knows what it has judged."""

    def __init__(self) -> None:
        super().__init__()
        self.judged: list[JudgeRequest] = []

    async def judge(self, request: JudgeRequest) -> Judgement:
        judgement = await super().judge(request)
        self.judged.append(request)
        return judgement


def test_whenever_cases_are_cancelled_what_was_judged_is_kept(batches: Batches):
    async def cancelled_after(turns: int, judge: Noting) -> int:
        cached = CachedJudge(judge, batches)
        requests = [a_request(f"q{number} of {turns}") for number in range(3)]
        tasks = [asyncio.create_task(cached.judge(request)) for request in requests]
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return sum(task.cancelled() for task in tasks)

    endings = set()
    for turns in range(5):
        judge = Noting()
        cancelled = asyncio.run(cancelled_after(turns, judge))
        endings.add((len(judge.judged), cancelled))
        assert all(batches.get(key_parts(request, "counting/1").key) for request in judge.judged), turns
    assert endings == {(0, 3), (3, 3), (3, 0)}, "before they were judged, before they were written, and after"
