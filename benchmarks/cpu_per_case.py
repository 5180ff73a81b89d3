"""The cost of a case beside waiting: CPU of the whole process tree with calls of 0 ms, and memory.

A case is one question and one judgement over HTTP, all default metrics, its two records, and its entry in the judge
cache. The cost of a case is that of all cases less that of a run with one case: start-up is counted on its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from harness import (
    ONLY_ASKED_FOR,
    OURS,
    PLUGIN,
    PYTEST,
    Figure,
    Row,
    Scale,
    Usage,
    beside_peers,
    cpu,
    empty_folder,
    in_turns,
    measure,
    peak,
)
from loopback import Loopback, loopback
from projects import PEERS, asking_project, by_hand_project

CASES = 200
MANY = 5000
"""For memory, with the full run."""
IN_FLIGHT = 16
ALONE = ", one case"
ROUNDS = 5
RATIO_GOALS = {"asyncio + httpx": 1.5, "pydantic-evals": 0.6}
Side = tuple[list[str], Path, int, dict[str, str]]
"""Command, folder, cases, environment."""


def rows(scale: Scale) -> Iterator[Row]:
    """Cost a case beside those of peers, start-up, memory."""
    peers = [peer.name for peer in scale.peers]
    with loopback() as server, empty_folder() as folder:

        def run(_: str, side: Side) -> Usage:
            command, where, count, environment = side
            server.begin()
            used = measure(command, where, environment=environment)
            server.seen(count)
            return used

        sides = _sides(folder, server, CASES, scale)
        # Each beside its run of one case, so that a busy minute does not part what is subtracted.
        alone = {name + ALONE: side for name, side in _sides(folder, server, 1, scale).items()}
        in_turn = {each: (sides | alone)[each] for name in sides for each in (name, name + ALONE)}
        may_fail = {each for name in peers for each in (name, name + ALONE)}
        usages, failures = beside_peers(scale.rounds(ROUNDS), in_turn, run, may_fail)
        reasons = {name.removesuffix(ALONE): reason for name, reason in failures.items()}
        yield from _rows(usages, reasons | dict(scale.missing))
        if scale.is_full:
            large = in_turns(1, {OURS: _ours(folder, server, MANY)}, run)[OURS]
            yield Row(f"memory at {MANY:,} cases", "MiB", peak(large), goal=110)


def _rows(usages: dict[str, list[Usage]], reasons: dict[str, str]) -> Iterator[Row]:
    names = [name for name in usages if not name.endswith(ALONE) and name + ALONE in usages]
    each = {name: _less(cpu(usages[name], unit=1e3), cpu(usages[name + ALONE], unit=1e3)) for name in names}
    others = [name for name in names if name != OURS]
    for name in others:
        yield Row(f"CPU a case, 0 ms calls, beyond the first of {CASES}", "ms", each[OURS], name, each[name],
                  ratio_goal=RATIO_GOALS.get(name))  # fmt: skip
    for name in others:
        yield Row("CPU of a run with one case", "s", cpu(usages[OURS + ALONE]), name, cpu(usages[name + ALONE]))
    for name in others:
        yield Row(f"memory at {CASES:,} cases", "MiB", peak(usages[OURS]), name, peak(usages[name]))
    for name, reason in reasons.items():
        yield Row(f"CPU a case, 0 ms calls, beyond the first of {CASES}", "ms", each[OURS], name, reason)


def _less(all_cases: Figure, first: Figure) -> Figure:
    more = all_cases.less(first, each=CASES - 1)
    return Figure(more.least, more.median, all_cases.rounds)


def _sides(folder: Path, server: Loopback, cases: int, scale: Scale) -> dict[str, Side]:
    by_hand = folder / f"by_hand_{cases}"
    by_hand_project(by_hand, cases, server.url)
    script = [sys.executable, str(PEERS / "shared_client.py"), server.url, str(cases), str(IN_FLIGHT)]
    sides = {
        OURS: _ours(folder, server, cases),
        "by hand": ([*PYTEST, "-q"], by_hand, cases, ONLY_ASKED_FOR),
        "asyncio + httpx": (script, folder, cases, ONLY_ASKED_FOR),
    }
    for peer in scale.peers:
        sides[peer.name] = (peer.command(server.url, cases, IN_FLIGHT), folder, cases, peer.environment(folder))
    return sides


def _ours(folder: Path, server: Loopback, cases: int) -> Side:
    ours = folder / f"ours_{cases}"
    asking_project(ours, cases, server.url, IN_FLIGHT)
    command = [*PYTEST, *PLUGIN, "-q", f"--rageval-concurrency={IN_FLIGHT}", "--rageval-judge-cache=refresh"]
    return command, ours, cases, ONLY_ASKED_FOR
