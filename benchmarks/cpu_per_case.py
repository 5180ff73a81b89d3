"""What does a case cost beside waiting? CPU of the whole process tree with calls of 0 ms, and memory.

A case is one question and one judgement over HTTP, all default metrics, its two records, and its entry in the judge
cache. The cost of a case is that of all cases less that of a run with one case: start-up is counted on its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

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
from loopback import Loopback, loopback
from projects import PEERS, asking_project, by_hand_project

CASES = 1000
MANY = 5000
IN_FLIGHT = 16
ROUNDS = 3
Side = tuple[list[str], Path, int]
"""Command, folder, cases."""


def rows(scale: Scale) -> Iterator[Row]:
    """Cost a case beside those of peers, start-up, memory."""
    cases, many = scale.cases(CASES), scale.cases(MANY)
    with loopback() as server, empty_folder() as folder:

        def run(_: str, side: Side) -> Usage:
            command, where, count = side
            server.begin()
            used = measure(command, where, environment=ONLY_ASKED_FOR)
            server.seen(count)
            return used

        sides = _sides(folder, server, cases, scale)
        first = _sides(folder, server, 1, scale)
        found = in_turns(scale.rounds(ROUNDS), sides | {f"{name}, 1": side for name, side in first.items()}, run)
        large = in_turns(scale.rounds(ROUNDS), {"ours": _ours(folder, server, many)}, run)["ours"]
    each = {name: cpu(found[name]).less(cpu(found[f"{name}, 1"]), each=cases - 1) for name in sides}
    for name in list(sides)[1:]:
        yield Row("CPU a case, 0 ms calls, beyond the first", "ms", _ms(each["ours"]), name, _ms(each[name]), 1.5)
    ours, one = found["ours"], found["ours, 1"]
    yield Row(f"CPU a case, start-up included, {cases:,} cases", "ms", cpu(ours, each=cases, unit=1e3))
    yield Row("CPU of a run with one case", "s", cpu(one), "by hand", cpu(found["by hand, 1"]))
    yield Row(f"memory at {cases:,} cases", "MiB", peak(ours), "by hand", peak(found["by hand"]), 60)
    yield Row(f"memory at {many:,} cases", "MiB", peak(large), goal=110)


def _ms(seconds: Figure) -> Figure:
    return Figure(seconds.least * 1e3, seconds.median * 1e3)


def _sides(folder: Path, server: Loopback, cases: int, scale: Scale) -> dict[str, Side]:
    by_hand = folder / f"by_hand_{cases}"
    by_hand_project(by_hand, cases, server.url)
    told = [server.url, str(cases), str(IN_FLIGHT)]
    sides = {
        "ours": _ours(folder, server, cases),
        "by hand": ([*PYTEST, "-q"], by_hand, cases),
        "asyncio + httpx": ([sys.executable, str(PEERS / "shared_client.py"), *told], folder, cases),
    }
    if scale.peers_python:
        command = [scale.peers_python, str(PEERS / "with_pydantic_evals.py"), *told]
        sides["pydantic-evals"] = (command, folder, cases)
    return sides


def _ours(folder: Path, server: Loopback, cases: int) -> Side:
    ours = folder / f"ours_{cases}"
    asking_project(ours, cases, server.url, IN_FLIGHT)
    command = [*PYTEST, *PLUGIN, "-q", f"--rageval-concurrency={IN_FLIGHT}", "--rageval-judge-cache=refresh"]
    return command, ours, cases
