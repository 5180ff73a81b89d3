"""What do the lists of the web app cost? 2,000 run folders, and a run of 100,000 cases; made-up ones.

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
GOALS = {"first list": 5, "later list": 0.1, "first open": 3, "slowest page": 0.3}
"""Seconds."""
QUERIES = (("", ""), ("outcome:failed", ""), ("token_f1<0.5", "-mrr"), ('"winter goods"', ""), ("zzzz", ""),
           ("-outcome:failed mrr>0.2 category:factual", "latency"), ("tag:L5_wrong_answer", "id"))  # fmt: skip


def rows(scale: Scale) -> Iterator[Row]:
    """Lists and pages, without HTTP, templates and a browser."""
    tenth = 10 if scale.is_quick else 1
    values = measure_inside("web_index", folders=FOLDERS // tenth, cases=CASES // tenth)
    for name, value in values.items():
        figure = Figure(value, value)
        yield Row(f"web lists: {name}", "s", figure, goal=GOALS.get(name))


def inside(folders: int, cases: int) -> dict[str, float]:
    with empty_folder() as folder:
        figures = listed(folder, folders)
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


def listed(folder: Path, count: int) -> dict[str, float]:
    from pytest_rageval.web.run_list import RunFilter, RunFolders, latest_of_series, run_choices, trends_of
    from pytest_rageval.web.site import Site, WebSettings

    store_folders(folder, count)
    settings = WebSettings(root=folder, reports=folder / "reports", data=folder / "data")
    folders = RunFolders(Site(settings))

    def dashboard() -> int:
        rows = folders.rows()
        run_choices(rows)
        shown = RunFilter().of(rows)[:50]
        trends_of(rows, [*latest_of_series(rows, 6), *shown])
        return len(shown)

    return {"first list": timed(dashboard)[0], "later list": timed(dashboard)[0]}


# ── many cases ────────────────────────────────────────────────────────────────────────────────────────────────


def opened(folder: Path, cases: int) -> dict[str, float]:
    from report_page import store_runs

    from pytest_rageval.runs.reader import StoredRun
    from pytest_rageval.web.opened_runs import OpenedRuns
    from pytest_rageval.web.run_cases import CaseQuery
    from pytest_rageval.web.run_list import RunFolders
    from pytest_rageval.web.site import Site, WebSettings

    store_runs(folder / "reports", cases)
    compare_with_before(folder / "reports" / "runs" / "now")
    site = Site(WebSettings(root=folder, reports=folder / "reports", data=folder / "data"))
    runs = OpenedRuns(site, RunFolders(site))
    read, _ = timed(lambda: sum(1 for _ in StoredRun(site.runs / "now").records()))
    first, opened = timed(lambda: runs.open("now"))
    sections, _ = timed(lambda: opened.sections)
    pages = []
    for query, sort in QUERIES:
        for number in (1, 500):
            seconds, found = timed(lambda q=query, s=sort, n=number: opened.page(CaseQuery(q, s, n)))  # type: ignore[misc]
            assert not found.problem
            pages.append(seconds + timed(lambda found=found: found.cells)[0])  # type: ignore[misc]
    return {"records read once": read, "first open": first, "sections": sections, "first page": pages[0],
            "first filter": pages[2], "slowest page": max(pages[3:])}  # fmt: skip


def compare_with_before(run: Path) -> None:
    """Write into the aggregates that a tenth of the cases passed before."""
    path = run / "metrics.json"
    metrics = json.loads(path.read_text(encoding="utf-8"))
    lines = (json.loads(line) for line in (run / "results.jsonl").open(encoding="utf-8"))
    failed = [record["case_key"] for record in lines if record["outcome"] == "failed"]
    names = dict.fromkeys(("flipped_to_pass", "only_before", "only_after", "unmeasured", "problems"), ())
    comparison = {"baseline_run_id": "before", "flipped_to_fail": failed, "metrics": {}, "compared": True, **names}
    path.write_text(json.dumps(metrics | {"comparison": comparison}), encoding="utf-8")


if __name__ == "__main__":
    sizes = [int(number) for number in sys.argv[1:3]] if len(sys.argv) > 2 else [FOLDERS, CASES]
    for name, value in inside(*sizes).items():
        print(f"{name:20} {value:8.3f} s  {f'goal {GOALS[name]}' if name in GOALS else ''}")
