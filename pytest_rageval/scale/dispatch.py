"""Dispatch of a run's cases to workers elsewhere: portions go out, records come back and are written here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, Protocol

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import EvalCase
from pytest_rageval.run.ongoing_run import OngoingRun
from pytest_rageval.run.prefetch import Tally
from pytest_rageval.run.prepare import Preparation
from pytest_rageval.runs.records.line_form import OBSERVATIONS
from pytest_rageval.scale.assignment import WorkerShare, shares
from pytest_rageval.scale.portions import Block, Portion, Portions, portion_size
from pytest_rageval.text import counted

MOST_FUTILE = 24
"""How many workers in a row may be lost without a finished case: with more, the cases are not the cause."""
MOST_WAITING = 64
"""How many portions may wait in memory to be written in the order of the cases."""
MOST_FALSE_STARTS = 3
"""How often a worker may be lost before it has begun."""


class WorkerStart(NamedTuple):
    """A worker has started, or cannot take part for these reasons."""

    worker: int
    problems: Sequence[str] = ()


class BlockArrival(NamedTuple):
    """A block of the worker's portion has arrived."""

    worker: int
    block: Block


class PortionEnd(NamedTuple):
    """The worker has sent all blocks of its portion."""

    worker: int


class WorkerLoss(NamedTuple):
    """The worker or its machine is gone."""

    worker: int
    reason: str


Event = WorkerStart | BlockArrival | PortionEnd | WorkerLoss


GOODBYE_S = 10.0
"""Seconds in which workers close target, judge and cache after the last case."""


class Crew(Protocol):
    """The workers of a run, by number. The caller closes it."""

    def start(self, share: WorkerShare) -> None:
        """Start a worker with this share, replacing an earlier one of its number; an event tells when it is ready."""

    def give(self, worker: int, cases: Sequence[EvalCase]) -> None:
        """Hand a portion to an idle worker."""

    def events(self) -> Collection[Event]:
        """Return new events, waiting a moment for them; empty if there are none."""

    def notes(self) -> list[str]:
        """Close targets, judges and caches after the last case, and return their notes."""

    def close(self) -> None:
        """End all workers at once."""


class LostCrewError(Exception):
    """Workers keep dying without finishing a case."""


class Dispatch:
    """The dispatch of one run's cases to workers. `notes`: for people, at the end."""

    def __init__(
        self, crew: Crew, portions: Portions, shares: Sequence[WorkerShare], give_up: Callable[[EvalCase, str], None]
    ) -> None:
        """Store the crew and its work; `give_up` takes a case whose workers died each time, and the reason."""
        self._crew = crew
        self._portions = portions
        self._give_up = give_up
        self._shares = {share.number: share for share in shares}
        self._busy: dict[int, Portion] = {}
        self._idle: list[int] = []
        self._refused: dict[int, Sequence[str]] = {}
        self._false_starts: Counter[int] = Counter()
        self._futile = 0
        self._in_flight: dict[int, int] = {}
        self.notes: list[str] = []
        self.lost = 0

    @property
    def working(self) -> int:
        """Return the number of workers with a portion."""
        return len(self._busy)

    @property
    def in_flight(self) -> int:
        """Return the number of cases being asked or judged, as far as known."""
        return sum(self._in_flight.values())

    def blocks(self) -> Iterator[Block | None]:
        """Yield each block as it arrives, and None now and then while none does.

        Raise SettingsError if no worker can take part, LostCrewError if workers die without finishing a case.
        """
        for share in self._shares.values():
            self._crew.start(share)
        while self._portions or self._busy:
            while self._idle and self._portions:
                worker = self._idle.pop()
                portion = self._portions.take()
                self._busy[worker] = portion
                self._crew.give(worker, portion.cases)
            events = self._crew.events()
            for event in events:
                if isinstance(event, BlockArrival):
                    yield self._accept(event)
                else:
                    self._handle(event)
            if not events:
                yield None

    def _accept(self, event: BlockArrival) -> Block:
        block = event.block
        portion = self._busy[event.worker]
        portion.recorded += block.cases
        assert portion.recorded <= len(portion.cases), "a worker sent more cases than it was given"
        # A finished case shows that workers can live: only losses in a row count.
        if block.cases:
            self._futile = 0
        self._in_flight[event.worker] = block.in_flight
        share = self._shares[event.worker]
        if share.max_cost is not None:
            left = max(0.0, share.max_cost - block.cost_usd)
            # A worker that replaces this one begins with what is left, not with the whole share.
            self._shares[event.worker] = share._replace(max_cost=left)
        return block._replace(portion=portion.number, is_last=not portion.unrecorded)

    def _handle(self, event: WorkerStart | PortionEnd | WorkerLoss) -> None:
        if isinstance(event, WorkerLoss):
            self._replace(event.worker, event.reason)
        elif isinstance(event, PortionEnd) and self._busy[event.worker].unrecorded:
            self._replace(event.worker, "its journal could not be written, or read")
        elif isinstance(event, WorkerStart) and event.problems:
            self._refuse(event.worker, event.problems)
        else:
            self._false_starts.pop(event.worker, None)
            self._busy.pop(event.worker, None)
            self._in_flight.pop(event.worker, None)
            self._idle.append(event.worker)

    def _refuse(self, worker: int, problems: Sequence[str]) -> None:
        """Continue without a worker that cannot take part, if there are others."""
        self._refused[worker] = problems
        for problem in problems:
            note = f"a worker was left out: {problem}"
            # Machines of one kind refuse for one reason: it is told once.
            if note not in self.notes:
                self.notes.append(note)
        if len(self._refused) == len(self._shares):
            distinct = dict.fromkeys(chain.from_iterable(self._refused.values()))
            raise SettingsError(*(f"no worker can take part: {problem}" for problem in distinct))

    def _replace(self, worker: int, reason: str) -> None:
        """Start another worker, and put back the rest of this one's portion."""
        portion = self._busy.pop(worker, None)
        self._in_flight.pop(worker, None)
        # Lost before its first portion: the machine, not a case, is the cause.
        if portion is None:
            self._false_starts[worker] += 1
            if self._false_starts[worker] == MOST_FALSE_STARTS:
                self._refuse(worker, [f"it was lost before it began: {reason}"])
                return
        self.lost += 1
        self._futile += 1
        if self._futile > MOST_FUTILE:
            raise LostCrewError(f"{self._futile} workers were lost one after the other, the last one: {reason}")
        note = f"a worker was lost ({reason})"
        if portion is not None and portion.unrecorded:
            left = [case.key for case in portion.unrecorded]
            note += f"; {counted(len(left), 'case')} went to another: {listed(left, 2)}"
            deadly = self._portions.put_back(portion)
            if deadly is not None:
                self._give_up(deadly, f"each worker that asked it was lost, the last one: {reason}")
        self.notes.append(note)
        self._crew.start(self._shares[worker])


