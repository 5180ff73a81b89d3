"""What does it cost a project that has nothing to do with us that we are installed? CPU added to one empty test."""

from __future__ import annotations

from collections.abc import Iterator

from harness import ONLY_ASKED_FOR, PLUGIN, PYTEST, Row, Scale, Usage, cpu, empty_folder, in_turns, measure, peak
from projects import no_op_project

ROUNDS = 20


def rows(scale: Scale) -> Iterator[Row]:
    """The same suite with the plugin and without, in turns."""
    with empty_folder() as folder:
        no_op_project(folder, 1)

        def run(_: str, options: tuple[str, ...]) -> Usage:
            return measure([*PYTEST, *options, "-q"], folder, environment=ONLY_ASKED_FOR)

        found = in_turns(scale.rounds(ROUNDS), {"on": PLUGIN, "off": ()}, run)
    on, off = (cpu(found[side], unit=1e3) for side in ("on", "off"))
    yield Row("a foreign suite of one test: CPU added by the plugin", "ms", on.less(off), goal=20)
    yield Row("a foreign suite of one test: CPU", "ms", on, "without us", off)
    yield Row("a foreign suite of one test: memory", "MiB", peak(found["on"]), "without us", peak(found["off"]))
