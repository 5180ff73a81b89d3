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
"""Metrics that readers look for, the first ones first."""
SHOWN_FLIPS = 5


class Flips(NamedTuple):
    """The cases that newly fail, or that fail if there is no comparison."""

    title: str
    cases: int
    """Their number."""
    query: str
    """The filter that lists them all."""
    first: Sequence[tuple[ListedCase, str]]
    """The first of them, each with its largest fall."""


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
        row = metric_row(name, page)
        decided = gates.get(name)
        if decided is not None:
            row = row._replace(gate=(decided["passed"], gate_line(decided)))
        yield row
    yield _speed(page)


def _speed(page: PageRun) -> MetricRow:
    dollars = (page.metrics["volatile"].get("cost") or {}).get("judge_total_usd")
    spent = "cost unknown" if dollars is None else f"judge ${dollars:.2f}"
    # A baseline holds no latency.
    metrics_before = page.before.metrics if page.before is not None and page.compared else {}
    now = _p95(page.metrics)
    before = _p95(metrics_before)
    change = ""
    why = ""
    if before is not None and page.is_of_same_cases:
        change = f"was {duration(before)}"
    elif before is not None:
        why = "not of the same cases"
    value = NO_VALUE if now is None else duration(now)
    return MetricRow("p95 latency", value, interval=spent, change=change, why=why)


def _p95(metrics: Mapping[str, Any]) -> float | None:
    latency = metrics.get("volatile", {}).get("latency") or {}
    p95: float | None = latency.get("p95_ms")
    return p95


def flips(page: PageRun) -> Flips:
    """Return newly failing cases and errors, or without a comparison all failing ones."""
    is_alone = page.compared is None
    news = [number for number, case in enumerate(page.cases) if _is_news(case, is_alone=is_alone)]
    errors = sum(page.cases[number].outcome == "error" for number in news)
    if is_alone:
        title, query = "Failing", "outcome:failed,error,xfailed"
    elif not errors:
        title, query = "Newly failing", "changed:worse"
    elif errors == len(news):
        title, query = "Errors", "outcome:error"
    else:
        title, query = "Newly failing, and errors", "outcome:error,failed"
    first = [(page.cases[number], _move(page.cases[number], number, page)) for number in news[:SHOWN_FLIPS]]
    return Flips(title, len(news), query, first)


def _is_news(case: ListedCase, *, is_alone: bool) -> bool:
    if is_alone:
        return case.is_failing
    return case.change == "worse" or case.outcome == "error"


def _move(case: ListedCase, number: int, page: PageRun) -> str:
    """Return the largest fall of a case as `mrr 1 → 0.5`; '' if none of its scores fell."""
    name = case.fallen or ""
    for fall in page.falls.get(name, ()):
        if fall.number == number:
            return f"{name.partition('@')[0]} {short(fall.before)} → {short(fall.after)}"
    return ""


def moves(page: PageRun) -> list[ComparedMetric]:
    """Return the metrics that fell, the worst verdict first, then those that rose."""
    if page.compared is None:
        return []
    order: Sequence[Tone] = ("worse", "doubtful", "better", "plain")
    moved = (metric for metric in moved_metrics(page.compared) if metric.figures["change"] not in ("=", NO_VALUE))
    return sorted(moved, key=lambda metric: order.index(metric.tone))


def no_moves(page: PageRun) -> str:
    """Return the sentence shown if no metric moved; it counts the metrics that have no value in this run only."""
    metrics = page.compared["metrics"] if page.compared else {}
    unmeasured = sum(metric["verdict"] == "unmeasured" for metric in metrics.values())
    if not unmeasured:
        return "No metric moved."
    without_value = "1 metric has" if unmeasured == 1 else f"{unmeasured} metrics have"
    return f"{without_value} no value in this run, and had one before."


def equal_settings(page: PageRun) -> int:
    """Return the number of settings that are the same in both runs."""
    if page.before is None or page.before.config is None or page.side.config is None:
        return 0
    before = flat_settings(page.before.config)
    after = flat_settings(page.config)
    return sum(name in before and before[name] == value for name, value in after.items())
