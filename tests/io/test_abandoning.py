"""Foreign coroutines that do not obey a cancellation."""

from __future__ import annotations

import asyncio
import time

import pytest

from pytest_rageval.io.abandoning import FAREWELL_S, abandonable

SWALLOWED: list[str] = []


async def swallows() -> str:
    for _ in range(2):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            SWALLOWED.append("cancelled")
    return "late"


async def limited(seconds: float) -> str:
    async with asyncio.timeout(seconds):
        return await abandonable(swallows())


def test_code_that_swallows_its_end_is_left_behind():
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(limited(0.05))
    assert time.monotonic() - began < FAREWELL_S + 10
    assert SWALLOWED


def test_code_that_obeys_may_clean_up():
    cleaned: list[bool] = []

    async def obeys() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            cleaned.append(True)

    async def main() -> None:
        async with asyncio.timeout(0.05):
            await abandonable(obeys())

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert cleaned == [True]


@pytest.mark.parametrize("error", [ValueError, SystemExit, asyncio.CancelledError])
def test_what_code_raises_reaches_its_caller(error: type[BaseException]):
    async def raises() -> None:
        raise error("x")

    async def main() -> str:
        try:
            await abandonable(raises())
        except BaseException as raised:  # noqa: BLE001 - whatever it is
            return type(raised).__name__
        return ""

    assert asyncio.run(main()) == error.__name__


def test_code_that_is_cancelled_before_it_began_is_no_warning():
    async def main() -> None:
        task = asyncio.ensure_future(abandonable(swallows()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
