"""Refused calls: what they hold, when they are asked again, and when they fail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from fault_server import Connection, FaultServer, failure_of, get, gives, status
from jumping_loop import run_jumping

from pytest_rageval.http.attempts import RetryRule, make_attempts
from pytest_rageval.http.call_limit import CallLimit, CallPlaces, LimitedCall, Limits, in_places
from pytest_rageval.http.call_tally import call_clock, tallied
from pytest_rageval.http.client import SlottedClient
from pytest_rageval.http.failures import HttpFailure
from pytest_rageval.http.shared_pause import SharedPause

pytestmark = pytest.mark.reliability("API faults", "rate limits and refused calls")


def refused(retry_after: float | None = None) -> HttpFailure:
    return HttpFailure("rate_limited", "busy", status=429, is_refusal=True, retry_after=retry_after)


def test_a_refused_call_costs_no_attempt_however_often_it_is_refused():
    with FaultServer(*[status(429)] * 9, gives({})) as server:
        assert get(server.url, retries=0).attempts == 10


@pytest.mark.parametrize(("code", "body"), [(529, b""), (503, b"The model is overloaded"), (503, b"rate limit")])
def test_an_overloaded_server_refuses_whatever_its_status(code: int, body: bytes):
    with FaultServer(*[status(code, body)] * 4, gives({})) as server:
        assert get(server.url, retries=0).attempts == 5


def test_a_503_that_speaks_of_nothing_is_a_failure_like_others():
    with FaultServer(status(503, b"Bad gateway upstream")) as server:
        assert failure_of(server.url, retries=1).kind == "http_5xx"
    assert len(server.requests) == 2


def test_a_server_that_always_refuses_is_asked_until_patience_ends():
    limit = CallLimit(Limits(4, patience=1.0))
    with FaultServer(status(429, b"busy")) as server:
        began = time.monotonic()
        failure = failure_of(server.url, limit_of=lambda _: limit)
        assert 1.0 <= time.monotonic() - began < 10
    assert failure.kind == "rate_limited"
    assert str(failure) == (
        f"GET {server.url}: status 429: busy; no call there succeeded within rate_limit_patience (1 s)"
    )
    assert len(server.requests) > 2


async def ends_of(limit: CallLimit, calls: int, attempt: Callable[[], Awaitable[str]]) -> list[str]:
    """How each of several calls ended."""

    async def one() -> str:
        try:
            return await make_attempts(lambda _: attempt(), limit, RetryRule(), "it")
        except HttpFailure as failure:
            return failure.kind

    return await asyncio.gather(*(one() for _ in range(calls)))


@pytest.mark.parametrize("retry_after", [None, 1.0, 7.0])
def test_a_thousand_calls_that_are_all_refused_end_soon_after_patience_does(retry_after: float | None):
    async def use() -> tuple[list[str], float]:
        async def attempt() -> str:
            await asyncio.sleep(0.01)
            raise refused(retry_after)

        ends = await ends_of(CallLimit(Limits(16, patience=30)), 1000, attempt)
        return ends, asyncio.get_running_loop().time()

    ends, took = run_jumping(use())
    assert set(ends) == {"rate_limited"}
    assert 20 < took < 40


def test_failures_of_another_kind_restore_no_patience():
    async def use() -> float:
        limit = CallLimit(Limits(4, patience=30))

        async def refuses() -> str:
            raise refused()

        async def fails() -> str:
            raise HttpFailure("http_4xx", "no", status=400)

        refusing = asyncio.create_task(ends_of(limit, 1, refuses))
        while not refusing.done() and asyncio.get_running_loop().time() < 100:
            await ends_of(limit, 1, fails)
            await asyncio.sleep(1)
        refusing.cancel()
        return asyncio.get_running_loop().time()

    assert run_jumping(use()) < 50


def test_one_success_restores_patience():
    async def use() -> list[str]:
        began = asyncio.get_running_loop().time()

        async def attempt() -> str:
            now = asyncio.get_running_loop().time() - began
            await asyncio.sleep(0.01)
            if now % 50 > 30:  # open for twenty of fifty seconds
                return "done"
            raise refused()

        return await ends_of(CallLimit(Limits(4, patience=60)), 40, attempt)

    assert set(run_jumping(use())) == {"done"}


def test_a_retry_after_holds_for_all_calls_of_the_limit_and_these_leave_one_by_one():
    async def use() -> list[float]:
        sent: list[float] = []
        loop = asyncio.get_running_loop()

        async def attempt() -> str:
            sent.append(loop.time())
            await asyncio.sleep(0.01)
            if len(sent) <= 4:
                raise refused(10.0)
            return "done"

        await ends_of(CallLimit(Limits(4)), 12, attempt)
        return sent

    sent = run_jumping(use())
    assert [at for at in sent if 0.01 < at < 10] == []
    after = sent[4:]
    gaps = [later - earlier for earlier, later in pairwise(after)]
    assert min(gaps) > 0.01, "all that waited left at once"


def test_a_wait_that_never_ends_is_refused_although_others_succeed():
    async def use() -> list[str]:
        results: Iterator[HttpFailure | str] = iter([refused(float("inf")), *["done"] * 3])

        async def attempt() -> str:
            result = next(results)
            await asyncio.sleep(0.01 if isinstance(result, HttpFailure) else 1.0)
            if isinstance(result, HttpFailure):
                raise result
            return result

        return await asyncio.wait_for(ends_of(CallLimit(Limits(4)), 8, attempt), 1000)

    assert run_jumping(use()) == ["rate_limited", *["done"] * 3, *["rate_limited"] * 4]


def test_a_waiting_call_holds_no_place_of_the_run():
    async def use() -> tuple[str, float]:
        places = CallPlaces(1)
        judge, system = CallLimit(Limits(4)), CallLimit(Limits(4))
        replies: Iterator[HttpFailure | str] = iter([refused(60.0), "judged"])

        async def judged() -> str:
            reply = next(replies)
            if isinstance(reply, HttpFailure):
                raise reply
            return reply

        async def asked() -> float:
            async with system.turn(LimitedCall()):
                return asyncio.get_running_loop().time()

        with in_places(places):
            judging = asyncio.create_task(make_attempts(lambda _: judged(), judge, RetryRule(), "judge"))
            await asyncio.sleep(1)
            asked_at = await asked()
            return await judging, asked_at

    said, asked_at = run_jumping(use())
    assert said == "judged"
    assert asked_at < 2


def test_the_time_of_a_call_stands_still_while_it_waits():
    async def use() -> tuple[str, float, float]:
        limit = CallLimit(Limits(1))
        replies: Iterator[HttpFailure | str] = iter([refused(60.0), "done"])

        async def attempt() -> str:
            reply = next(replies)
            await asyncio.sleep(0.4)
            if isinstance(reply, HttpFailure):
                raise reply
            return reply

        with tallied() as tally:
            async with asyncio.timeout(0.5) as timeout:
                with call_clock(timeout):
                    done = await make_attempts(lambda _: attempt(), limit, RetryRule(timeout=0.5), "it")
        return done, tally.queued_ms, tally.retry_wait_ms

    done, queued_ms, retry_wait_ms = run_jumping(use())
    assert done == "done"
    assert queued_ms < 1
    assert retry_wait_ms == pytest.approx(60_400, abs=30)


def test_a_call_that_is_given_up_while_it_waits_leaves_its_place_to_others():
    async def use() -> None:
        limit = CallLimit(Limits(1))

        async def call() -> str:
            async with limit.turn(LimitedCall()):
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


def test_a_server_that_refuses_more_than_a_few_at_once_answers_all_and_refuses_little():
    limit = CallLimit(Limits(16))

    async def ask_all(url: str) -> None:
        client = SlottedClient(timeout=20.0, limit_of=lambda _: limit)
        await asyncio.gather(*(client.request("POST", url) for _ in range(120)))
        await client.aclose()

    with FaultServer(refuses_more_than(4)) as server:
        asyncio.run(ask_all(server.url))
    assert len(server.requests) < 160, "as a rule 135; without a pace some hundred"
    assert limit.lowest <= 4


def test_workers_of_one_run_know_of_each_others_retry_after(tmp_path: Path):
    one, other = (SharedPause(tmp_path / "pause") for _ in range(2))
    assert one.seconds_left() < 0
    other.extend(5.0)
    other.extend(1.0)
    assert 4 < one.seconds_left() <= 5
