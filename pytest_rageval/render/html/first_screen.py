"""The first screen of the HTML report: tiles of main metrics, flipped cases, metrics that moved, settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.comparison.case_list import ListedCase
from pytest_rageval.comparison.gate_lines import gate_line
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.render.html.sections import MetricRow, metric_row
from pytest_rageval.runs.config_diff import flat_settings
from pytest_rageval.text import NO_VALUE, duration, short
from pytest_rageval.views.compared_metrics import ComparedMetric, moved_metrics
from pytest_rageval.views.parts import Tone

TILES = 5
"""Tiles of metrics; one of latency and cost follows."""
PREFERRED = (
    "reference_match",
    "faithfulness",
    "recall_any",
    "context_recall",
    "groundedness",
    "correctness",
    "token_f1",
    "abstention_accuracy",
    "hits",
    "recall_all",
    "key_fact_recall",
    "mrr",
)
SHOWN_FLIPS = 5


class Flips(NamedTuple):
    """The cases that are news: a title, their number, the filter that shows them all, and the first with what moved."""

    title: str
    cases: int
    query: str
    first: Sequence[tuple[ListedCase, str]]


def tiles(page: PageRun) -> Iterator[MetricRow]:
    """Yield the metrics with gates, failing ones first; then those that readers look for; then the latency."""
    gates: dict[str, Mapping[str, Any]] = {}
    for gate in sorted(page.gates, key=lambda gate: gate["passed"] is not False):
        gates.setdefault(gate["metric"], gate)
    measured = page.metrics["metrics"]
    by_bare: dict[str, str] = {}
    for name, metric in measured.items():
        if metric["mean"] is not None:
            by_bare.setdefault(name.partition("@")[0], name)
    preferred = [by_bare[name] for name in PREFERRED if name in by_bare]
    others = [name for name in by_bare.values() if not measured[name]["run_level"]]
    names = [*(name for name in gates if name in measured), *preferred, *others]
    for name in list(dict.fromkeys(names))[:TILES]:
        decided = gates.get(name)
        yield metric_row(name, page)._replace(gate=(decided["passed"], gate_line(decided)) if decided else None)
    yield _speed(page)


def _speed(page: PageRun) -> MetricRow:
    dollars = (page.metrics["volatile"].get("cost") or {}).get("judge_total_usd")
    spent = "cost unknown" if dollars is None else f"judge ${dollars:.2f}"
    # A baseline holds no latency.
    before = page.before.metrics if page.before is not None and page.compared else {}
    p95, earlier = (
        (metrics.get("volatile", {}).get("latency") or {}).get("p95_ms") for metrics in (page.metrics, before)
    )
    was = f"was {duration(earlier)}" if earlier is not None and page.is_of_same_cases else ""
    why = "not of the same cases" if earlier is not None and not was else ""
    return MetricRow("p95 latency", NO_VALUE if p95 is None else duration(p95), interval=spent, change=was, why=why)


def flips(page: PageRun) -> Flips:
    """Return newly failing cases and errors, or without a comparison all failing ones."""
    is_alone = page.compared is None
    news = [
        (number, case)
        for number, case in enumerate(page.cases)
        if (case.is_failing if is_alone else case.change == "worse" or case.outcome == "error")
    ]
    errors = sum(case.outcome == "error" for _, case in news)
    if is_alone:
        title, query = "Failing", "outcome:failed,error,xfailed"
    elif not errors:
        title, query = "Newly failing", "changed:worse"
    elif errors == len(news):
        title, query = "Errors", "outcome:error"
    else:
        title, query = "Newly failing, and errors", "outcome:error,failed"
    return Flips(title, len(news), query, [(case, _move(case, number, page)) for number, case in news[:SHOWN_FLIPS]])


def _move(case: ListedCase, number: int, page: PageRun) -> str:
    """Return the largest fall of a case as `mrr 1 → 0.5`; '' if none of its scores fell."""
    name = case.fallen or ""
    moved = (
        f"{short(fall.before)} → {short(fall.after)}" for fall in page.falls.get(name, ()) if fall.number == number
    )
    return next((f"{name.partition('@')[0]} {move}" for move in moved), "")


def moves(page: PageRun) -> list[ComparedMetric]:
    """Return the metrics that fell, the worst verdict first, then those that rose."""
    if page.compared is None:
        return []
    order: Sequence[Tone] = ("worse", "doubtful", "better", "plain")
    moved = (metric for metric in moved_metrics(page.compared) if metric.figures["change"] not in ("=", NO_VALUE))
    return sorted(moved, key=lambda metric: order.index(metric.tone))


def no_moves(page: PageRun) -> str:
    """Return the sentence shown if no metric moved; it counts the metrics that have no value in this run only."""
    unmeasured = (
        sum(metric["verdict"] == "unmeasured" for metric in page.compared["metrics"].values()) if page.compared else 0
    )
    if not unmeasured:
        return "No metric moved."
    return f"{unmeasured} metric{'s have' if unmeasured > 1 else ' has'} no value in this run, and had one before."


def equal_settings(page: PageRun) -> int:
    """Return the number of settings that are the same in both runs."""
    if page.before is None or page.before.config is None or page.side.config is None:
        return 0
    before, after = flat_settings(page.before.config), flat_settings(page.config)
    return sum(name in before and before[name] == value for name, value in after.items())
