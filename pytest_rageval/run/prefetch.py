"""Prefetched cases: asked and judged in the items' order, bounded, on a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pytest_rageval.errors import ends_the_run
from pytest_rageval.http.call_limit import JUDGE, SYSTEM, CallLimit, CallPlaces, limits_in
from pytest_rageval.http.served_rate import BackOff, allowance
from pytest_rageval.io.case_output import OUTPUT, Output
from pytest_rageval.io.collector import collect_seldom
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.model import BLOCKED, CaseResult, Observation, Problem, Trial
from pytest_rageval.run.ask import raised
from pytest_rageval.run.conversations import Conversations, Find
from pytest_rageval.run.engine import CURRENT_TEST, MOST_TRIES, are_at_once, observed_at_once
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.scoring import AskFailure, Evaluation, Observed
from pytest_rageval.targets.target import BaseTarget

T = TypeVar("T")

MOST_OF_A_BLOCK = 256
"""Cases of a block of cases that never wait."""
MOMENT_S = 0.2
"""Seconds after which such a block ends, whatever its size."""


Keep = Callable[[Sequence[Trial], Sequence[Observed]], list[Observed]]
"""Writes observations at once, on any thread; returns what counts: an error for those that cannot be written."""


class CountsCalls(Protocol):
    """What knows how many calls are in flight."""

    @property
    def in_flight(self) -> int: ...


@dataclass(slots=True)
class Tally:
    """Progress of asking and judging: cases asked and judged among those that ended, and calls in flight."""

    calls: CountsCalls | None = None
    asked: int = 0
    judged: int = 0
    cost_usd: float = 0.0
    allowances: Callable[[], list[str]] = list
    """Returns what the servers allow that refuse calls, a text for each."""

    @property
    def in_flight(self) -> int:
        return self.calls.in_flight if self.calls is not None else 0

    def add(self, observed: Observed) -> None:
        self.asked += 1
        if isinstance(observed, Observation) and observed.judgements:
            self.judged += 1
            self.cost_usd += sum(judgement.cost_usd or 0 for judgement in observed.judgements.values())


class LoopBlockedError(Exception):
    """Async code of a target or judge that blocks the loop: nothing else can proceed."""

    def __init__(self, patience: float) -> None:
        super().__init__(
            f"no answer, and nothing else moves since {patience:.6g} s (timeout × (retries + 1) + 10 s): an async "
            "target or judge blocks the event loop; await in it, or make it a plain function, which gets a thread of "
            "its own"
        )


class BackgroundLoop:
    """An event loop on a daemon thread: everything that waits for servers runs there."""

    def __init__(self, patience: float = math.inf) -> None:
        """Start the loop; after `patience` seconds without progress it is given up, its thread abandoned."""
        self._patience = patience
        self._unanswered_since: float | None = None
        self.on_wait: Callable[[], None] | None = None
        """Called now and then on the thread that waits."""
        self._collect_as_usual = collect_seldom()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rageval", daemon=True)
        self._thread.start()
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the coroutine's result, awaited on the calling thread; Ctrl-C cancels it."""
        future = self.submit(coroutine)
        try:
            return self.wait(future)
        finally:
            future.cancel()  # no effect on one that is done

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine in the background; return the future of its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def wait(self, future: Future[T]) -> T:
        """Return the future's result; raise LoopBlockedError if the loop makes no progress.

        Wakes now and then, so that every platform notices Ctrl-C.
        """
        while True:
            try:
                return future.result(timeout=0.5)
            except TimeoutError:
                # Since Python 3.11 a time-out of the coroutine's own is the same class as one of waiting.
                if future.done():
                    return future.result()
                if self.on_wait is not None:
                    self.on_wait()
                self._check_that_it_moves()

    def _check_that_it_moves(self) -> None:
        now = time.monotonic()
        if not self._thread.is_alive():
            raise LoopBlockedError(0)
        if self._unanswered_since is None:
            # A loop that turns takes this call within a moment, however long its coroutines wait.
            self._unanswered_since = now
            self._loop.call_soon_threadsafe(setattr, self, "_unanswered_since", None)
        elif now - self._unanswered_since > self._patience:
            raise LoopBlockedError(self._patience)

    @property
    def is_blocked(self) -> bool:
        since = self._unanswered_since
        return since is not None and time.monotonic() - since > self._patience

    def limits(self, role: str) -> list[CallLimit]:
        """Return the limits on calls to servers that are asked from this loop in a role."""
        return limits_in(self._loop, role)

    def start(self, coroutines: Iterable[Coroutine[Any, Any, None]]) -> None:
        """Start coroutines in the background, with one wake-up of the loop for all: it costs more than a task."""
        self._loop.call_soon_threadsafe(self._start, coroutines)

    def _start(self, coroutines: Iterable[Coroutine[Any, Any, None]]) -> None:
        for coroutine in coroutines:
            task = self._loop.create_task(coroutine)
            # The loop itself holds tasks only weakly.
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        """Cancel all started coroutines at once."""
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._tasks])

    def close(self) -> None:
        """Cancel the rest, allow at most a second of clean-up, end the loop; safe to call twice."""
        if self._loop.is_closed() or not self._thread.is_alive() or self.is_blocked:
            # A blocked loop hears of nothing. Its thread is a daemon and ends with the process.
            return
        if self.run(self._finish()):
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=1)
            if not self._thread.is_alive():
                self._loop.close()
        # Else the daemon thread keeps its loop. A coroutine that swallows its cancellation would be closed once more by
        # the garbage collector: without a loop `asyncio.sleep` fails at once, and it would spin for ever here.
        self._collect_as_usual()

    async def _finish(self) -> bool:
        """Cancel all tasks; return True if they end within a second."""
        # Those of targets and judges, too: asyncio warns of a task that outlives its loop.
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        unfinished: set[asyncio.Task[Any]] = set()
        if tasks:
            _, unfinished = await asyncio.wait(tasks, timeout=1)
        await self._loop.shutdown_asyncgens()
        return not unfinished


