"""The sections of the HTML report below its first screen, as rows: heat, metrics, distributions, speed, history."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.comparison.case_list import ListedCase
from pytest_rageval.comparison.layer_table import LayerCell, layer_rows
from pytest_rageval.comparison.pairing import by_category
from pytest_rageval.comparison.severity import shares_of
from pytest_rageval.metrics.registry import LAYERS, Metric, Registry, doc_parts
from pytest_rageval.render.html.figures import (
    Chart,
    IntervalFigure,
    Spark,
    change_figure,
    doubling_histogram,
    histogram,
    interval_figure,
    least_span,
    spark,
    time_chart,
)
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.runs.columns import Column
from pytest_rageval.runs.config_diff import flat_settings, setting_text
from pytest_rageval.stats.intervals import cases_with_values, mean_of_means_interval
from pytest_rageval.text import NO_VALUE, change, denominator, duration, score_text
from pytest_rageval.views.compared_metrics import ComparedMetric, compared_metric
from pytest_rageval.views.parts import Tone

SHOWN_CATEGORIES = 30
SHOWN_CAUSES = 10
SHADES_OF_A_SCALE = 30
"""The darkest shade of a change stands for about a third of the scale."""
CULPRITS = ("worse", "doubtful")
"""Tones of metrics that are shown with the cases that fell."""
PERCENTILES = ("p50", "p95", "p99")


class HeatCell(NamedTuple):
    """A layer's mean in a category, as 0 to 1."""

    value: str
    interval: str
    n: int
    """The cases behind the mean."""
    way: str
    """fall or rise; '' without a change."""
    shade: int
    """The size of the change from 1 to 9, which colours the cell; 0 without a change."""
    change: str


class MetricRow(NamedTuple):
    """A metric of the table or a tile of the first screen, with what moved."""

    name: str
    value: str
    """The mean."""
    figure: IntervalFigure | None = None
    """The mean with its interval, drawn."""
    interval: str = ""
    n: int | None = None
    """The cases behind the mean; None for a figure that is no metric."""
    top: str = ""
    """The end of the scale, if it is not 1."""
    better: str = "higher"
    denominator: str = ""
    """How many cases were scored, of how many."""
    compared: ComparedMetric | None = None
    """The metric in the comparison; None without one."""
    change_figure: IntervalFigure | None = None
    """The change with its interval, drawn."""
    tone: Tone = "plain"
    line: Spark | None = None
    """The metric in the runs of the trend."""
    why: str = ""
    """Why no change is shown."""
    change: str = ""
    gate: tuple[bool | None, str] | None = None
    """Whether the run's gate on it passes, with its line; only of a tile."""
    is_judged_by_model: bool = False
    """A model gave the score, which the name of `reference_match` hides."""


class Causes(NamedTuple):
    """The cases that fell in a metric."""

    fallen: int
    """Their number."""
    cases: Sequence[tuple[ListedCase, str, str]]
    """The first of them, with their scores before and after."""


Columns = dict[str, Column]
"""The score of each case by metric, None for a case without one."""


# ── heat ──────────────────────────────────────────────────────────────────────────────────────────────────────


def heat(page: PageRun) -> tuple[list[str], list[tuple[str, int, list[HeatCell | None]]]]:
    """Return the layers, and for each category (the largest first) its number of cases and a cell for each layer."""
    compared = page.compared
    if compared is not None and page.both is not None and page.before is not None:
        categories = page.side.categories or page.before.categories
        compared = {**compared, "by_category": by_category(page.both, categories, {})}
    scores = _normalised_scores(page)
    rows = []
    for row in layer_rows(page.metrics, compared)[:SHOWN_CATEGORIES]:
        cells = [_cell(cell, scores.get((row.name, layer), {})) for layer, cell in row.cells.items()]
        rows.append((row.name, row.cases, cells))
    return list(page.metrics["by_layer"]), rows


def _normalised_scores(page: PageRun) -> dict[tuple[str, str], Columns]:
    """Return the scores of each category and layer, by metric, as 0 to 1 with higher better."""
    described = page.metrics["metrics"]
    shares = shares_of(described)
    places: dict[str, list[int]] = {}
    for place, case in enumerate(page.cases):
        places.setdefault(case.category, []).append(place)
    by_cell: dict[tuple[str, str], Columns] = {}
    columns = page.listed.scores
    for name in sorted(columns.keys() & described.keys()):
        share = shares[name]
        column = columns[name]
        layer = described[name]["layer"]
        if share is not float:  # most scores are shares already
            column = [None if score is None else share(score) for score in column]
        for category, chosen in places.items():
            of_cell = by_cell.setdefault((category, layer), {})
            of_cell[name] = [column[place] for place in chosen]
    return by_cell


