"""What does a case cost whose answer is recorded and whose judgement is in the cache? Nothing is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from harness import ONLY_ASKED_FOR, PLUGIN, PYTEST, Row, Scale, Usage, cpu, empty_folder, in_turns, measure, peak
from loopback import Loopback, loopback
from projects import asking_project

CASES = 1_000
ROUNDS = 3


def rows(scale: Scale) -> Iterator[Row]:
    """One run fills the cache and records the answers; then these are scored again."""
    cases = scale.cases(CASES)
    with loopback() as server, empty_folder() as folder:
        sides = {name: _recorded(folder / name, count, server) for name, count in (("many", cases), ("one", 1))}
        found = in_turns(
            scale.rounds(ROUNDS), sides, lambda _, where: _run(where, "replay", "--rageval-target=run:first")
        )
    each = cpu(found["many"], unit=1e3).less(cpu(found["one"], unit=1e3), each=max(1, cases - 1))
    yield Row(f"{cases:,} recorded cases, judgements from the cache: CPU a case", "ms", each, goal=1.5)
    yield Row(f"{cases:,} recorded cases, judgements from the cache: memory", "MiB", peak(found["many"]))


def _recorded(folder: Path, cases: int, server: Loopback) -> Path:
    asking_project(folder, cases, server.url, 16)
    _run(folder, "use", "--rageval-run-id=first")
    return folder


def _run(folder: Path, cache: Literal["use", "replay"], option: str) -> Usage:
    command = [*PYTEST, *PLUGIN, "-q", f"--rageval-judge-cache={cache}", option]
    return measure(command, folder, environment=ONLY_ASKED_FOR)
