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
GOALS = {20: 1.10, 200: 1.5}
"""In flight → the most that the span should be of the ideal."""


def rows(scale: Scale) -> Iterator[Row]:
    """The same cases over the same server: we as a pytest run, peers as scripts."""
    with loopback() as server:
        for in_flight, goal in GOALS.items():
            yield from _rows(server, in_flight, goal, scale)


def _rows(server: Loopback, in_flight: int, goal: float, scale: Scale) -> Iterator[Row]:
    spans: dict[str, list[float]] = {}
    with empty_folder() as folder:

        def run(name: str, command: list[str]) -> Usage:
            server.begin(ask_ms=LATENCY_MS, judge_ms=LATENCY_MS)
            used = measure(command, folder, environment=ONLY_ASKED_FOR)
            spans.setdefault(name, []).append(server.seen(CASES).span_s)
            return used

        in_turns(scale.rounds(ROUNDS), _commands(folder, server.url, in_flight, scale), run)
    ideal_s = CASES / in_flight * 2 * LATENCY_MS / 1000
    found = {name: Figure.of(span / ideal_s for span in one) for name, one in spans.items()}
    ours = found.pop("ours")
    what = f"{CASES} cases × ({LATENCY_MS} ms ask + {LATENCY_MS} ms judge), {in_flight} in flight: span ÷ ideal"
    for name, peer in found.items():
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
