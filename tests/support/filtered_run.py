"""A run whose cases hold what filters stumble over, compared with one before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from stored_pair import store
from two_runs import a_plan, a_row, compared

from pytest_rageval.config.settings import Settings
from pytest_rageval.render.html.page_run import compared_side, read_page, side_of
from pytest_rageval.render.html.report_page import report_html
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.row import Row

PLAN = a_plan("recall_any", "mrr", "token_f1", "groundedness")
CATEGORIES = ("factual", "multi hop", "with,comma", "x' OR 1=1 --", '"quoted" \\', "%_", "분류", "\x1b[31mred")
TAGS = ("slow", "L5_wrong_answer", "a,b", "'); DROP TABLE runs; --", "제주", "SLOW")
TEXTS = (
    "The Jeju cream costs 32,000.",
    "제주 수분 크림은\n얼마인가?",
    "100% of _all_ 'cases'",
    "İstanbul ΣΑΣ straße",
    "",
    "a\x00b \u202e back",
)
OUTCOMES = ("passed", "failed", "error", "xfailed", "skipped", "passed", "failed")
CASES = 30


def rows() -> Iterator[tuple[Row, Row, dict[str, Any]]]:
    """Each case before and now, and what its record holds beside."""
    for number in range(CASES):
        outcome = OUTCOMES[number % len(OUTCOMES)]
        failed = (("token_f1", "L5_wrong_answer"),) * (outcome in ("failed", "xfailed")) + (("mrr", "mrr"),) * (
            number % 5 == 1
        )
        scores = {} if outcome == "error" else {"recall_any@5": float(number % 2), "mrr": 1 / (1 + number % 4)}
        if number % 3 and scores:
            scores["token_f1"] = number / CASES
        groups = {
            "category": (CATEGORIES[number % len(CATEGORIES)],),
            "tag": tuple(TAGS[place] for place in range(len(TAGS)) if number % (place + 2) == 0),
            "difficulty": (("hard", "easy")[number % 2],) if number % 3 else (),
            "domain": ("shop",) if number % 4 else (), "answerable": ("answerable",),
        }  # fmt: skip
        key = f"evalcases/{'ab'[number % 2]}.jsonl::case-{number}" if number != 7 else 'no file\'s id\\ "7"'
        latency = {"total_ms": 10.5 * number} if number % 6 else {}
        now = replace(
            a_row(key, groups=groups, latency=latency, outcome=outcome, trial_passed=outcome == "passed"),
            scores=scores, failed=failed if outcome in ("failed", "xfailed") else (),
            error_kind="timeout" if outcome == "error" else None,
            message="no answer within 120 s" if outcome == "error" else None,
        )  # fmt: skip
        was = replace(now, outcome="failed" if number % 4 == 0 else "passed", failed=(), error_kind=None, message=None,
                      scores={"recall_any@5": 1.0, "mrr": 0.5, "token_f1": 0.4})  # fmt: skip
        record = {
            "test_case_id": key.partition("::")[2] or key, "question": TEXTS[number % len(TEXTS)],
            "answer": TEXTS[number % 4] if number % 5 else None, "difficulty": next(iter(groups["difficulty"]), None),
            "domain": next(iter(groups["domain"]), None),
            "source": {"file": key.partition("::")[0], "line": number + 1},
            "latency": {"total_ms": None, "queue_ms": None, "judge_ms": None} | latency,
            "reason": "token_f1 is 0.2, gate >= 0.5" if failed and outcome != "passed" else None,
            "error": {"kind": now.error_kind, "message": now.message, "raw": None} if now.error_kind else None,
        }  # fmt: skip
        yield was, now, record


def store_filtered_run(reports: Path) -> StoredRun:
    """The run `now`; two of its cases are new."""
    made = list(rows())
    before, now = [was for was, _, _ in made[2:]], [after for _, after, _ in made]
    store(reports, "before", before, plan=PLAN)
    comparison = compared(before, now, PLAN).content
    folder = store(
        reports, "now", now, plan=PLAN, records={after.key: record for _, after, record in made},
        comparison={**comparison, "baseline_run_id": "before"},
    )  # fmt: skip
    return StoredRun(folder)


def write_report_of(run: StoredRun) -> Path:
    """The report of the run, compared with the one before."""
    reports = run.path.parent.parent
    page = read_page(
        side_of(run), compared_side(run, reports, reports / "baseline.json"), Settings(ignore_invariants=True)
    )
    path = reports / "report.html"
    path.write_text(report_html(page), encoding="utf-8")
    return path
