"""Portions of cases that wait for a worker, those that lost theirs first."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_rageval.cases.canonical import case_to_mapping
from pytest_rageval.model import EvalCase
from pytest_rageval.runs.reader import recorded_case

MOST_CASES, MOST_BYTES = 1000, 4 << 20
"""Of one portion: it waits in the memory of the machine that gets it."""
ROUNDS = 4
"""So many portions for each worker, where there are few cases: who is done first takes what is left."""
LOSSES = 2
"""Times that a portion may lose its worker before it is divided."""


@dataclass(slots=True)
class Portion:
    """Cases that go to one worker together.

    lines     each case as it is sent
    recorded  of how many the records came; they come in the cases' order
    """

    cases: Sequence[EvalCase]
    lines: Sequence[str]
    losses: int = 0
    recorded: int = 0

    @property
    def text(self) -> str:
        """The cases as lines of JSON, to be read by `read_cases`."""
        return "\n".join(self.lines)

    @property
    def unrecorded(self) -> Sequence[EvalCase]:
        return self.cases[self.recorded :]


class Portions:
    """All cases that wait, made into portions one after the other."""

    def __init__(self, cases: Iterable[EvalCase], size: int) -> None:
        self._lost: deque[Portion] = deque()
        self._fresh = _divided(cases, size)
        self._next = next(self._fresh, None)

    def __bool__(self) -> bool:
        return bool(self._lost) or self._next is not None

    def take(self) -> Portion:
        """The next portion; there must be one."""
        if self._lost:
            return self._lost.popleft()
        portion = self._next
        assert portion is not None
        self._next = next(self._fresh, None)
        return portion

    def put_back(self, portion: Portion) -> EvalCase | None:
        """Let what a portion has left wait again, after its worker was lost.

        After some losses it is divided, and so on: in the end a case is alone that kills whoever asks it. That one
        comes back.
        """
        losses, cases, lines = portion.losses + 1, portion.unrecorded, portion.lines[portion.recorded :]
        if losses < LOSSES:
            self._lost.append(Portion(cases, lines, losses))
            return None
        if len(cases) == 1:
            return cases[0]
        half = len(cases) // 2
        self._lost += (Portion(cases[part], lines[part], losses - 1) for part in (slice(half), slice(half, None)))
        return None


def portion_size(cases: int, workers: int, in_flight: int) -> int:
    """Cases a portion: several portions a worker, each with more cases than the worker has in flight at once."""
    fair = math.ceil(cases / workers)
    return max(1, min(MOST_CASES, fair, max(math.ceil(fair / ROUNDS), 4 * in_flight)))


def _divided(cases: Iterable[EvalCase], size: int) -> Iterator[Portion]:
    part, lines = list[EvalCase](), list[str]()
    length = 0
    for case in cases:
        line = _line(case)
        if part and (len(part) == size or length + len(line) > MOST_BYTES):
            yield Portion(part, lines)
            part, lines, length = [], [], 0
        part.append(case)
        lines.append(line)
        length += len(line)
    if part:
        yield Portion(part, lines)


# ── on the way ────────────────────────────────────────────────────────────────────────────────────────────────


def read_cases(text: str) -> list[EvalCase]:
    """The cases of a portion's text."""
    return [recorded_case({"case": json.loads(line)}) for line in text.split("\n")]


def _line(case: EvalCase) -> str:
    # Only ASCII: a lone surrogate of a case file has no other way over.
    return json.dumps(case_to_mapping(case) | {"source": list(case.source)}, separators=(",", ":"))
