"""Portions of cases that wait for a worker, those that lost theirs first, and the records that come back."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.cases.canonical import case_to_mapping
from pytest_rageval.model import EvalCase
from pytest_rageval.prefetch import Call
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


MOST_OF_A_BLOCK = 1 << 20
"""Of one block, unless a single case has more: blocks of all workers wait in memory together."""


class Failure(NamedTuple):
    """A case that did not pass: its key, outcome, and the first line of the reason."""

    key: str
    outcome: str
    reason: str


class Block(NamedTuple):
    """Lines of results.jsonl and observations.jsonl, each with its end, and how the worker stands.

    cases     how many cases the results are of, all of their trials
    calls     how the worker's first calls ended that no block before told
    asked, judged, cost_usd   since the last block
    """

    cases: int
    results: str
    observations: str
    failures: tuple[Failure, ...] = ()
    calls: tuple[Call, ...] = ()
    asked: int = 0
    judged: int = 0
    in_flight: int = 0
    cost_usd: float = 0.0


class Tail:
    """What was appended to a file since it was looked at last, in whole lines."""

    def __init__(self, path: Path, lines_together: int = 1) -> None:
        """`lines_together`: so many lines belong to one case, and are sent in one block."""
        self._path, self._together = path, lines_together
        self._offset = 0

    def take(self) -> tuple[str, int]:
        """The next lines, at most about MOST_OF_A_BLOCK of them, and how many cases they are of."""
        lines: list[bytes] = []
        size = kept = kept_size = 0
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                while kept_size < MOST_OF_A_BLOCK and (line := file.readline()).endswith(b"\n"):
                    lines.append(line)
                    size += len(line)
                    if len(lines) % self._together == 0:
                        kept, kept_size = len(lines), size
        except FileNotFoundError:
            return "", 0
        self._offset += kept_size
        return b"".join(lines[:kept]).decode("utf-8"), kept // self._together
