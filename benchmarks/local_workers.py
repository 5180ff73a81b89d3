"""What do two workers gain? `rageval run --workers 2` beside one process: recorded cases, one metric, no page.

A figure of wall time, so of a machine with two free cores. CPU tells what workers cost on top.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness import Figure, Row, Scale, cpu, empty_folder, in_turns
from items import DEFAULTS, LEAST
from projects import recorded_project
from recorded_cases import run_here

CASES = 60_000
ROUNDS = 2
SIDES = {"two workers": ("--workers", "2"), "one process": ()}
MOST_OF_ONE = 1 / 1.5


def rows(scale: Scale) -> Iterator[Row]:
    """Wall time and CPU of whole runs, in turn."""
    cases = scale.cases(CASES)
    for name, settings in (("one metric", LEAST), ("defaults", DEFAULTS)):
        with empty_folder() as folder:
            recorded_project(folder, cases, settings)
            used = in_turns(scale.rounds(ROUNDS), SIDES, lambda side, how: run_here(side, folder, *how))
        walls = {side: Figure.of(one.wall_s for one in usages) for side, usages in used.items()}
        what = f"{cases:,} recorded cases, {name}, --workers 2"
        goal = MOST_OF_ONE if name == "one metric" else None
        yield Row(f"{what}: wall", "s", walls["two workers"], "one process", walls["one process"], ratio_goal=goal)
        yield Row(f"{what}: CPU", "s", cpu(used["two workers"]), "one process", cpu(used["one process"]))
