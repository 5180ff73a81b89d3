"""The eight states that a run can be in, as pages: stored runs of made-up rows."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stored_pair import a_chunk, store
from two_runs import a_plan, a_row, compared

from pytest_rageval.comparison.side import open_side
from pytest_rageval.config.settings import Settings
from pytest_rageval.render.html.page_run import PageRun, read_page
from pytest_rageval.render.html.report_page import BUDGET, report_html
from pytest_rageval.runs.records import to_line
from pytest_rageval.runs.row import Row

PLAN = a_plan("recall_any", "mrr", "token_f1", "context_recall", "groundedness", "overall_score")
CASES = 40
LONG = "which-of-the-two-warehouses-in-the-northern-region-keeps-the-winter-stock"
CATEGORIES = ("factual", "multi_hop", "a category with a long name")


def some_cases(failing: int = 0, outcome: str = "failed", cases: int = CASES, **fields: Any) -> list[Row]:
    """Cases of which the first ones fail in what is not gated over the run, or with another outcome."""
    return [a_case_row(number, number < failing, outcome, **fields) for number in range(cases)]


def a_case_row(
    number: int, is_failing: bool, outcome: str, failing_scores: Mapping[str, float] | None = None, **fields: Any
) -> Row:
    scores = {"recall_any@5": 1.0, "context_recall@5": 1.0, "mrr": 1.0, "token_f1": 0.9 - number / 100}
    if is_failing:
        scores |= {"mrr": 0.5, "token_f1": 0.2} | dict(failing_scores or {})
    groups = {
        "category": (CATEGORIES[number % 3],), "tag": ("nightly",), "difficulty": ("hard",), "domain": ("stock",),
        "answerable": ("answerable",),
    }  # fmt: skip
    row = a_row(f"evalcases/warehouse.jsonl::{LONG}-{number}", groups=groups, latency={"total_ms": 120.0 + number})
    changed: dict[str, Any] = {"scores": scores}
    if is_failing:
        changed |= {"outcome": outcome, "failed": (("token_f1", "L5_wrong_answer"),), "trial_passed": False}
        if outcome == "error":
            changed |= {"scores": {}, "failed": (), "error_kind": "timeout", "message": "no answer within 120 s"}
    return replace(row, **changed | fields)


def records_of_rows(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Records with texts and chunks for these rows."""
    return {row.key: a_full_record(row) for row in rows}


def a_full_record(row: Row, **fields: Any) -> dict[str, Any]:
    error = {"kind": row.error_kind, "message": row.message, "raw": None} if row.error_kind else None
    return {
        "test_case_id": row.key.partition("::")[2], "question": "Where is the winter stock kept, and since when?",
        "answer": "In the northern one. [1] Since 2019, when the other was closed.",
        "retrieved_chunks": [a_chunk(1, "stock/north.md", [0], heading_path="# North", text="The stock of winter."),
                             a_chunk(2, "stock/south.md", text="Closed in 2019.")],
        "error": error, "reason": None if row.outcome == "passed" else "token_f1 is 0.2, gate >= 0.5",
        "verdict": {"passed": not row.failed, "trial_passed": row.trial_passed, "gates_held": 3, "failed_gates": [
            {"metric": metric, "value": 0.2, "threshold": ">= 0.5", "tag": tag} for metric, tag in row.failed]},
        "groundedness": {"score": 4.0, "reasoning": "one claim has no source", "model": "lexical/4", "heuristic": True,
                         "supported_claims": ["It is kept in the northern one."],
                         "unsupported_claims": ["Since 2019."]},
    } | fields  # fmt: skip


QUESTION = "Where is the winter stock kept, and since when?"


def an_observation(row: Row, question: str = QUESTION, **gold: Any) -> dict[str, Any]:
    """A line of observations.jsonl, as much of it as a page reads."""
    known = {
        "answer": "In the northern warehouse, since 2019.",
        "supports": [{"rel_path": "stock/north.md"}, {"rel_path": "stock/since.md", "heading_path": "# Since"}],
    }
    case = {"id": row.key.partition("::")[2], "question": question,
            "gold": known | gold, "source": [row.key.partition("::")[0], 1]}  # fmt: skip
    return {"schema": 1, "case_key": row.key, "trial": row.trial, "case": case, "answer": None}


def store_full(reports: Path, run_id: str, rows: Sequence[Row], **metrics: Any) -> Path:
    """A run with records and observations."""
    folder = store(reports, run_id, rows, plan=PLAN, records=records_of_rows(rows), **metrics)
    lines = (to_line(an_observation(row)) + "\n" for row in rows)
    (folder / "observations.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


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
    store_full(reports, "now", now, comparison={**compared(before, now, PLAN).content, "baseline_run_id": "before"})
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
