"""What does it cost to read a case, checked in every field? Beside `json.loads` of the same lines, unchecked."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import Figure, Row, Scale, empty_folder, measure_inside, no_garbage_collection
from projects import a_case, write_lines

CASES = 10_000
ROUNDS = 7


def rows(scale: Scale) -> Iterator[Row]:
    """Microseconds of CPU a case, the garbage collector off on both sides."""
    found = measure_inside("cases_loading", cases=scale.cases(CASES), rounds=scale.rounds(ROUNDS))
    ours, peer = Figure.of(found["ours"]), Figure.of(found["json"])
    yield Row(f"load and check a case of {found['bytes']:,} bytes: CPU", "µs", ours, "json.loads", peer, 12)


def a_full_case(number: int) -> dict[str, Any]:
    """A case of about 1 kB."""
    case = a_case(number)
    unwanted = [{"rel_path": "manual/heater.md", "heading_path": "# Heater > ## Priming"}]
    return case | {
        "gold": case["gold"] | {"irrelevant_supports": unwanted},
        "expected_key_facts": ["valve 3 is opened first", "the crank is turned until water shows"],
        "required_support_groups": [[0], [1]],
        "metadata": {
            "author": "technical documentation",
            "reviewed": "2025-03-01",
            "note": "Asked by customers since the second edition of the manual; the answer has not changed since then.",
        },
    }


def inside(cases: int, rounds: int) -> dict[str, Any]:
    """Microseconds of CPU a case by rounds; runs in a process of its own."""
    from pytest_rageval.cases.loading import load_file

    ours, peer = [], []
    with empty_folder() as folder:
        path = folder / "cases.jsonl"
        write_lines(path, map(a_full_case, range(cases)))
        size = path.stat().st_size // cases
        for _ in range(rounds):
            with no_garbage_collection():
                peer.append(_json_us(path) / cases)
                started = time.process_time()
                loaded = load_file(path, folder)
                ours.append((time.process_time() - started) / cases * 1e6)
            if len(loaded.cases) != cases:
                raise RuntimeError(f"{len(loaded.cases)} of {cases} cases: {loaded.problems[:3]}")
    return {"ours": ours, "json": peer, "bytes": size}


def _json_us(path: Path) -> float:
    started = time.process_time()
    with path.open(encoding="utf-8") as file:
        kept = [json.loads(line) for line in file]
    spent = time.process_time() - started
    del kept
    return spent * 1e6
