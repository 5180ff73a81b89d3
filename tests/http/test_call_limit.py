"""How many calls are in flight at a server that refuses calls, that slows down under them, and that has a long tail."""

from __future__ import annotations

import asyncio
import heapq
import math
import random
import statistics
from collections.abc import Awaitable, Callable

import pytest
from fault_server import Connection, FaultServer

from pytest_rageval.http.call_limit import CallLimit, CallSlots, Overload
from pytest_rageval.http.client import SlottedClient


def simulated(overload: Overload, calls: int, latency: Callable[[int], float]) -> float:
    """Seconds that so many calls take of a clock that nobody waits for, at a server of this latency under a load."""
    ends: list[tuple[float, float, int]] = []
    now, begun = 0.0, 0
    while begun < calls or ends:
        while begun < calls and len(ends) < overload.limit:
            seconds = latency(len(ends))
            heapq.heappush(ends, (now + seconds, seconds, len(ends)))
            begun += 1
        now, seconds, others = heapq.heappop(ends)
        overload.ended(seconds, others)
    return now


# ── latency ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("most", [4, 16, 64])
@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_a_long_tail_alone_changes_next_to_nothing(most: int, sigma: float):
    # Against the same latencies with a fixed limit: the last ones to come are late in either.
    ratios = []
    for seed in range(40):
        times = []
        for is_adaptive in (False, True):
            chance = random.Random(seed)
            overload = Overload(most) if is_adaptive else _Fixed(most)
            times.append(simulated(overload, 600, lambda _: chance.lognormvariate(0, sigma)))  # noqa: B023
        ratios.append(times[1] / times[0])
    assert statistics.mean(ratios) <= 1.1
    assert sum(ratio > 1.3 for ratio in ratios) <= 2


class _Fixed(Overload):
    def ended(self, seconds: float, others: int) -> None:
        pass


def test_latency_that_grows_with_load_lowers_the_limit_and_one_that_falls_raises_it():
    overload = Overload(32)
    simulated(overload, 400, lambda others: 0.2 if others < 8 else 0.2 * (others / 4))
    assert overload.has_slowed
    assert overload.lowest <= 16
    simulated(overload, 4000, lambda _: 0.2)
    assert overload.limit == 32


def test_latency_that_is_the_same_under_any_load_changes_nothing():
    overload = Overload(32)
    simulated(overload, 1000, lambda _: 2.0)
    assert (overload.lowest, overload.has_slowed) == (32, False)


def test_latency_that_nobody_minds_changes_nothing():
    overload = Overload(32)
    simulated(overload, 1000, lambda others: 0.001 * (1 + others))
    assert overload.lowest == 32


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_refusals_lower_the_limit_to_what_runs_and_what_goes_well_raises_it_slowly_and_ever_slower():
    overload = Overload(16)
    era = overload.era
    for still_running in range(15, 3, -1):
        overload.refused(still_running, era)
    assert (overload.limit, overload.refusals) == (4, 12)
    waits = []
    for _ in range(3):
        good = 0
        while overload.limit == 4:
            overload.ended(0.2, 3)
            good += 1
        waits.append(good)
        overload.refused(4, overload.era)
    assert waits == [8, 16, 32]


def test_where_everything_is_refused_one_call_is_tried_at_a_time():
    overload = Overload(3)
    for _ in range(5):
        overload.refused(0, overload.era)
    assert overload.limit == overload.lowest == 1


# ── permits ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_permits_are_given_in_order_and_no_more_than_allowed():
    async def use() -> tuple[list[int], int]:
        limit = CallLimit(3)
        began: list[int] = []
        most = 0

        async def call(number: int) -> None:
            nonlocal most
            async with limit.permit():
                began.append(number)
                most = max(most, limit.running)
                await asyncio.sleep(0)

        await asyncio.gather(*(call(number) for number in range(20)))
        assert limit.running == 0
        return began, most

    assert asyncio.run(use()) == (list(range(20)), 3)


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


def test_a_refused_call_goes_before_those_that_were_never_sent_and_its_time_stands_still():
    async def use() -> list[str]:
        limit = CallLimit(2)
        order: list[str] = []
        is_begun = asyncio.get_running_loop().create_future()

        async def refused() -> None:
            async with limit.permit() as permit, asyncio.timeout(0.2) as timeout:
                permit.timeout = timeout
                order.append("refused")
                permit.refused()
                is_begun.set_result(None)
                assert await permit.again() >= 0.25  # longer than all of its time
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


def test_calls_that_begin_together_begin_among_many():
    async def use() -> list[int]:
        slots = CallSlots(8)
        slots.questions.overload = overload = _Listed(8)

        sent: asyncio.Queue[None] = asyncio.Queue()

        async def call(answer: asyncio.Future[None]) -> None:
            async with slots.asking() as permit:
                permit.sent()
                sent.put_nowait(None)
                await asyncio.shield(answer)

        loop = asyncio.get_running_loop()
        first, second = loop.create_future(), loop.create_future()
        calls = [asyncio.ensure_future(call(answer)) for answer in [first] * 8 + [second] * 8]
        for answer in (first, second):
            for _ in range(8):
                await sent.get()
            await asyncio.sleep(0)  # in which each counts the others
            answer.set_result(None)
        await asyncio.gather(*calls)
        return overload.others

    assert asyncio.run(use()) == [7] * 16


class _Listed(Overload):
    def __post_init__(self) -> None:
        super().__post_init__()
        self.others: list[int] = []

    def ended(self, seconds: float, others: int) -> None:
        self.others.append(others)


# ── servers ───────────────────────────────────────────────────────────────────────────────────────────────────


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


async def ask_all(url: str, calls: int, most: int, *, is_adaptive: bool, alone: int = 0) -> tuple[CallSlots, int]:
    """The slots, and how many of the calls were answered, of which some more went before, one by one."""
    slots = CallSlots(most, is_adaptive=is_adaptive)
    client = SlottedClient(slots=most, backoff=0.01, timeout=20.0)

    async def ask() -> None:
        async with slots.asking():
            await client.request("POST", url)

    for _ in range(alone):
        await ask()
    ends = await asyncio.gather(*(ask() for _ in range(calls)), return_exceptions=True)
    await client.aclose()
    return slots, ends.count(None)


@pytest.mark.usefixtures("transport")
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
    assert slots.questions.overload.lowest <= 4


def test_a_server_that_slows_down_under_load_is_asked_less_at_once():
    async def reply(connection: Connection, in_flight: int) -> None:
        await asyncio.sleep(0.1 if in_flight <= 6 else 0.6)
        await connection.reply(200, b"{}")

    with FaultServer(Crowd(reply)) as server:
        slots, answered = asyncio.run(ask_all(server.url, 170, 24, is_adaptive=True, alone=16))
    assert answered == 170
    assert slots.questions.overload.has_slowed
    assert slots.questions.overload.lowest <= 12
    assert "several times slower" in (slots.back_off.note or "")


def test_a_server_with_a_long_tail_is_asked_as_much_at_once_as_allowed():
    chance = random.Random(7)

    async def reply(connection: Connection, _: int) -> None:
        await asyncio.sleep(min(0.5, 0.05 * math.exp(chance.gauss(0, 1))))
        await connection.reply(200, b"{}")

    crowd = Crowd(reply)
    with FaultServer(crowd) as server:
        slots, answered = asyncio.run(ask_all(server.url, 150, 16, is_adaptive=True))
    assert (answered, crowd.most_in_flight, slots.back_off.note) == (150, 16, None)
