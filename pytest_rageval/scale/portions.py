"""Portions of cases that wait for a worker, those that lost theirs first."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_rageval.cases import case_to_mapping
from pytest_rageval.model import EvalCase
from pytest_rageval.runs.disk.reader import recorded_case

MOST_CASES, MOST_BYTES = 1000, 4 << 20
"""Of one portion: it waits in the memory of the machine that gets it."""
ROUNDS = 4
"""So many portions for each worker, where there are few cases: who is done first takes what is left."""
LOSSES = 2
"""Times that a portion may lose its worker before it is divided."""


@dataclass(slots=True)
class Portion:
    """Cases that go to one worker together. `recorded`: of how many the records came; they come in the cases' order."""

    cases: Sequence[EvalCase]
    losses: int = 0
    recorded: int = 0

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
        losses, cases = portion.losses + 1, portion.unrecorded
        if losses < LOSSES:
            self._lost.append(Portion(cases, losses))
            return None
        if len(cases) == 1:
            return cases[0]
        half = len(cases) // 2
        self._lost += (Portion(part, losses - 1) for part in (cases[:half], cases[half:]))
        return None


def portion_size(cases: int, workers: int, in_flight: int) -> int:
    """Cases a portion: several portions a worker, each with more cases than the worker has in flight at once."""
    fair = math.ceil(cases / workers)
    return max(1, min(MOST_CASES, fair, max(math.ceil(fair / ROUNDS), 4 * in_flight)))


def _divided(cases: Iterable[EvalCase], size: int) -> Iterator[Portion]:
    part: list[EvalCase] = []
    length = 0
    for case in cases:
        line_length = len(_line(case))
        if part and (len(part) == size or length + line_length > MOST_BYTES):
            yield Portion(part)
            part, length = [], 0
        part.append(case)
        length += line_length
    if part:
        yield Portion(part)


# ── on the way ────────────────────────────────────────────────────────────────────────────────────────────────


def written_cases(cases: Iterable[EvalCase]) -> str:
    """Cases as lines of JSON, to be read by `read_cases`."""
    return "\n".join(map(_line, cases))


def read_cases(text: str) -> list[EvalCase]:
    return [recorded_case({"case": json.loads(line)}) for line in text.split("\n")]


def _line(case: EvalCase) -> str:
    # Only ASCII: a lone surrogate of a case file has no other way over.
    return json.dumps(case_to_mapping(case) | {"source": list(case.source)}, separators=(",", ":"))
