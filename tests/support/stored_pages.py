"""Pages of stored runs, in each state that a run can have."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stored_runs import CASES, PAGE_PLAN, compared, some_cases, store_full

from pytest_rageval.comparison.baseline import open_side
from pytest_rageval.config.settings import Settings
from pytest_rageval.render.html.page_run import PageRun, read_page
from pytest_rageval.render.html.report_page import BUDGET, report_html
from pytest_rageval.runs.row import Row

LOST: Mapping[str, Any] = {"recall_any@5": 0.0, "context_recall@5": 0.0}


STATES = ("green", "worse", "gate failed", "no baseline", "partial", "all errors", "0 cases", "1 case")


def a_page(reports: Path, state: str) -> PageRun:
    """The page of a run in one of the states, compared with a run before it where the state has one."""
    rows: list[Row] = {
        "green": lambda: some_cases(),
        "worse": lambda: some_cases(12),
        "gate failed": lambda: some_cases(12, failing_scores=LOST),
        "no baseline": lambda: some_cases(7),
        "partial": lambda: some_cases(3, cases=10),
        "all errors": lambda: some_cases(CASES, "error"),
        "0 cases": list,
        "1 case": lambda: some_cases(1, cases=1),
    }[state]()
    before = some_cases(cases=max(len(rows), 1))
    store_full(reports, "before", before)
    store_full(reports, "now", rows, partial=state == "partial", description="the winter stock, asked anew")
    return page_between(reports, None if state in ("no baseline", "0 cases") else "before", "now")


def store_fallen(reports: Path, failing: int, cases: int) -> None:
    """A run `now` of which so many newly fail since `before`, and a copy of it that was `killed` before its end."""
    before, now = some_cases(cases=cases), some_cases(failing, cases=cases)
    store_full(reports, "before", before)
    store_full(
        reports, "now", now, comparison={**compared(before, now, PAGE_PLAN).content, "baseline_run_id": "before"}
    )
    shutil.copytree(reports / "runs" / "now", reports / "runs" / "killed")
    (reports / "runs" / "killed" / "metrics.json").unlink()


def page_between(reports: Path, before: str | None, now: str, **settings: Any) -> PageRun:
    sides = [open_side(reports, reports / "baseline.json", name) if name else None for name in (before, now)]
    assert sides[1] is not None
    return read_page(sides[1], sides[0], Settings(**settings), is_chosen=before is not None)


def write_page(folder: Path, page: PageRun, budget: int | None = BUDGET) -> Path:
    path = folder / "report.html"
    path.write_text(report_html(page, budget=budget), encoding="utf-8")
    return path
