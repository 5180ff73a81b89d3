"""The cost of being installed, to a project that has nothing to do with us; and of the shortest run that has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from harness import ONLY_ASKED_FOR, PLUGIN, PYTEST, Row, Scale, Usage, cpu, empty_folder, in_turns, measure, peak
from projects import a_case, no_op_project, recorded_project, write_lines
from server import ANSWER

ROUNDS = 15
FLOOR = "plain pytest, httpx imported"
Side = tuple[Path, tuple[str, ...]]
"""Folder, options."""


def rows(scale: Scale) -> Iterator[Row]:
    """The same suite with the plugin and without, then runs of one case; each in turns."""
    with empty_folder() as folder:
        no_op_project(folder / "suite", 1)
        suite = {"on": (folder / "suite", PLUGIN), "off": (folder / "suite", ())}
        found = in_turns(scale.rounds(ROUNDS), suite, _run)
        yield from _guest(found)
        found = in_turns(scale.rounds(ROUNDS), _one_case(folder), _run)
    floor = cpu(found.pop(FLOOR), unit=1e3)
    for name, usages in found.items():
        yield Row(f"one case, {name}, with its page: CPU", "ms", cpu(usages, unit=1e3), FLOOR, floor, ratio_goal=1.6)


def _guest(found: dict[str, list[Usage]]) -> Iterator[Row]:
    on, off = (cpu(found[side], unit=1e3) for side in ("on", "off"))
    yield Row("a foreign suite of one test: CPU added by the plugin", "ms", on.less(off), goal=20)
    yield Row("a foreign suite of one test: CPU", "ms", on, "without us", off)
    yield Row("a foreign suite of one test: memory", "MiB", peak(found["on"]), "without us", peak(found["off"]))


def _one_case(folder: Path) -> dict[str, Side]:
    recorded, function, plain = folder / "recorded", folder / "function", folder / "plain"
    recorded_project(recorded, 1)
    write_lines(function / "evalcases" / "cases.jsonl", [a_case(0)])
    (function / "pyproject.toml").write_text('[tool.rageval]\ntarget = "bot:answer"\n', encoding="utf-8")
    bot = f"import json\nANSWER = json.loads({json.dumps(ANSWER)!r})\ndef answer(question):\n    return ANSWER\n"
    (function / "bot.py").write_text(bot, encoding="utf-8")
    plain.mkdir()
    (plain / "test_plain.py").write_text("import httpx\n\ndef test_plain():\n    pass\n", encoding="utf-8")
    return {"recorded": (recorded, PLUGIN), "a Python function": (function, PLUGIN), FLOOR: (plain, ())}


def _run(_: str, side: Side) -> Usage:
    folder, options = side
    return measure([*PYTEST, *options, "-q"], folder, environment=ONLY_ASKED_FOR)
