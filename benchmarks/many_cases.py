"""What does `rageval run` cost a case, beside pytest, and how does its memory grow? Cases whose answers are in a file.

One metric and no judge. `python benchmarks/many_cases.py SIZE…` measures other sizes, once each.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import rmtree

from harness import ONLY_ASKED_FOR, PLUGIN, PYTEST, Row, Scale, Usage, cpu, empty_folder, in_turns, measure, peak
from items import LEAST
from projects import recorded_project

SIZES = (200, 2_000, 20_000)
LARGEST_OF_PYTEST = 2_000
"""Cases that pytest runs too: it takes minutes for more, and says the same of a case."""
RUN = (sys.executable, "-m", "pytest_rageval.cli.main", "run")


def rows(scale: Scale) -> Iterator[Row]:
    """CPU and peak memory of whole runs, by size."""
    for size in SIZES:
        yield from _rows(scale.cases(size), scale.rounds(3) if size <= LARGEST_OF_PYTEST else 1)


def _rows(cases: int, rounds: int) -> Iterator[Row]:
    sides = {"run": list(RUN)} | ({"pytest": [*PYTEST, *PLUGIN, "-q"]} if cases <= LARGEST_OF_PYTEST else {})
    with empty_folder() as folder:
        recorded_project(folder, cases, LEAST)
        used = in_turns(rounds, sides, lambda _, command: _run(command, folder))
    for what, unit, figure in (("CPU", "s", cpu), ("memory", "MiB", peak)):
        peer = figure(used["pytest"]) if "pytest" in used else None
        yield Row(f"{cases:,} cases by rageval run: {what}", unit, figure(used["run"]), "pytest" if peer else "", peer)


def _run(command: Sequence[str], folder: Path) -> Usage:
    used = measure(list(command), folder, environment=ONLY_ASKED_FOR)
    rmtree(folder / "reports", ignore_errors=True)
    return used


def main(sizes: list[int]) -> None:
    for cases in sizes:
        for row in _rows(cases, 1):
            peer = f", pytest {row.peer.least:.1f}" if row.peer is not None else ""
            print(f"{row.what}: {row.ours.least:.1f} {row.unit}{peer}", flush=True)


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or list(SIZES))
