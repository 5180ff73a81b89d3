"""How fast is this machine right now? A loop in plain Python, so that figures of another day can be compared."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from harness import Figure, Row, Scale, measure_inside

ADDITIONS = 10_000_000
ROUNDS = 5


def rows(scale: Scale) -> Iterator[Row]:
    """CPU of ten million additions."""
    seconds = measure_inside(Path(__file__).stem, rounds=scale.rounds(ROUNDS))["seconds"]
    yield Row("this machine, now: ten million additions in a loop", "s", Figure.of(seconds))


def inside(rounds: int) -> dict[str, list[float]]:
    """Seconds by rounds; runs in a process of its own."""
    return {"seconds": [_seconds() for _ in range(rounds)]}


def _seconds() -> float:
    started, total = time.process_time(), 0
    for number in range(ADDITIONS):
        total += number
    return time.process_time() - started
