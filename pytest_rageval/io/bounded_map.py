"""Concurrent work with ordered results: an event loop behind a plain iterator."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

A = TypeVar("A")
T = TypeVar("T")

STARTED = 4
"""Multiple of the limit that is started ahead, so that one slow item does not hold up the others."""


def at_once(
    work: Callable[[A], Coroutine[Any, Any, T]],
    items: Iterable[A],
    limit: int,
    *,
    close: Callable[[], Coroutine[Any, Any, None]],
    watch: Callable[[int], None],
) -> Iterator[T]:
    """Yield the result of `work` for each item, in the order of the items, with at most `limit` running.

    The loop runs only while the caller waits for a result. `watch` receives the number of finished items, in any order.
    When the iterator ends, even by Ctrl-C or an item's error, the rest is cancelled and `close` awaited.
    """
    done = 0

    async def work_on(item: A, slots: asyncio.Semaphore) -> T:
        nonlocal done
        await slots.acquire()
        result = await work(item)
        slots.release()  # not after an error: the next item would start, be paid for, and be cancelled at once
        done += 1
        watch(done)
        return result

    waiting: deque[asyncio.Task[T]] = deque()
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        slots = asyncio.Semaphore(limit)
        try:
            for item in items:
                waiting.append(loop.create_task(work_on(item, slots)))
                # Not all at once: items may come from a file of a million lines.
                if len(waiting) >= STARTED * limit:
                    yield runner.run(_result(waiting.popleft()))
            while waiting:
                yield runner.run(_result(waiting.popleft()))
        finally:
            _run_once(loop)
            runner.run(_end(waiting, close))


def _run_once(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop once so that an interrupted wait stops it now and not during the next wait."""
    loop.call_soon(loop.stop)
    loop.run_forever()


async def _result(task: asyncio.Task[T]) -> T:
    return await task


async def _end(tasks: Iterable[asyncio.Task[Any]], close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    for task in tasks:
        task.cancel()
    # First the calls, then the client that they use.
    await asyncio.gather(*tasks, return_exceptions=True)
    await close()