class Prefetcher:
    """Evaluates cases on a background loop while tests report one by one.

    At most `concurrency` calls are in flight; `CaseBlocks` keep up to `window` more started or waiting.
    """

    def __init__(self, plan: Plan, find: Find, keep: Keep, loop: BackgroundLoop) -> None:
        self.plan = plan
        self.loop = loop
        self._keep = keep
        self._conversations = Conversations(plan, find)
        self._places = CallPlaces(plan.settings.concurrency)
        self.tally = Tally(self._places, allowances=self.allowances)
        self.expected = 0
        """Trials that will be asked, as far as known: for the time left."""
        self.is_reading = False
        """True if the last observed case never waited: it cost nothing."""
        self.new_output: Callable[[], Output] = Output
        """Makes the output of a trial."""
        self._printed: dict[tuple[str, int], Output] = {}
        # A quarter more cases than calls, so that calls are in flight while some cases compute.
        self._cases = asyncio.Semaphore(plan.settings.concurrency + plan.settings.concurrency // 4)

    def allowances(self) -> list[str]:
        """Return what the system and the judge allow if they refuse calls, and how long the rest takes."""
        shown = []
        cases_left = max(0, self.expected - self.tally.asked)
        for role, name in ((SYSTEM, "the system"), (JUDGE, "the judge")):
            limits = self.loop.limits(role)
            a_second = sum(limit.served.recent or 0.0 for limit in limits)
            if a_second > 0 and cases_left:
                calls_a_case = 1.0
                if role == JUDGE:
                    calls_a_case = sum(limit.served.total for limit in limits) / max(1, self.tally.asked)
                shown.append(allowance(name, a_second, cases_left * calls_a_case))
        return shown

    @property
    def back_off(self) -> BackOff:
        """Return how far calls to the system were delayed in this process."""
        back_off = BackOff()
        for limit in self.loop.limits(SYSTEM):
            if limit.limits.is_adaptive:
                a_second = limit.served.overall or 0.0
                back_off += BackOff(limit.limits.concurrency, limit.lowest, limit.refusals, a_second)
        return back_off

    def printed(self, trials: Sequence[Trial]) -> Output:
        """Return what user code printed for these trials, and forget it."""
        printed: Output | None = None
        for trial in trials:
            output = self._printed.pop((trial.case.key, trial.number), None)
            if printed is None:
                printed = output
            elif output is not None:
                printed.extend(output)
        return self.new_output() if printed is None else printed

    def _output(self, trial: Trial) -> Output:
        output = self._printed[trial.case.key, trial.number] = self.new_output()
        return output

    def now(self, trials: Sequence[Trial], target: BaseTarget, judge: BaseJudge | None) -> list[Observed]:
        """Evaluate trials now, after everything queued before; without the loop if nothing waits."""
        self.is_reading = are_at_once(target, judge)
        if self.is_reading:
            return self.read([trials], target, judge)[0]
        futures: list[Future[Observed]] = [Future() for _ in trials]
        self.queue(trials, target, judge, futures)
        return [self.observed(future) for future in futures]

    def read(
        self, cases: Sequence[Sequence[Trial]], target: BaseTarget, judge: BaseJudge | None
    ) -> list[list[Observed]]:
        """Observe a block of cases that never wait, on this thread; return those of each case, by trial.

        As many as are read in a moment: their observations are written at once.
        """
        known: list[list[Observed | None]] = []
        fresh: list[Trial] = []
        observed: list[Observed] = []
        deadline = time.perf_counter() + MOMENT_S
        for trials in cases:
            recorded = [self._conversations.recorded(trial, target) for trial in trials]
            known.append(recorded)
            for trial, earlier in zip(trials, recorded, strict=True):
                if earlier is None:
                    fresh.append(trial)
                    observed.append(self._at_once(trial, target, judge))
            if time.perf_counter() > deadline:
                break
        kept = iter(self._keep(fresh, observed))

        def filled(recorded: Sequence[Observed | None]) -> list[Observed]:
            return [next(kept) if earlier is None else earlier for earlier in recorded]

        return [filled(recorded) for recorded in known]

    def _at_once(self, trial: Trial, target: BaseTarget, judge: BaseJudge | None) -> Observed:
        try:
            with self._output(trial):
                observed = observed_at_once(self._observing(trial, target, judge, time.perf_counter()))
        except Exception as error:  # noqa: BLE001 because it is this case's error and nobody else's, as on the loop
            observed = AskFailure(Problem("exception", raised(error, self.plan.mask)))
        self.tally.add(observed)
        return observed

    def observed(self, future: Future[Observed]) -> Observed:
        """Wait for a trial and return its observation, or a timeout if the loop is blocked."""
        try:
            return self.loop.wait(future)
        except LoopBlockedError as error:
            return AskFailure(Problem("timeout", str(error)))

    def queue(
        self, trials: Sequence[Trial], target: BaseTarget, judge: BaseJudge | None, futures: Sequence[Future[Observed]]
    ) -> None:
        """Start trials, or let them wait for a free slot; each future receives its trial's observation."""
        submitted = time.perf_counter()
        self.loop.start(
            self._one(trial, target, judge, future, submitted) for trial, future in zip(trials, futures, strict=True)
        )

    async def _one(
        self, trial: Trial, target: BaseTarget, judge: BaseJudge | None, future: Future[Observed], submitted: float
    ) -> None:
        recorded = self._conversations.recorded(trial, target)
        if recorded is not None:
            future.set_result(recorded)
            return
        try:
            # Not reset: this task, and with it the context, belongs to one trial.
            OUTPUT.set(self._output(trial))
            observed = await self._observing(trial, target, judge, submitted, self._cases, self._places)
        # A user's target or judge may raise anything; it is an error of this case alone.
        except BaseException as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                future.cancel()
                raise
            if ends_the_run(error) or isinstance(error, GeneratorExit):
                # Raised here, it would end this thread, and all waiting would never end.
                future.set_exception(error)
                return
            observed = AskFailure(Problem("exception", raised(error, self.plan.mask)))
        self.tally.add(observed)
        try:
            [observed] = self._keep([trial], [observed])
        except Exception as error:  # noqa: BLE001 because nobody would see it on this thread: a full disk, say
            future.set_exception(error)
            return
        future.set_result(observed)

    async def _observing(
        self,
        trial: Trial,
        target: BaseTarget,
        judge: BaseJudge | None,
        submitted: float,
        cases: asyncio.Semaphore | None = None,
        places: CallPlaces | None = None,
    ) -> Observed:
        """Observe a trial after what was said before it; `cases` and `places` are limits, None for what never waits."""
        # Without a place among the cases: the turns that this one waits for need theirs.
        opening = await self._conversations.opening(trial, target, places)
        async with nullcontext() if cases is None else cases:
            for _ in range(MOST_TRIES):
                observed = await self._conversations.observe(
                    trial, opening, target, judge, submitted=submitted, places=places
                )
                if not _has_missed_variable(observed):
                    break
            return await self._conversations.with_rewrite(trial, observed, target, judge, places)


def _has_missed_variable(observed: Observed) -> bool:
    """Return True if pytest took its variable away while code looked through the environment.

    That code lists the variable and does not find it, as a new client of httpx does, which looks for proxies.
    """
    problems = observed.judge_problems if isinstance(observed, Observation) else (observed.problem,)
    return any(CURRENT_TEST in problem.message for problem in problems)


FIRST_CALLS = 16
"""Calls of a run that end it if all fail alike."""
Call = tuple[str, str]
"""A call's failure as kind and message; both empty if it succeeded, or may succeed next time."""


def calls_of(evaluations: Sequence[Evaluation]) -> list[Call]:
    """Return how the calls of some cases failed."""
    calls: list[Call] = []
    for evaluation in evaluations:
        for trial in evaluation.trials:
            is_blocked = trial.error is not None and trial.error.kind == BLOCKED
            if not is_blocked:  # one that was not asked says nothing of the server
                calls.append(_call(trial))
    return calls


def _call(result: CaseResult) -> Call:
    error = result.error
    if error is None and result.observation is not None:
        error = next(iter(result.observation.judge_problems), None)
    if error is None or not error.is_lasting:
        return "", ""
    return f"{error.kind} {error.status or ''}", error.message
