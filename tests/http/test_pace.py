"""How many requests at once, and how many requests and tokens a minute; in a loop whose clock jumps."""

from __future__ import annotations

import asyncio

import pytest
from jumping_loop import run_jumping

from pytest_rageval.http.call_limit import CallLimit, LimitedCall, Limits, shared_limit
from pytest_rageval.llm.endpoint_options import EndpointOptions, estimated_tokens


def times(limits: Limits, *requests: tuple[int, int | None], takes: float = 0.0) -> list[float]:
    """When each request (tokens estimated, tokens really used) may go, in seconds, all wanting to go at once."""

    async def all_at_once() -> list[float]:
        limit, begun = CallLimit(limits), []

        async def one(estimate: int, used: int | None) -> None:
            async with limit.turn(LimitedCall(estimate)):
                begun.append(asyncio.get_running_loop().time())
                await asyncio.sleep(takes)
                if used is not None:
                    limit.correct(estimate - used)

        await asyncio.gather(*(one(*request) for request in requests))
        return begun

    return run_jumping(all_at_once())


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
        limit, served = CallLimit(Limits(100, None, 600)), []

        async def one(tokens: int) -> None:
            async with limit.turn(LimitedCall(tokens)):
                served.append(tokens)

        await asyncio.gather(*(one(tokens) for tokens in (500, 400, 1, 300, 2)))
        return served

    assert run_jumping(order()) == [500, 400, 1, 300, 2]


def test_what_was_estimated_too_high_is_given_back():
    settled = times(Limits(1, None, 6000), *[(1000, 100)] * 20, takes=0.1)
    unsettled = times(Limits(1, None, 6000), *[(1000, None)] * 20, takes=0.1)
    assert settled[-1] < unsettled[-1] / 3


def test_one_who_gives_up_waiting_holds_nobody_up():
    async def cancelled() -> float:
        limit = CallLimit(Limits(1, 1))

        async def one() -> None:
            async with limit.turn(LimitedCall()):
                pass

        await one()
        waiting = asyncio.create_task(one())
        await asyncio.sleep(1)
        waiting.cancel()
        await one()
        return asyncio.get_running_loop().time()

    assert run_jumping(cancelled()) == pytest.approx(60)


def test_processes_share_the_limits_and_each_may_ask():
    options = EndpointOptions(concurrency=8, requests_per_minute=100, tokens_per_minute=1000, share=0.25)
    assert options.limits == Limits(2, 25, 250)
    assert EndpointOptions(concurrency=2, share=0.125).limits == Limits(1)


def test_all_who_ask_one_host_in_one_role_share_a_limit():
    limits = Limits(2)

    async def made() -> list[CallLimit]:
        places = [("judge", "one"), ("judge", "one"), ("judge", "other"), ("system", "one")]
        return [shared_limit(role, limits)(host) for role, host in places]

    first, second, other, system = asyncio.run(made())
    assert first is second
    assert len({first, other, system}) == 3
    assert asyncio.run(made())[0] is not first, "another event loop has locks of its own"


def test_tokens_are_estimated_by_bytes_since_other_scripts_cost_more():
    assert estimated_tokens("a" * 400, 50) == 150
    assert estimated_tokens("가" * 400, 0) == 300
    assert estimated_tokens("\ud800", 0) == 0
