"""Portions of cases for workers, those of lost workers first, and the records that come back."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_rageval.cases.canonical import case_from_mapping, case_to_mapping
from pytest_rageval.model import EvalCase
from pytest_rageval.prefetch import Call

MOST_CASES, MOST_BYTES = 1000, 4 << 20
"""The limits of one portion, which waits in the memory of the worker's machine."""
ROUNDS = 4
"""How many portions each worker gets if there are few cases: fast workers take more of them."""
LOSSES = 2
"""How many workers a portion may lose before it is divided."""


@dataclass(slots=True)
class Portion:
    """Cases that go to one worker together.

    lines     the text of each case
    number    its place among the portions, also for what is left of it
    recorded  how many cases have records; these come in the cases' order
    """

    cases: Sequence[EvalCase]
    lines: Sequence[str]
    number: int = 0
    losses: int = 0
    recorded: int = 0

    @property
    def text(self) -> str:
        """Return the cases as lines of JSON for `read_cases`."""
        return "\n".join(self.lines)

    @property
    def unrecorded(self) -> Sequence[EvalCase]:
        return self.cases[self.recorded :]


class Portions:
    """All waiting cases, divided into portions on demand."""

    def __init__(self, cases: Iterable[EvalCase], size: int) -> None:
        self._lost: deque[Portion] = deque()
        self._fresh = _divided(cases, size)
        self._next = next(self._fresh, None)

    def __bool__(self) -> bool:
        return bool(self._lost) or self._next is not None

    def take(self) -> Portion:
        """Return the next portion; there must be one."""
        if self._lost:
            return self._lost.popleft()
        portion = self._next
        assert portion is not None
        self._next = next(self._fresh, None)
        return portion

    def put_back(self, portion: Portion) -> EvalCase | None:
        """Put back the rest of a portion whose worker was lost.

        After some losses divide it, so that in the end a case that kills each worker is alone. Return that case.
        """
        losses, cases, lines = portion.losses + 1, portion.unrecorded, portion.lines[portion.recorded :]
        if losses < LOSSES:
            self._lost.append(Portion(cases, lines, portion.number, losses))
            return None
        if len(cases) == 1:
            return cases[0]
        half = len(cases) // 2
        parts = (slice(half), slice(half, None))
        self._lost += (Portion(cases[part], lines[part], portion.number, losses - 1) for part in parts)
        return None


def portion_size(cases: int, workers: int, in_flight: int) -> int:
    """Return the cases per portion: several portions for each worker, each with more cases than it has in flight."""
    fair = math.ceil(cases / workers)
    return max(1, min(MOST_CASES, fair, max(math.ceil(fair / ROUNDS), 4 * in_flight)))


def _divided(cases: Iterable[EvalCase], size: int) -> Iterator[Portion]:
    part, lines = list[EvalCase](), list[str]()
    length = number = 0
    for case in cases:
        # ASCII only, since UTF-8 cannot encode a lone surrogate of a case file.
        line = json.dumps(case_to_mapping(case), separators=(",", ":"))
        if part and (len(part) == size or length + len(line) > MOST_BYTES):
            yield Portion(part, lines, number)
            part, lines, length, number = [], [], 0, number + 1
        part.append(case)
        lines.append(line)
        length += len(line)
    if part:
        yield Portion(part, lines, number)


# ── serialisation ─────────────────────────────────────────────────────────────────────────────────────────────


def read_cases(text: str) -> list[EvalCase]:
    """Parse the text of a portion."""
    return [case_from_mapping(json.loads(line)) for line in text.split("\n")]


MOST_OF_A_BLOCK = 1 << 20
"""The size limit of a block, unless a single case exceeds it: blocks of all workers wait in memory."""


class Failure(NamedTuple):
    """A case that did not pass: key, outcome, and the first line of the reason."""

    key: str
    outcome: str
    reason: str


class Block(NamedTuple):
    """Lines of results.jsonl and observations.jsonl, and the progress of the worker.

    cases     how many cases the results cover, with all of their trials
    calls     the ends of the worker's first calls, as far as no earlier block holds them
    asked, judged, cost_usd   since the last block
    is_free   nothing was asked for it: it may wait to be written
    portion, is_last   number of its portion, and whether that ends with it; known on arrival
    """

    cases: int
    results: bytes
    observations: bytes
    failures: tuple[Failure, ...] = ()
    calls: tuple[Call, ...] = ()
    asked: int = 0
    judged: int = 0
    in_flight: int = 0
    cost_usd: float = 0.0
    is_free: bool = False
    portion: int = 0
    is_last: bool = False
