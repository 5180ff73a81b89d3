"""Many waits at a time, their results in order: an event loop behind a plain iterator."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

A = TypeVar("A")
T = TypeVar("T")

STARTED = 4
"""How many times what may run at once is started: so that one that takes long does not hold up the others."""


def at_once(
    work: Callable[[A], Coroutine[Any, Any, T]],
    items: Iterable[A],
    limit: int,
    *,
    close: Callable[[], Coroutine[Any, Any, None]],
    watch: Callable[[int], None],
) -> Iterator[T]:
    """`work` of each item, in the order of the items, at most `limit` of them under way.

    The loop runs only while a result is waited for. `watch` is told how many are done, in whatever order. When the
    iterator ends, however that comes (Ctrl-C, an error of one item), what is left is cancelled and `close` awaited.
    """
    done = 0

    async def work_on(item: A, slots: asyncio.Semaphore) -> T:
        nonlocal done
        await slots.acquire()
        result = await work(item)
        slots.release()  # not after an error: the item that would begin then is cancelled at once, and paid for
        done += 1
        watch(done)
        return result

    waiting: deque[asyncio.Task[T]] = deque()
    with asyncio.Runner() as runner:
        loop, slots = runner.get_loop(), asyncio.Semaphore(limit)
        try:
            for item in items:
                waiting.append(loop.create_task(work_on(item, slots)))
                if len(waiting) >= STARTED * limit:
                    yield runner.run(_result(waiting.popleft()))
            while waiting:
                yield runner.run(_result(waiting.popleft()))
        finally:
            _settle(loop)
            runner.run(_end(waiting, close))


def _settle(loop: asyncio.AbstractEventLoop) -> None:
    """Take the turn in which an interrupted wait still stops the loop; else it would stop the next wait."""
    loop.call_soon(loop.stop)
    loop.run_forever()


async def _result(task: asyncio.Task[T]) -> T:
    return await task


async def _end(tasks: Iterable[asyncio.Task[Any]], close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await close()
