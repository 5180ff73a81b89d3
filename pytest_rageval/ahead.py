"""Many cases, asked and judged before they are needed: a loop in a thread of its own, bounded, in the items' order."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from pytest_rageval.engine import Observed, Unobserved, evaluate
from pytest_rageval.judges.base import Judge
from pytest_rageval.model import EvalCase, Problem
from pytest_rageval.plan import Plan
from pytest_rageval.targets.base import Target

T = TypeVar("T")


class Ahead:
    """Evaluates cases on an event loop in a daemon thread while tests report one by one.

    At most `concurrency` cases are in flight; a `Stretch` keeps up to `window` more started or waiting.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._slots = asyncio.Semaphore(plan.settings.concurrency)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rageval", daemon=True)
        self._thread.start()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result, waited for on the calling thread."""
        return wait(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def one(self, case: EvalCase, target: Target, judge: Judge | None) -> Observed:
        """Evaluate one case now, in turn with everything that was queued before."""
        future: Future[Observed] = Future()
        self.queue([case], target, judge, [future])
        return wait(future)

    def queue(
        self, cases: Sequence[EvalCase], target: Target, judge: Judge | None, futures: Sequence[Future[Observed]]
    ) -> None:
        """Start cases, or let them wait for a free slot; each one's future gets what came of it."""
        submitted = time.perf_counter()

        # One wake-up of the loop for the whole batch: a wake-up costs more than a task.
        def start() -> None:
            for case, future in zip(cases, futures, strict=True):
                self._keep(self._loop.create_task(self._one(case, target, judge, future, submitted)))

        self._loop.call_soon_threadsafe(start)

    async def _one(
        self, case: EvalCase, target: Target, judge: Judge | None, future: Future[Observed], submitted: float
    ) -> None:
        async with self._slots:
            try:
                observed = await evaluate(case, target, judge, self.plan, submitted=submitted)
            # A target or judge of the user's own may raise anything; it is this case's error and nobody else's.
            except Exception as error:  # noqa: BLE001 because of the line above
                observed = Unobserved(Problem("exception", f"{type(error).__name__}: {error}"))
        future.set_result(observed)

    def _keep(self, task: asyncio.Task[None]) -> None:
        # The loop itself holds tasks only weakly.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        """Stop at once all that is queued or in flight."""
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._tasks])

    def close(self) -> None:
        """Cancel what is left, let it clean up for at most a second, end the loop; safe to call twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self.run(self._finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=1)
        if not self._thread.is_alive():
            self._loop.close()

    async def _finish(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1)
        await self._loop.shutdown_asyncgens()


class Stretch:
    """Consecutive cases for one target and one judge, evaluated ahead of the one that was asked for last."""

    def __init__(self, ahead: Ahead, cases: Sequence[EvalCase], target: Target, judge: Judge | None) -> None:
        self._ahead, self._cases, self._target, self._judge = ahead, cases, target, judge
        self._window = ahead.plan.settings.window
        self._started = 0
        self._futures: dict[int, Future[Observed]] = {}

    def observed(self, position: int) -> Observed:
        """What came of the case at this position; asked again if it was handed out before (a rerun)."""
        self._top_up(position)
        future = self._futures.pop(position, None)
        if future is None:
            return self._ahead.one(self._cases[position], self._target, self._judge)
        return wait(future)

    def _top_up(self, position: int) -> None:
        """Keep `window` cases started beyond this position, in batches of an eighth of it."""
        first = max(self._started, position)
        last = min(position + 1 + self._window, len(self._cases))
        is_due = last - first >= max(1, self._window // 8) or last == len(self._cases) or first == position
        if first >= last or not is_due:
            return
        futures: list[Future[Observed]] = [Future() for _ in range(first, last)]
        self._futures.update(zip(range(first, last), futures, strict=True))
        self._started = last
        self._ahead.queue(self._cases[first:last], self._target, self._judge, futures)


def wait(future: Future[T]) -> T:
    """The future's result. Wakes now and then, so that Ctrl-C is seen on every platform."""
    while True:
        try:
            return future.result(timeout=0.5)
        except TimeoutError:
            if future.done():
                return future.result()
