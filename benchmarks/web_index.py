"""What does the index of the web app cost? 2,000 run folders, and a run of 100,000 cases; made-up ones.

    python benchmarks/web_index.py

CPU of one process. A run folder is as large as that of the demo: 40 metrics and their breakdowns, 95 kB of aggregates.
The run of 100,000 cases is that of `report_page.py`, compared with the one before it; reading its records once, with
nothing done with them, is measured beside opening it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from harness import Figure, Row, Scale, empty_folder, measure_inside

T = TypeVar("T")
FOLDERS, CASES = 2_000, 100_000
GOALS = {"first scan": 20, "scan again": 0.2, "dashboard": 0.2, "first open": 5, "open again": 0.3, "slowest page": 0.3}
"""Seconds."""
QUERIES = (("", ""), ("outcome:failed", ""), ("token_f1<0.5", "-mrr"), ('"winter goods"', ""), ("zzzz", ""),
           ("-outcome:failed mrr>0.2 category:factual", "latency"), ("tag:L5_wrong_answer", "id"))  # fmt: skip


def rows(scale: Scale) -> Iterator[Row]:
    """Scans and pages, as the index alone takes them: without HTTP, templates and a browser."""
    tenth = 10 if scale.is_quick else 1
    values = measure_inside("web_index", folders=FOLDERS // tenth, cases=CASES // tenth)
    for name, value in values.items():
        figure = Figure(value, value)
        yield Row(f"web index: {name}", "s", figure, goal=GOALS.get(name))


def inside(folders: int, cases: int) -> dict[str, float]:
    with empty_folder() as folder:
        figures = scanned(folder, folders)
    with empty_folder() as folder:
        return figures | opened(folder, cases)


def timed(function: Callable[[], T]) -> tuple[float, T]:
    """Seconds of CPU, of all threads, and what came out."""
    started = time.process_time()
    value = function()
    return time.process_time() - started, value


# ── many runs ─────────────────────────────────────────────────────────────────────────────────────────────────


def store_folders(folder: Path, count: int) -> Path:
    """Run folders with aggregates alone."""
    metrics = {f"metric_{number}@5": a_metric(number) for number in range(40)}
    groups = {f"group {number}": {"n": 10, "metrics": metrics} for number in range(10)}
    runs = folder / "reports" / "runs"
    for number in range(count):
        run_id = f"run_{number:05}"
        stamp = f"2026-11-{1 + number // 100 % 28:02}T{number // 60 % 24:02}:{number % 60:02}:00+00:00"
        content = {
            "metrics": metrics, "outcomes": {"passed": 120, "failed": 15, "error": 0, "skipped": 0, "xfailed": 0},
            "partial": False, "total_tests": 135, "judge": None, "gates": [], "comparison": None, "by_tag": groups,
            "volatile": {"run_id": run_id, "timestamp": stamp}, "description": "one of many",
        }  # fmt: skip
        config = {"k": 5, "dataset_hash": f"{number % 4:064x}", "settings": {}, "begun": stamp, "target": "demo"}
        (runs / run_id).mkdir(parents=True)
        (runs / run_id / "metrics.json").write_text(json.dumps(content), encoding="utf-8")
        (runs / run_id / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return runs


def a_metric(number: int) -> dict[str, Any]:
    return {"mean": number / 40, "layer": "L2", "better": "higher", "scale": [0.0, 1.0], "run_level": False,
            "ci": [0.1, 0.9], "n_scored": 94, "n_expected": 135, "n_error": 0, "n_not_applicable": 41}  # fmt: skip


def scanned(folder: Path, count: int) -> dict[str, float]:
    import sqlite3

    from pytest_rageval.web.index.run_index import RunIndex
    from pytest_rageval.web.index.run_queries import RunFilter, latest_of_series, lines_of_runs, run_cards, run_list

    index = RunIndex(folder / "data" / "rageval.sqlite", store_folders(folder, count), folder / "data" / "jobs")
    first, progress = timed(lambda: index.refresh(600))
    assert progress.is_done

    def dashboard(connection: sqlite3.Connection) -> int:
        run_cards(connection, latest_of_series(connection, 6))
        return len(lines_of_runs(connection, run_list(connection, RunFilter(), size=50).runs))

    again, _ = timed(lambda: index.refresh(600))
    shown, _ = timed(lambda: (index.refresh(600), index.read(dashboard)))
    return {"first scan": first, "scan again": again, "dashboard": shown}


# ── many cases ────────────────────────────────────────────────────────────────────────────────────────────────


def opened(folder: Path, cases: int) -> dict[str, float]:
    from report_page import store_runs

    from pytest_rageval.runs.reader import StoredRun
    from pytest_rageval.web.case_list import case_rows_page
    from pytest_rageval.web.index.case_tables import open_cases
    from pytest_rageval.web.index.run_index import RunIndex

    store_runs(folder, cases)
    compare_with_before(folder / "runs" / "now")
    index = RunIndex(folder / "data" / "rageval.sqlite", folder / "runs", folder / "data" / "jobs")
    index.refresh(60)
    read, _ = timed(lambda: sum(1 for _ in StoredRun(folder / "runs" / "now").records()))
    first, table = timed(lambda: open_cases(index, StoredRun(folder / "runs" / "now"), folder / "baseline.json"))
    again, _ = timed(lambda: open_cases(index, StoredRun(folder / "runs" / "now"), folder / "baseline.json"))
    pages = []
    for query, sort in QUERIES:
        for number in (1, 500):
            seconds, _ = timed(
                lambda q=query, s=sort, n=number: index.read(  # type: ignore[misc]
                    lambda connection: case_rows_page(connection, table, q, s, page=n)
                )
            )
            pages.append(seconds)
    return {"records read once": read, "first open": first, "open again": again, "slowest page": max(pages)}


def compare_with_before(run: Path) -> None:
    """Write into the aggregates that a tenth of the cases passed before."""
    path = run / "metrics.json"
    metrics = json.loads(path.read_text(encoding="utf-8"))
    lines = (json.loads(line) for line in (run / "results.jsonl").open(encoding="utf-8"))
    failed = [record["case_key"] for record in lines if record["outcome"] == "failed"]
    names = dict.fromkeys(("flipped_to_pass", "only_before", "only_after", "unmeasured", "problems"), ())
    comparison = {"baseline_run_id": "before", "flipped_to_fail": failed, "metrics": {}, **names}
    path.write_text(json.dumps(metrics | {"comparison": comparison}), encoding="utf-8")


if __name__ == "__main__":
    sizes = [int(number) for number in sys.argv[1:3]] if len(sys.argv) > 2 else [FOLDERS, CASES]
    for name, value in inside(*sizes).items():
        print(f"{name:20} {value:8.3f} s  {f'goal {GOALS[name]}' if name in GOALS else ''}")
