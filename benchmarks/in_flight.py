"""Calls that wait, overlapped: the time from the first request to the last reply, divided by the ideal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from environments import SERIAL
from harness import ONLY_ASKED_FOR, OURS, PLUGIN, PYTEST, Figure, Row, Scale, Usage, beside_peers, empty_folder, measure
from loopback import Loopback, loopback
from projects import PEERS, asking_project

CASES = 200
LATENCY_MS = 200
"""Of asking, and again of judging."""
ROUNDS = 5
GOALS = {20: 1.05, 200: 1.3}
"""In flight → the most that the span should be of the ideal."""
SERIAL_REASON = "makes one call after the other"
Side = tuple[list[str], dict[str, str]]
"""Command, environment."""
LONG_TAIL = 1.0
"""Sigma of log-normal latencies: one call in forty takes seven times the median."""
LONG_TAIL_GOAL = 1.3


def rows(scale: Scale) -> Iterator[Row]:
    """The same cases over the same server: we as a pytest run, peers as scripts."""
    with loopback() as server:
        for in_flight, goal in GOALS.items():
            yield from _rows(server, in_flight, goal, scale)
        yield from _rows(server, min(GOALS), LONG_TAIL_GOAL, replace(scale, peers=(), missing={}), LONG_TAIL)


def _rows(server: Loopback, in_flight: int, goal: float, scale: Scale, sigma: float = 0.0) -> Iterator[Row]:
    ratios: dict[str, list[float]] = {}
    with empty_folder() as folder:

        def run(name: str, side: Side) -> Usage:
            command, environment = side
            server.begin(ask_ms=LATENCY_MS, judge_ms=LATENCY_MS, sigma=sigma)
            used = measure(command, folder, environment=environment)
            seen = server.seen(CASES)
            # With every slot in use all the time; nobody knows which of the last calls are the long ones.
            ratios.setdefault(name, []).append(seen.span_s / (seen.slept_s / in_flight))
            return used

        peers = [peer.name for peer in scale.peers]
        _, failures = beside_peers(scale.rounds(ROUNDS), _sides(folder, server.url, in_flight, scale), run, peers)
    figures = {name: Figure.of(each) for name, each in ratios.items() if name not in failures}
    ours = figures.pop(OURS)
    serial = dict.fromkeys(SERIAL.intersection(peers), SERIAL_REASON)
    tail = f", log-normal with σ {sigma:g}" if sigma else ""
    what = f"{CASES} cases × ({LATENCY_MS} ms ask + {LATENCY_MS} ms judge){tail}, {in_flight} in flight: span ÷ ideal"
    for name, peer in (figures | failures | serial | dict(scale.missing)).items():
        yield Row(what, "", ours, name, peer, goal)


def _sides(folder: Path, url: str, in_flight: int, scale: Scale) -> dict[str, Side]:
    asking_project(folder, CASES, url, in_flight)
    ours = [*PYTEST, *PLUGIN, "-q", f"--rageval-concurrency={in_flight}", "--rageval-judge-cache=refresh"]
    script = [sys.executable, str(PEERS / "shared_client.py"), url, str(CASES), str(in_flight)]
    sides = {OURS: (ours, ONLY_ASKED_FOR), "asyncio + httpx": (script, ONLY_ASKED_FOR)}
    for peer in scale.peers:
        if peer.name not in SERIAL:
            sides[peer.name] = (peer.command(url, CASES, in_flight), peer.environment(folder))
    return sides