def waiting_cases(
    run: OngoingRun, cases: Sequence[EvalCase], repeat: int
) -> tuple[Sequence[EvalCase], Sequence[EvalCase]]:
    """Return the cases without a result: those that an interrupted run has answers for, and those to ask.

    The turns of a conversation that it began are among the first: here are its answers, their history.
    """
    unfinished = run.unfinished
    if unfinished is None:
        return (), cases
    answered: list[EvalCase] = []
    unasked: list[EvalCase] = []
    begun: set[str] = set()
    for case in cases:
        if case.turn is not None and unfinished.has_begun(case.key):
            begun.add(case.unit)
    for case in run.waiting(cases):
        if case.unit in begun or any(unfinished.observation(case.key, number) is not None for number in range(repeat)):
            answered.append(case)
        else:
            unasked.append(case)
    return answered, unasked


def crew_size(prepared: Preparation, cases: int, most: int) -> int:
    """Return the number of workers: at most `most`, and few enough that each can have a case and a call in flight."""
    settings = prepared.settings
    judge = prepared.judge
    limits = [most, cases, settings.concurrency]
    if judge is not None and not judge.heuristic:
        limits.append(settings.judge_concurrency)
    return max(1, min(limits))


class ClusterRun:
    """The cases of one run, evaluated by a crew.

    tally       the progress
    is_ordered  True if the records stand in the order of the cases
    """

    def __init__(self, run: OngoingRun, cases: Sequence[EvalCase], crew: Crew, workers: int) -> None:
        self._run = run
        self._writer = run.writer
        parts = shares(run.prepared.settings, workers)
        size = portion_size(len(cases), workers, max(share.concurrency for share in parts))
        self.dispatch = Dispatch(crew, Portions(cases, size), parts, self._writer.crashed)
        self.tally = Tally(self.dispatch)
        self.is_ordered = run.unfinished is None
        self._waiting: dict[int, list[Block]] = {}
        """Free blocks by portion, which are written after those of all portions before."""
        self._turn = 0

    def blocks(self) -> Iterator[Block | None]:
        """Yield each block after writing its records, in the order of arrival, and None now and then while none comes.

        Raise SettingsError if no worker can take part.
        """
        try:
            for block in self.dispatch.blocks():
                if block is not None:
                    self._keep(block)
                yield block
                if self._run.broken_off is not None:
                    return
        except LostCrewError as error:
            run_id = self._writer.folder.run_id
            self._run.broken_off = f"{error}; mend that, and finish the run with --rageval-resume {run_id}"
        finally:
            self._stop_waiting()

    def _keep(self, block: Block) -> None:
        self.tally.asked += block.asked
        self.tally.judged += block.judged
        self.tally.cost_usd += block.cost_usd
        self._run.count(block.calls)
        # What was paid for is written at once, out of order: a crash must not cost it.
        if not block.is_free or block.portion < self._turn:
            self.is_ordered = False
            self._write(block)
            return
        self._waiting.setdefault(block.portion, []).append(block)
        while waiting := self._waiting.pop(self._turn, None):
            for each in waiting:
                self._write(each)
            if waiting[-1].is_last:
                self._turn += 1
        if len(self._waiting) > MOST_WAITING:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        """Write what waits for a portion that a lost worker had, perhaps."""
        if self._waiting:
            self.is_ordered = False
        for block in chain.from_iterable(self._waiting.values()):
            self._write(block)
        self._waiting.clear()

    def _write(self, block: Block) -> None:
        # Answers first: a result without its answer cannot be re-scored.
        if block.observations:
            self._writer.folder.append(OBSERVATIONS, block.observations)
        if block.results:
            self._writer.take_noted(block.results, block.noted)
