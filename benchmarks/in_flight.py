"""Are calls that wait overlapped as well as they can be? Time from first request to last reply ÷ the ideal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from harness import ONLY_ASKED_FOR, PLUGIN, PYTEST, Figure, Row, Scale, Usage, empty_folder, in_turns, measure
from loopback import Loopback, loopback
from projects import PEERS, asking_project

CASES = 200
LATENCY_MS = 200
"""Of asking, and again of judging."""
ROUNDS = 3
GOALS = {20: 1.08, 200: 1.6}
"""In flight → the most that the span should be of the ideal."""
LONG_TAIL = 1.0
"""Sigma of log-normal latencies: one call in forty takes seven times the median."""
LONG_TAIL_GOAL = 1.3


def rows(scale: Scale) -> Iterator[Row]:
    """The same cases over the same server: we as a pytest run, peers as scripts."""
    with loopback() as server:
        for in_flight, goal in GOALS.items():
            yield from _rows(server, in_flight, goal, scale)
        yield from _rows(server, min(GOALS), LONG_TAIL_GOAL, scale, LONG_TAIL)


def _rows(server: Loopback, in_flight: int, goal: float, scale: Scale, sigma: float = 0.0) -> Iterator[Row]:
    ratios: dict[str, list[float]] = {}
    with empty_folder() as folder:

        def run(name: str, command: list[str]) -> Usage:
            server.begin(ask_ms=LATENCY_MS, judge_ms=LATENCY_MS, sigma=sigma)
            used = measure(command, folder, environment=ONLY_ASKED_FOR)
            seen = server.seen(CASES)
            # With every slot in use all the time; nobody knows which of the last calls are the long ones.
            ratios.setdefault(name, []).append(seen.span_s / (seen.slept_s / in_flight))
            return used

        in_turns(scale.rounds(ROUNDS), _commands(folder, server.url, in_flight, scale), run)
    figures = {name: Figure.of(values) for name, values in ratios.items()}
    ours = figures.pop("ours")
    tail = f", log-normal with σ {sigma:g}" if sigma else ""
    what = f"{CASES} cases × ({LATENCY_MS} ms ask + {LATENCY_MS} ms judge){tail}, {in_flight} in flight: span ÷ ideal"
    for name, peer in figures.items():
        yield Row(what, "", ours, name, peer, goal)


def _commands(folder: Path, url: str, in_flight: int, scale: Scale) -> dict[str, list[str]]:
    asking_project(folder, CASES, url, in_flight)
    told = [url, str(CASES), str(in_flight)]
    commands = {
        "ours": [*PYTEST, *PLUGIN, "-q", f"--rageval-concurrency={in_flight}", "--rageval-judge-cache=refresh"],
        "asyncio + httpx": [sys.executable, str(PEERS / "shared_client.py"), *told],
    }
    if scale.peers_python:
        commands["pydantic-evals"] = [scale.peers_python, str(PEERS / "with_pydantic_evals.py"), *told]
    return commands
