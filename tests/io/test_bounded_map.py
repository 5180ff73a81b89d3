"""Many waits at a time: in order, bounded, and ended whatever happens."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_rageval.io.bounded_map import STARTED, at_once


class Work:
    """Waits a little for each number; says how many waited at once, and whether it was closed."""

    def __init__(self, breaks_at: int | None = None) -> None:
        self.under_way = self.most = self.closed = self.cancelled = 0
        self.told: list[int] = []
        self.breaks_at = breaks_at

    async def __call__(self, number: int) -> int:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(0.001 * (number % 3))
            if number == self.breaks_at:
                raise ValueError(f"number {number}")
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1
        return number

    async def close(self) -> None:
        assert not self.under_way
        self.closed += 1

    def over(self, numbers: Iterator[int] | range, limit: int = 4) -> Any:
        return at_once(self, numbers, limit, close=self.close, watch=self.told.append)


def test_results_come_in_order_and_never_more_than_the_limit_are_under_way():
    work = Work()
    assert list(work.over(range(100))) == list(range(100))
    assert work.most == 4
    assert work.told == list(range(1, 101))
    assert work.closed == 1


def test_no_more_is_taken_than_is_started():
    work, taken = Work(), itertools.count()
    results = work.over(taken, limit=3)
    assert next(results) == 0
    assert next(taken) == STARTED * 3
    results.close()
    assert work.closed == 1


def test_an_error_of_one_ends_it_and_leaves_nothing_running():
    work = Work(breaks_at=7)
    with pytest.raises(ValueError, match="number 7"):
        list(work.over(range(100)))
    assert (work.under_way, work.closed) == (0, 1)


def test_ctrl_c_between_a_result_and_the_end_of_its_wait_ends_what_is_left_and_stays_ctrl_c():
    work = Work()

    def interrupt() -> None:
        raise KeyboardInterrupt

    async def interrupted(number: int) -> int:
        if number == 0:
            # In the next turn of the loop the result is there, and the loop not yet stopped.
            asyncio.get_running_loop().call_soon(interrupt)
            return number
        try:
            await asyncio.sleep(60)
            return number
        except asyncio.CancelledError:
            work.cancelled += 1
            raise

    with pytest.raises(KeyboardInterrupt):
        list(at_once(interrupted, range(4), 4, close=work.close, watch=work.told.append))
    assert (work.cancelled, work.closed) == (3, 1)
