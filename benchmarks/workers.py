"""How long is a system asked whose answers take a tenth of a second, with workers of xdist and without?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from harness import ONLY_ASKED_FOR, PLUGIN, PYTEST, Figure, Row, Scale, empty_folder, measure

CASES, SECONDS = 200, 0.1
ROUNDS = 3
SIDES = {
    "one process": (),
    "-n 2": ("-n", "2"),
    "-n 4": ("-n", "4"),
    "-n 2 --dist load": ("-n", "2", "--dist", "load"),
}
BOT = f"""
import asyncio, time
def note():
    with open("times.txt", "a") as file:
        file.write(f"{{time.time()}}\\n")
async def answer(question):
    note()
    await asyncio.sleep({SECONDS})
    note()
    return "x"
"""


def rows(scale: Scale) -> Iterator[Row]:
    """From the first question to the last answer, 16 in flight over all processes; each side in turn."""
    cases = scale.cases(CASES)
    spans: dict[str, list[float]] = {name: [] for name in SIDES}
    with empty_folder() as folder:
        _project(folder, cases)
        for _ in range(scale.rounds(ROUNDS)):
            for name, arguments in SIDES.items():
                spans[name].append(_span(folder, cases, arguments))
    alone = Figure.of(spans.pop("one process"))
    for name, values in spans.items():
        ratio_goal = None if "load" in name else 1.05
        what = f"{cases} cases × {SECONDS * 1000:.0f} ms, 16 in flight, {name}: time of asking"
        yield Row(what, "s", Figure.of(values), "one process", alone, ratio_goal=ratio_goal)


def _project(folder: Path, cases: int) -> None:
    (folder / "evalcases").mkdir()
    lines = (json.dumps({"id": f"q{n}", "question": f"{n}?", "gold": {"answer": "x"}}) for n in range(cases))
    (folder / "evalcases" / "a.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "rageval.toml").write_text('target = "slow:answer"\njudge = "none"\n', encoding="utf-8")
    (folder / "slow.py").write_text(BOT, encoding="utf-8")


def _span(folder: Path, cases: int, arguments: tuple[str, ...]) -> float:
    times = folder / "times.txt"
    times.unlink(missing_ok=True)
    measure([*PYTEST, *PLUGIN, "-p", "xdist", "-q", *arguments], folder, environment=ONLY_ASKED_FOR)
    noted = sorted(map(float, times.read_text(encoding="utf-8").split()))
    if len(noted) != 2 * cases:
        raise RuntimeError(f"{len(noted) / 2:g} answers, expected {cases}")
    return noted[-1] - noted[0]
