"""A million recorded cases with one metric, in one process: CPU and memory of a whole run. Needs 10 GB on the disk."""

from __future__ import annotations

from collections.abc import Iterator

from harness import Row, Scale, cpu, empty_folder, peak
from items import LEAST
from projects import recorded_project
from recorded_cases import run_here

CASES = 1_000_000
QUICK_CASES = 20_000
MOST_S, MOST_MIB = 150.0, 1.2 * 1024


def rows(scale: Scale) -> Iterator[Row]:
    """One run; a quick look runs a fiftieth of the cases, without goals."""
    cases = QUICK_CASES if scale.is_quick else CASES
    with empty_folder() as folder:
        recorded_project(folder, cases, LEAST)
        used = [run_here("", folder)]
    seconds = None if scale.is_quick else MOST_S
    mib = None if scale.is_quick else MOST_MIB
    yield Row(f"{cases:,} recorded cases, one metric: CPU", "s", cpu(used), goal=seconds)
    yield Row(f"{cases:,} recorded cases, one metric: memory", "MiB", peak(used), goal=mib)