def _cell(cell: LayerCell, columns: Columns) -> HeatCell | None:
    if cell.score is None:
        return None
    value = score_text(cell.score)
    interval = interval_text(mean_of_means_interval(columns))
    n = cases_with_values(columns)
    moved = change(cell.change)
    if moved in ("=", NO_VALUE):
        return HeatCell(value, interval, n, way="", shade=0, change="")
    way = "fall" if moved.startswith("-") else "rise"
    shade = min(math.ceil(abs(cell.change or 0) * SHADES_OF_A_SCALE), 9)
    return HeatCell(value, interval, n, way, shade, moved)


# ── metrics ───────────────────────────────────────────────────────────────────────────────────────────────────


def metric_layers(page: PageRun) -> list[tuple[str, str, str, list[tuple[MetricRow, Causes | None]]]]:
    """Return the name, title, score and metrics of each layer; a metric that got worse with its causes."""
    described = page.metrics["metrics"]
    layers = []
    for layer, title in LAYERS.items():
        names = sorted(name for name, metric in described.items() if metric["layer"] == layer)
        rows = []
        for name in names:
            if described[name]["mean"] is not None:
                row = metric_row(name, page)
                rows.append((row, _causes(row, page)))
        if rows:
            score = (page.metrics["by_layer"].get(layer) or {}).get("score")
            layers.append((layer, title, score_text(score), rows))
    return layers


def _causes(row: MetricRow, page: PageRun) -> Causes | None:
    """Return the cases that fell in a metric that got worse; None if there are none."""
    falls = page.falls.get(row.name, ())
    if row.tone not in CULPRITS or not falls:
        return None
    first = [
        (page.cases[fall.number], score_text(fall.before), score_text(fall.after)) for fall in falls[:SHOWN_CAUSES]
    ]
    return Causes(len(falls), first)


def unscored(page: PageRun) -> list[str]:
    """Return the metrics without a value in this run."""
    return sorted(name for name, metric in page.metrics["metrics"].items() if metric["mean"] is None)


def metric_row(name: str, page: PageRun) -> MetricRow:
    """Return a metric of the run with its change."""
    metric = page.metrics["metrics"][name]
    scale = metric["scale"]
    row = MetricRow(
        name=name,
        value=score_text(metric["mean"]),
        figure=interval_figure(metric["mean"], metric.get("ci"), scale),
        interval=interval_text(metric.get("ci")),
        n=metric.get("n_scored"),
        top="" if scale[1] == 1 else f" of {scale[1]:g}",
        better=metric["better"],
        denominator=denominator(metric),
        line=spark(page.values_in_time(name), least_span(scale)),
        is_judged_by_model=_is_judged_by_model(name, page),
    )
    moved = page.compared["metrics"].get(name) if page.compared else None
    if not moved:
        return row
    compared = compared_metric(name, moved)
    return row._replace(
        compared=compared,
        change_figure=change_figure(moved["delta"], moved["ci"], scale),
        tone=compared.tone,
        why=moved["why"],
        change="" if moved["delta"] is None else change(moved["delta"]),
    )


def _is_judged_by_model(name: str, page: PageRun) -> bool:
    judge = page.metrics.get("judge")
    return name.partition("@")[0] == "reference_match" and judge is not None and not judge["heuristic"]


def interval_text(ci: Sequence[float | None] | None) -> str:
    """Return `0.82 to 0.95`; '' without an interval."""
    low, high = ci or (None, None)
    if low is None or high is None:
        return ""
    return f"{low:.2f} to {high:.2f}"


# ── distributions, speed ──────────────────────────────────────────────────────────────────────────────────────


def distributions(page: PageRun) -> Iterator[tuple[str, int, Chart]]:
    """Return histograms of the metrics that have more than two values, with those of the baseline."""
    described = page.metrics["metrics"]
    layers = list(LAYERS)
    for name in sorted(described, key=lambda name: (layers.index(described[name]["layer"]), name)):
        values = _present(page.listed.scores.get(name, ()))
        before = _present(page.before_columns.get(name, ()))
        if len(set(values)) > 2:
            yield name, len(values), histogram(values, described[name]["scale"], before)


def _present(scores: Iterable[float | None]) -> list[float]:
    return [score for score in scores if score is not None]


def latency_rows(page: PageRun) -> list[tuple[str, ...]]:
    """Return phase, p50, p95 and p99 of asking, and p50 and p95 of its parts."""
    latency = page.metrics["volatile"].get("latency") or {}
    if latency.get("p50_ms") is None:
        return []
    rows = [_percentiles("asking, in all", latency)]
    if page.latency_before:
        rows.append(_percentiles("the same before", page.latency_before))
    for phase, parts in (latency.get("phases") or {}).items():
        name = phase.removesuffix("_ms").replace("_", " ")
        rows.append((name, duration(parts["p50"]), duration(parts["p95"]), ""))
    waited = latency.get("retry_wait_ms")
    if waited:
        rows.append((f"before requests that were repeated, in all {duration(waited)}", "", "", ""))
    return rows


