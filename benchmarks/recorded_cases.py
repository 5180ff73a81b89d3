"""What does a further recorded case cost `rageval run`? The slope between two sizes: no start-up, no judge, no page.

Of cases whose answers are all the same, and of cases whose answers all differ; with one metric, and with the defaults.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import rmtree

from harness import ONLY_ASKED_FOR, Figure, Row, Scale, Usage, cpu, empty_folder, in_turns, measure
from items import DEFAULTS, LEAST
from projects import recorded_project
from varied_project import varied_project

FEW, MANY = 500, 10_000
QUICK_MANY = 2_500
"""A tenth would be lost in noise."""
ROUNDS = 3
RUN = (sys.executable, "-m", "pytest_rageval.cli.main", "run")
PROJECTS: dict[str, Callable[[Path, int, str], None]] = {"equal": recorded_project, "varied": varied_project}
SETTINGS = {"one metric": (LEAST, 150.0), "defaults": (DEFAULTS, 290.0)}
"""Settings with the most microseconds that a case should take."""


def rows(scale: Scale) -> Iterator[Row]:
    """CPU of a further case, by project and settings; the sizes and projects in turn."""
    many = QUICK_MANY if scale.is_quick else MANY
    with empty_folder() as folder:
        sides: dict[str, Path] = {}
        for answers, write in PROJECTS.items():
            for name, (settings, _) in SETTINGS.items():
                for size in (FEW, many):
                    project = folder / f"{answers}, {name}, {size}"
                    write(project, size, settings)
                    sides[project.name] = project
        used = in_turns(scale.rounds(ROUNDS), sides, run_here)
    for answers in PROJECTS:
        for name, (_, goal) in SETTINGS.items():
            key = f"{answers}, {name}"
            slope = _slope(used[f"{key}, {many}"], used[f"{key}, {FEW}"], many - FEW)
            what = f"a recorded case, {answers} answers, {name}: CPU from {FEW} to {many:,}"
            yield Row(what, "µs", slope, goal=goal)


def _slope(larger: list[Usage], smaller: list[Usage], cases: int) -> Figure:
    return cpu(larger, unit=1e6).less(cpu(smaller, unit=1e6), each=cases)


def run_here(_: str, project: Path, *arguments: str) -> Usage:
    """Run the cases of a project; some of them fail their gates."""
    used = measure([*RUN, *arguments], project, environment=ONLY_ASKED_FOR, expected=(0, 1))
    rmtree(project / "reports", ignore_errors=True)
    return used
