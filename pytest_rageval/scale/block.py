"""Records on their way from a worker: what its journal holds beyond what was sent."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pytest_rageval.prefetch import Call

MOST_BYTES = 1 << 20
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
        """The next lines, at most about MOST_BYTES of them, and how many cases they are of."""
        lines: list[bytes] = []
        size = kept = kept_size = 0
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                while kept_size < MOST_BYTES and (line := file.readline()).endswith(b"\n"):
                    lines.append(line)
                    size += len(line)
                    if len(lines) % self._together == 0:
                        kept, kept_size = len(lines), size
        except FileNotFoundError:
            return "", 0
        self._offset += kept_size
        return b"".join(lines[:kept]).decode("utf-8"), kept // self._together
