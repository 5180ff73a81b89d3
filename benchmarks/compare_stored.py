"""What does `rageval compare` cost on two stored runs of 100,000 cases and ten metrics, reading included?

python benchmarks/compare_stored.py [CASES]

Writes both runs to a temporary folder (some 600 MB), then calls the command as a process of its own and prints its wall
time, its CPU time and its peak memory.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from compare_runs import CHANGED, METRICS, a_row, scores

from pytest_rageval.config.settings import Settings
from pytest_rageval.io.atomic import write_json
from pytest_rageval.metrics import load_registry
from pytest_rageval.run.plan import Plan, make_plan
from pytest_rageval.runs.aggregate import RunInfo, aggregate
from pytest_rageval.runs.columns import CaseColumns, write_scores
from pytest_rageval.runs.row import Row

CASES = 100_000
FAILING = 0.1
TEXT = "The answer of a system, or the beginning of a chunk that it has retrieved, in 200 characters. " * 2
CHUNK = {"chunk_id": "c", "rel_path": "notes/a.md", "heading_path": "# A", "score_vector": 0.5, "score_lexical": 0.5,
         "score_final": 0.5, "text": TEXT, "token_count": 40, "matches": [0]}  # fmt: skip


def record(row: Row) -> dict[str, Any]:
    """A line of results.jsonl of the usual size, with what the comparison reads of it."""
    return {
        "schema": 1, "case_key": row.key, "question": TEXT, "answer": TEXT,
        "retrieved_chunks": [CHUNK | {"rank": rank} for rank in range(1, 6)], "abstention": {"abstained": False},
        "scores": dict(row.scores), "judge_input": [TEXT] * 5, "trial": 0, "error": None,
        "verdict": {"passed": row.outcome == "passed", "failed_gates": []},
    }  # fmt: skip


def write_run(folder: Path, rows: list[Row], plan: Plan) -> None:
    folder.mkdir(parents=True)
    info = RunInfo("hash", None, len(rows), False, None, {"run_id": folder.name})
    write_json(folder / "metrics.json", aggregate(rows, plan, info))
    write_json(folder / "config.json", {"k": 5, "dataset_hash": "d", "settings": {}})
    write_scores(folder, CaseColumns.of_rows(rows))
    with (folder / "results.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(record(row), separators=(",", ":")) + "\n" for row in rows)


def main(cases: int) -> None:
    luck = random.Random(1)
    plan = make_plan(Settings(enabled=METRICS), load_registry())

    def outcome() -> str:
        return "failed" if luck.random() < FAILING else "passed"

    keys = [f"evalcases/some.jsonl::case-{number}" for number in range(cases)]
    with tempfile.TemporaryDirectory() as reports:
        before = [a_row(key, scores(plan, luck)) for key in keys]
        write_run(Path(reports, "runs/before"), before, plan)
        after = [a_row(row.key, scores(plan, luck), outcome()) if luck.random() < CHANGED else row for row in before]
        write_run(Path(reports, "runs/now"), after, plan)
        del before, after
        for form in ("terminal", "json"):
            print(f"{cases} cases, {form}: {measured(['before', 'now', '--reports', reports, '--format', form])}")


def measured(arguments: list[str]) -> str:
    """Run the command; wall, CPU and peak memory of its process."""
    output = str(Path(tempfile.gettempdir(), "comparison.out"))
    command = [sys.executable, "-m", "pytest_rageval.cli.main", "compare", *arguments, "--output", output]
    start = time.perf_counter()
    child = os.posix_spawn(sys.executable, command, os.environ)
    _, status, used = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    code = os.waitstatus_to_exitcode(status)
    return f"{seconds:.2f} s, {used.ru_utime + used.ru_stime:.2f} s of CPU, {used.ru_maxrss / 1024:.0f} MB, exit {code}"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else CASES)
