"""What does pytest cost a case? Items collected and run whose answers are in a file, beside tests that do nothing.

Collecting is `--co -qq`. An item is what a further one adds to a whole run, collecting included. Two runs of ours
without judge and page: one metric, which is as near to nothing as a case gets (its records are written all the same),
and the default metrics.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

from harness import (
    ONLY_ASKED_FOR,
    PLUGIN,
    PYTEST,
    Figure,
    Row,
    Scale,
    Usage,
    cpu,
    empty_folder,
    in_turns,
    measure,
    peak,
)
from projects import no_op_project, recorded_project

ITEMS = {1_000: 5, 10_000: 1}
"""How many → rounds; of the larger one only what memory and wall time say."""
MANY = 100_000
"""With the full run, once."""
DEFAULTS = 'judge = "none"\nreport = false'
LEAST = f'{DEFAULTS}\n[tool.rageval.metrics]\nenabled = ["mrr"]'
COLLECT = ("--co", "-qq")
Side = tuple[list[str], Path]


def rows(scale: Scale) -> Iterator[Row]:
    """Small numbers of items in several rounds, large ones once."""
    sizes = dict(ITEMS)
    if scale.is_quick:  # a hundred would be lost in noise
        sizes = {min(ITEMS): ITEMS[min(ITEMS)]}
    elif scale.is_full:
        sizes[MANY] = 1
    for items, rounds in sizes.items():
        with empty_folder() as folder:
            sides = _sides(folder / "many", items)
            if rounds == 1:
                del sides["run"]  # minutes, for what the smaller number says as well
            many = in_turns(scale.rounds(rounds), sides, _run)
            one = in_turns(scale.rounds(rounds), _sides(folder / "one", 1), _run)
        yield from _rows(items, many, one)


def _rows(items: int, many: dict[str, list[Usage]], one: dict[str, list[Usage]]) -> Iterator[Row]:
    def each(side: str) -> Figure:
        more = cpu(many[side], unit=1e6).less(cpu(one[side], unit=1e6))
        return Figure(more.least / (items - 1), more.median / (items - 1))

    name = "parametrize"
    yield Row(
        f"{items:,} items: CPU to collect one", "µs", each("collect"), name, each("plain collect"), ratio_goal=1.2
    )
    plain = each("plain run")
    yield Row(f"{items:,} items: CPU of one, one metric", "µs", each("least run"), name, plain, ratio_goal=1.35)
    if "run" in many:
        yield Row(f"{items:,} items: CPU of one, defaults", "µs", each("run"), name, plain, ratio_goal=1.7)
    walls = {side: Figure.of(used.wall_s for used in found) for side, found in many.items()}
    collect_goal, run_goal, memory_goal = (8, 53, 600) if items == MANY else (None, None, None)
    yield Row(f"{items:,} items: wall to collect", "s", walls["collect"], name, walls["plain collect"], collect_goal)
    what = f"{items:,} items: wall to collect and run, one metric"
    yield Row(what, "s", walls["least run"], name, walls["plain run"], run_goal)
    peaks = {side: peak(found) for side, found in many.items()}
    what = f"{items:,} items: memory, one metric"
    yield Row(what, "MiB", peaks["least run"], name, peaks["plain run"], memory_goal, None if memory_goal else 1.5)
    if "run" in many:
        yield Row(f"{items:,} items: memory, defaults", "MiB", peaks["run"], name, peaks["plain run"])


def _sides(folder: Path, items: int) -> dict[str, Side]:
    least, usual, plain = folder / "least", folder / "usual", folder / "plain"
    recorded_project(least, items, LEAST)
    recorded_project(usual, items, DEFAULTS)
    no_op_project(plain, items)
    return {
        "collect": ([*PYTEST, *PLUGIN, *COLLECT], usual),
        "plain collect": ([*PYTEST, *COLLECT], plain),
        "least run": ([*PYTEST, *PLUGIN, "-q"], least),
        "run": ([*PYTEST, *PLUGIN, "-q"], usual),
        "plain run": ([*PYTEST, "-q"], plain),
    }


def _run(_: str, side: Side) -> Usage:
    command, folder = side
    used = measure(command, folder, environment=ONLY_ASKED_FOR)
    rmtree(folder / "reports", ignore_errors=True)
    return used
