"""The pace of a provider: how many at once, how many a minute; in a loop whose clock jumps instead of waiting."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from pytest_rageval.llm.endpoint_options import EndpointOptions, Limits, Pace, estimated_tokens, pace_of

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    """Nothing comes from outside, so a wait is over at once; the clock has moved by it."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        self.now += (timeout or 0.0) + 1e-6  # and it never stands still
        return super().select(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Jumping()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(work)


def times(limits: Limits, *requests: tuple[int, int | None], takes: float = 0.0) -> list[float]:
    """When each request (tokens estimated, tokens really used) may go, in seconds, all wanting to go at once."""

    async def all_at_once() -> list[float]:
        pace, begun = Pace(limits), []

        async def one(estimate: int, used: int | None) -> None:
            async with pace.turn(estimate) as turn:
                begun.append(asyncio.get_running_loop().time())
                await asyncio.sleep(takes)
                if used is not None:
                    turn.correct(used)

        await asyncio.gather(*(one(*request) for request in requests))
        return begun

    return run(all_at_once())


def most_in_a_minute(begun: list[float], weights: list[int]) -> int:
    pairs = list(zip(begun, weights, strict=True))
    return max(sum(w for at, w in pairs if start <= at < start + 60) for start in begun)


def test_no_more_go_at_once_than_allowed():
    assert times(Limits(2), *[(0, None)] * 6, takes=1.0) == pytest.approx([0, 0, 1, 1, 2, 2], abs=0.01)


@pytest.mark.parametrize("per_minute", [1, 7, 60])
def test_no_minute_has_more_requests_than_allowed_and_they_are_spaced(per_minute: float):
    begun = times(Limits(1000, per_minute), *[(0, None)] * (3 * int(per_minute) + 1))
    assert most_in_a_minute(begun, [1] * len(begun)) <= per_minute + 1
    assert begun[-1] == pytest.approx(180, abs=1)


def test_tokens_a_minute_are_kept_to_whatever_their_size():
    sizes = [100, 4000, 20, 900, 3000, 500, 2500] * 4
    begun = times(Limits(1000, None, 6000), *((size, size) for size in sizes))
    assert most_in_a_minute(begun, sizes) <= 6000 + max(sizes)
    assert begun[-1] == pytest.approx(60 * sum(sizes) / 6000, abs=6)


def test_who_comes_first_is_served_first_however_large():
    async def order() -> list[int]:
        pace, served = Pace(Limits(100, None, 600)), []

        async def one(tokens: int) -> None:
            async with pace.turn(tokens):
                served.append(tokens)

        await asyncio.gather(*(one(tokens) for tokens in (500, 400, 1, 300, 2)))
        return served

    assert run(order()) == [500, 400, 1, 300, 2]


def test_what_was_estimated_too_high_is_given_back():
    settled = times(Limits(1, None, 6000), *[(1000, 100)] * 20, takes=0.1)
    unsettled = times(Limits(1, None, 6000), *[(1000, None)] * 20, takes=0.1)
    assert settled[-1] < unsettled[-1] / 3


def test_a_retry_waits_for_its_turn_too():
    async def retried() -> float:
        async with Pace(Limits(1, 60)).turn(0) as turn:
            await turn.renew()
            await turn.renew()
            return asyncio.get_running_loop().time()

    assert run(retried()) == pytest.approx(2, abs=0.01)


def test_one_who_gives_up_waiting_holds_nobody_up():
    async def cancelled() -> float:
        pace = Pace(Limits(1, 1))
        await pace.acquire(0)
        waiting = asyncio.create_task(pace.acquire(0))
        await asyncio.sleep(1)
        waiting.cancel()
        await pace.acquire(0)
        return asyncio.get_running_loop().time()

    assert run(cancelled()) == pytest.approx(60)


def test_processes_share_the_limits_and_each_may_ask():
    options = EndpointOptions(concurrency=8, requests_per_minute=100, tokens_per_minute=1000, share=0.25)
    assert options.limits == Limits(2, 25, 250)
    assert EndpointOptions(concurrency=2, share=0.125).limits == Limits(1)


def test_judges_of_one_host_share_a_pace_and_those_of_others_do_not():
    async def paces() -> list[Pace]:
        return [pace_of(host, Limits(2)) for host in ("one", "one", "other")]

    first, second, other = asyncio.run(paces())
    assert first is second
    assert first is not other
    assert asyncio.run(paces())[0] is not first, "another event loop has locks of its own"


def test_tokens_are_estimated_by_bytes_since_other_scripts_cost_more():
    assert estimated_tokens("a" * 400, 50) == 150
    assert estimated_tokens("가" * 400, 0) == 300
    assert estimated_tokens("\ud800", 0) == 0