def _percentiles(name: str, latency: Mapping[str, Any]) -> tuple[str, ...]:
    cells = [name]
    for percentile in PERCENTILES:
        time = latency.get(f"{percentile}_ms")
        cells.append(NO_VALUE if time is None else duration(time))
    return tuple(cells)


def latency_chart(page: PageRun) -> Chart | None:
    """Return the cases by their latency; percentiles of the baseline are marked."""
    times = [case.latency for case in page.cases if case.latency is not None]
    marks = {}
    for percentile in PERCENTILES[:2]:
        time = page.latency_before.get(f"{percentile}_ms")
        if time is not None:
            marks[f"{percentile} before"] = time
    return doubling_histogram(times, marks)


def history_charts(page: PageRun, names: Iterable[str]) -> Iterator[tuple[str, Chart]]:
    """Yield the pass rate and some metrics in the runs of the trend, each against the baseline."""
    dates = [run.timestamp[5:10] for run in page.trend]
    before: Mapping[str, Any] = page.before.metrics if page.before is not None else {}
    rates = [_pass_rate(run.outcomes, run.total) for run in page.trend]
    rate_before = _pass_rate(before.get("outcomes") or {}, before.get("total_tests", 0))
    chart = time_chart(rates, dates, rate_before, 0.1)
    if chart is not None:
        yield "pass rate", chart
    for name in names:
        mean_before = ((before.get("metrics") or {}).get(name) or {}).get("mean")
        scale = page.metrics["metrics"][name]["scale"]
        chart = time_chart(page.values_in_time(name), dates, mean_before, least_span(scale))
        if chart is not None:
            yield name, chart


def _pass_rate(outcomes: Mapping[str, int], total: int) -> float | None:
    return outcomes.get("passed", 0) / total if total else None


def slowest(page: PageRun) -> list[tuple[ListedCase, str]]:
    """Return the five slowest cases with their times."""
    timed = (case for case in page.cases if case.latency is not None)
    slowest_cases = heapq.nlargest(5, timed, lambda case: case.latency or 0)
    return [(case, duration(case.latency or 0)) for case in slowest_cases]


def cost_rows(page: PageRun) -> list[tuple[str, str]]:
    cost = page.metrics["volatile"].get("cost") or {}
    unknown = "not known"
    dollars = cost.get("judge_total_usd")
    tokens = cost.get("judge_total_tokens")
    saved = cost.get("judge_saved_usd")
    rows = [
        ("judge", unknown if dollars is None else f"${dollars:.4f}"),
        ("tokens of the judge", unknown if tokens is None else f"{tokens:,}"),
    ]
    if "judge_requests" in cost:
        rows.append(("requests to the judge", f"{cost['judge_requests']:,}"))
    if "judge_tokens_cached" in cost:
        rows.append(("of these cached there", f"{cost['judge_tokens_cached']:,}"))
    if saved:
        rows.append(("saved by the cache", f"${saved:.4f}"))
    usage = cost.get("target_usage") or {}
    rows += [(f"system: {name}", f"{value:,.6g}") for name, value in usage.items()]
    return rows


# ── configuration, definitions ─────────────────────────────────────────────────────────────────────────────


def configuration(page: PageRun) -> list[tuple[str, str]]:
    """Return every setting that can explain a result, by name."""
    if not page.config:
        return []
    return [(name, setting_text(value)) for name, value in flat_settings(page.config).items()]


class DefinitionText(NamedTuple):
    """A metric's definition in parts, as `rageval metrics NAME` shows it."""

    name: str
    layer: str
    values: str
    definition: str
    details: str
    rule: str
    source: str
    gates: Sequence[str]


def definitions_of(metrics: Iterable[str], registry: Registry) -> list[DefinitionText]:
    """Return the definitions of these metrics, each once whatever its cut-offs, as far as they are registered."""
    names = dict.fromkeys(name.partition("@")[0] for name in metrics)
    return [_definition_of(registry[name]) for name in names if name in registry]


def _definition_of(metric: Metric) -> DefinitionText:
    parts = doc_parts(metric)
    title = LAYERS[metric.layer]
    return DefinitionText(
        name=metric.name,
        layer=metric.layer if metric.layer == title else f"{metric.layer} {title}",
        values=f"{metric.values}, {metric.better} is better",
        definition=parts.definition or "A metric of the project's own, without a description.",
        details=parts.details,
        rule=parts.rule,
        source=parts.source,
        gates=metric.gates,
    )
