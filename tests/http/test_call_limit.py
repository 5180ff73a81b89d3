"""How many calls are in flight at a server that refuses calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from fault_server import Connection, FaultServer

from pytest_rageval.http.call_limit import CallLimit, CallSlots
from pytest_rageval.http.client import SlottedClient


def test_a_burst_of_refusals_halves_the_limit_once_and_what_goes_well_raises_it_again():
    limit = CallLimit(16)
    for _ in range(8):  # of calls that began together
        limit.note_refusal(0)
    assert (limit.back_off.limit, limit.back_off.refusals) == (8, 8)
    good = 0
    while limit.back_off.limit == 8:
        limit.note_success()
        good += 1
    assert (good, limit.back_off.limit) == (32, 10)
    for _ in range(200):
        limit.note_success()
    assert (limit.back_off.limit, limit.back_off.lowest) == (16, 8)


def test_where_everything_is_refused_one_call_is_tried_at_a_time():
    limit = CallLimit(3)
    for _ in range(5):
        limit.note_refusal(limit.era)
    assert limit.back_off.limit == limit.back_off.lowest == 1


def test_places_that_were_free_when_the_limit_was_lowered_are_not_given_out():
    async def use() -> int:
        limit = CallLimit(8)
        await limit.acquire()
        limit.note_refusal(0)
        for _ in range(3):
            await limit.acquire()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(limit.acquire(), 0.01)
        return limit.running

    assert asyncio.run(use()) == 4


def test_a_call_that_is_given_up_while_it_waits_leaves_its_place_to_others():
    async def use() -> None:
        limit = CallLimit(1)

        async def call() -> str:
            async with limit.permit():
                await asyncio.sleep(0.01)
                return "done"

        calls = [asyncio.create_task(call()) for _ in range(5)]
        await asyncio.sleep(0)
        calls[1].cancel()  # while it waits
        await calls[0]
        calls[2].cancel()  # in the moment when it is let go
        ended = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 10)
        assert [str(end) for end in ended] == ["done", "", "", "done", "done"]
        assert limit.running == 0

    asyncio.run(use())


def test_a_refused_call_is_repeated_before_others_begin_and_its_time_stands_still_while_it_waits():
    async def use() -> list[str]:
        limit = CallLimit(2)
        order: list[str] = []
        is_begun = asyncio.get_running_loop().create_future()

        async def refused() -> None:
            async with limit.permit() as permit, asyncio.timeout(0.2) as timeout:
                permit.timeout = timeout
                await asyncio.sleep(0)  # until the third call waits
                order.append("refused")
                permit.note_refusal()
                is_begun.set_result(None)
                assert await permit.renew() >= 0.25  # longer than all of its time
                order.append("again")

        async def runs() -> None:
            async with limit.permit():
                await asyncio.wait_for(is_begun, timeout=30)
                await asyncio.sleep(0.3)
                order.append("ended")

        async def waits() -> None:
            async with limit.permit():
                order.append("came later")

        await asyncio.gather(runs(), refused(), waits())
        return order

    assert asyncio.run(use()) == ["refused", "ended", "again", "came later"]


class Crowd:
    """A server's behaviour by how many calls are in flight there."""

    def __init__(self, reply: Callable[[Connection, int], Awaitable[None]]) -> None:
        self._reply = reply
        self.in_flight = 0
        self.most_in_flight = 0

    async def __call__(self, connection: Connection) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await self._reply(connection, self.in_flight)
        finally:
            self.in_flight -= 1


def refuses_more_than(fit: int) -> Crowd:
    async def reply(connection: Connection, in_flight: int) -> None:
        if in_flight > fit:
            await connection.reply(429, b"busy")
            return
        await asyncio.sleep(0.02)
        await connection.reply(200, b"{}")

    return Crowd(reply)


async def ask_all(url: str, calls: int, most: int, *, is_adaptive: bool) -> tuple[CallSlots, int]:
    """The slots, and how many of the calls were answered."""
    slots = CallSlots(most, is_adaptive=is_adaptive)
    client = SlottedClient(slots=most, backoff=0.01, timeout=20.0)

    async def ask() -> None:
        async with slots.asking():
            await client.request("POST", url)

    ends = await asyncio.gather(*(ask() for _ in range(calls)), return_exceptions=True)
    await client.aclose()
    return slots, ends.count(None)


def test_a_server_that_refuses_more_than_a_few_at_once_answers_all_and_refuses_little():
    asked, answered = [], []
    for is_adaptive in (False, True):
        with FaultServer(refuses_more_than(4)) as server:
            slots, count = asyncio.run(ask_all(server.url, 120, 16, is_adaptive=is_adaptive))
        asked.append(len(server.requests))
        answered.append(count)
    assert answered[0] < 120, "a fixed limit would do as well"
    assert answered[1] == 120
    assert asked[1] - 120 < (asked[0] - answered[0]) / 2
    assert "the system refused" in (slots.back_off.note or "")
    assert slots.back_off.lowest <= 4
