"""Portions of cases for workers, those of lost workers first, and the records that come back."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_rageval.model import EvalCase
from pytest_rageval.run.prefetch import Call
from pytest_rageval.runs.results_file import NotedRecord

MOST_CASES = 1000
"""The limit of one portion, which waits in the memory of the worker's machine."""
ROUNDS = 4
"""How many portions each worker gets if there are few cases: fast workers take more of them."""
LOSSES = 2
"""How many workers a portion may lose before it is divided."""
MOST_OF_A_BLOCK = 1 << 20
"""The size limit of a block in bytes, unless a single case exceeds it: blocks of all workers wait in memory."""


@dataclass(slots=True)
class Portion:
    """Cases that go to one worker together.

    number    its place among the portions, also for what is left of it
    recorded  how many cases have records; these come in the cases' order
    """

    cases: Sequence[EvalCase]
    number: int = 0
    losses: int = 0
    recorded: int = 0

    @property
    def unrecorded(self) -> Sequence[EvalCase]:
        return self.cases[self.recorded :]


class Portions:
    """All waiting cases, divided into portions."""

    def __init__(self, cases: Sequence[EvalCase], size: int) -> None:
        parts: list[Sequence[EvalCase]] = []
        start = 0
        while start < len(cases):
            end = _end_of_unit(cases, min(start + size, len(cases)))
            parts.append(cases[start:end])
            start = end
        self._waiting = deque(Portion(part, number) for number, part in enumerate(parts))

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def take(self) -> Portion:
        """Return the next portion; there must be one."""
        return self._waiting.popleft()

    def put_back(self, portion: Portion) -> EvalCase | None:
        """Put back the rest of a portion whose worker was lost, to be the next.

        After some losses divide it, so that in the end a case that kills each worker is alone. Return that case.
        """
        losses = portion.losses + 1
        cases = portion.unrecorded
        # Once is chance, as of a machine that was taken away.
        if losses < LOSSES:
            parts = [cases]
        elif len(cases) == 1:
            return cases[0]
        else:
            # Halves: a deadly case of a thousand is alone after ten more losses.
            middle = _end_of_unit(cases, len(cases) // 2)
            if middle == len(cases):  # one conversation is left, of which a single turn may be the cause
                middle = len(cases) // 2
            parts = [cases[:middle], cases[middle:]]
            losses = portion.losses  # the next loss divides the parts again
        self._waiting.extendleft(Portion(part, portion.number, losses) for part in reversed(parts))
        return None


def _end_of_unit(cases: Sequence[EvalCase], at: int) -> int:
    """Return the first position from `at` on that divides no conversation."""
    # A turn needs the answers before it, which only its own worker has.
    while 0 < at < len(cases) and cases[at].unit == cases[at - 1].unit:
        at += 1
    return at


def portion_size(cases: int, workers: int, in_flight: int) -> int:
    """Return the cases per portion: several portions for each worker, each with more cases than it has in flight."""
    fair = math.ceil(cases / workers)
    # At the end of a portion fewer calls are in flight: four times as many cases keep that short.
    wanted = max(math.ceil(fair / ROUNDS), 4 * in_flight)
    return max(1, min(MOST_CASES, fair, wanted))


class Failure(NamedTuple):
    """A case that did not pass: key, outcome, and the first line of the reason."""

    key: str
    outcome: str
    reason: str


class Block(NamedTuple):
    """Lines of results.jsonl and observations.jsonl, and the progress of the worker.

    cases     how many cases the results cover, with all of their trials
    noted     what the run notes of each line of the results, so that the command need not read it
    calls     the ends of the worker's first calls, as far as no earlier block holds them
    asked, judged, cost_usd   since the last block
    is_free   nothing was asked for it: it may wait to be written
    portion, is_last   number of its portion, and whether that ends with it; known on arrival
    """

    cases: int
    results: bytes
    observations: bytes
    noted: tuple[NotedRecord, ...] = ()
    failures: tuple[Failure, ...] = ()
    calls: tuple[Call, ...] = ()
    asked: int = 0
    judged: int = 0
    in_flight: int = 0
    cost_usd: float = 0.0
    is_free: bool = False
    portion: int = 0
    is_last: bool = False
