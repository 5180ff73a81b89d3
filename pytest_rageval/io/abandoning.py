"""Awaiting foreign code that may not obey a cancellation."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")
FAREWELL_S = 0.5
"""Seconds in which cancelled code can clean up."""


async def abandonable(call: Awaitable[T]) -> T:
    """Return the result of foreign code; when cancelled, abandon it if it does not end.

    A time limit cancels its task once. Code that catches the cancellation and goes on would block its caller for ever.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    async def run() -> None:
        try:
            results.append(await call)
        # Kept for the caller: a SystemExit that reaches a task ends the thread of its loop.
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    task = asyncio.create_task(run())
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait([task], timeout=FAREWELL_S)
        if task.cancelled() and inspect.iscoroutine(call):
            call.close()  # it never began, of which Python would warn
        raise
    if errors:
        raise errors[0]
    return results[0]
