"""The first screen of the HTML report: tiles of main metrics, flipped cases, metrics that moved, settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.comparison.case_list import ListedCase
from pytest_rageval.comparison.gate_lines import gate_line
from pytest_rageval.render.html.environment import on_one_line
from pytest_rageval.render.html.figures import IntervalFigure, Spark, interval_figure, least_span, spark
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.runs.config_diff import flat_settings
from pytest_rageval.text import NO_VALUE, change, duration, short
from pytest_rageval.views.comparison import ComparedMetric, moved_metrics, tone_of
from pytest_rageval.views.parts import Tone

TILES = 5
"""Tiles of metrics; one of latency and cost follows."""
PREFERRED = ("reference_match", "faithfulness", "recall_any", "context_recall", "groundedness", "correctness",
             "token_f1", "abstention_accuracy", "hits", "recall_all", "key_fact_recall", "mrr")  # fmt: skip
SHOWN_FLIPS = 5


class Tile(NamedTuple):
    """A figure of the first screen. `gate`: None without one, else whether it passes, with its line."""

    metric: str
    value: str
    change: str
    tone: Tone
    figure: IntervalFigure | None
    interval: str
    n: int | None
    line: Spark | None
    gate: tuple[bool | None, str] | None
    why: str = ""
    """The reason why no change is shown."""
    top: str = ""
    """The end of the scale, if it is not 1."""
    is_lower_better: bool = False


class Flip(NamedTuple):
    """A case of the first screen: its number in the list, what moved, and why."""

    case: ListedCase
    number: int
    move: str
    why: str


def tiles(page: PageRun) -> Iterator[Tile]:
    """Yield the metrics with gates, failing ones first; then those that readers look for."""
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
    yield from (_tile(name, page, gates.get(name)) for name in list(dict.fromkeys(names))[:TILES])
    yield _speed(page)


def _tile(name: str, page: PageRun, gate: Mapping[str, Any] | None) -> Tile:
    metric = page.metrics["metrics"][name]
    moved = page.compared["metrics"].get(name) if page.compared else None
    return Tile(
        metric=name,
        value="–" if metric["mean"] is None else _figure(metric["mean"], metric["scale"]),
        change=change(moved["delta"]) if moved and moved["delta"] is not None else "",
        tone=tone_of(moved) if moved else "plain",
        figure=interval_figure(metric["mean"], metric.get("ci"), metric["scale"]),
        interval=interval_text(metric.get("ci")),
        n=metric.get("n_scored"),
        line=spark(page.values_in_time(name), least_span(metric["scale"])),
        gate=(gate["passed"], gate_line(gate)) if gate else None,
        why=moved["why"] if moved else "",
        top=f" of {metric['scale'][1]:g}" if metric["scale"][1] > 1 else "",
        is_lower_better=metric["better"] == "lower",
    )


def _figure(value: float, scale: Sequence[float]) -> str:
    return f"{value:.3f}" if scale[1] <= 1 else f"{value:.2f}"


def interval_text(ci: Sequence[float | None] | None) -> str:
    """Return `.82–.95`, or `0.82 to 0.95` if a limit is not between 0 and 1; '' without an interval."""
    low, high = ci or (None, None)
    return "" if low is None or high is None else f"{low:.2f} to {high:.2f}"


def _speed(page: PageRun) -> Tile:
    cost = page.metrics["volatile"].get("cost") or {}
    p95 = _p95(page.metrics)
    dollars = cost.get("judge_total_usd")
    spent = "cost unknown" if dollars is None else f"judge ${dollars:.2f}"
    earlier = _p95(page.before.metrics) if page.before is not None and page.compared else None
    was = f"was {duration(earlier)}" if earlier is not None and page.is_of_same_cases else ""
    why = "not of the same cases" if earlier is not None and not was else ""
    return Tile("p95 latency", "–" if p95 is None else duration(p95), was, "plain", None, spent, None, None, None, why)


def _p95(metrics: Mapping[str, Any]) -> float | None:
    """Return the latency in milliseconds; None for a baseline, whose metrics hold none."""
    latency = metrics.get("volatile", {}).get("latency") or {}
    value: float | None = latency.get("p95_ms")
    return value


def flips(page: PageRun) -> list[Flip]:
    """Return the first cases of the list: newly failing ones and errors, or without a comparison all failing ones."""
    numbered = [(number, case) for number, case in enumerate(page.cases) if _is_news(case, page)][:SHOWN_FLIPS]
    return [_flip(case, number, page) for number, case in numbered]


def _is_news(case: ListedCase, page: PageRun) -> bool:
    if page.compared is None:
        return case.is_failing
    return case.change == "worse" or case.outcome == "error"


class FlipsHead(NamedTuple):
    """The title of the list of flips, the number of its cases, and the filter that shows them all."""

    title: str
    cases: int
    query: str


def flips_head(page: PageRun) -> FlipsHead:
    count = sum(_is_news(case, page) for case in page.cases)
    if page.compared is None:
        return FlipsHead("Failing", count, "outcome:failed,error,xfailed")
    errors = sum(case.outcome == "error" for case in page.cases)
    if not errors:
        return FlipsHead("Newly failing", count, "changed:worse")
    if errors == count:
        return FlipsHead("Errors", count, "outcome:error")
    return FlipsHead("Newly failing, and errors", count, "outcome:error,failed")


def _flip(case: ListedCase, number: int, page: PageRun) -> Flip:
    moved = ""
    if page.compared and case.fallen:
        fall = next((fall for fall in page.falls.get(case.fallen, ()) if fall.number == number), None)
        if fall is not None:
            moved = f"{case.fallen.partition('@')[0]} {short(fall.before)} → {short(fall.after)}"
    return Flip(case, number, moved, on_one_line(case.why, 90))


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
