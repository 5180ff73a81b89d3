"""The sections of the HTML report below its first screen, as rows: heat, metrics, distributions, speed, judge."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.check.calibration_record import CalibrationRecord
from pytest_rageval.comparison.case_list import Fall, ListedCase
from pytest_rageval.comparison.layer_table import LayerCell, layer_rows
from pytest_rageval.comparison.pairing import by_category
from pytest_rageval.comparison.severity import shares_of
from pytest_rageval.metrics.registry import LAYERS, Registry, doc_parts
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
from pytest_rageval.runs.judge_notes import failure_note
from pytest_rageval.stats.intervals import cases_with_values, mean_of_means_interval
from pytest_rageval.text import NO_VALUE, change, counted, denominator, duration, percent, score_text
from pytest_rageval.views.comparison import ComparedMetric, compared_metric
from pytest_rageval.views.parts import Tone

SHOWN_CATEGORIES = 30
SHOWN_CAUSES = 10
SHADES_OF_A_SCALE = 30
"""The darkest shade of a change stands for about a third of the scale."""
CULPRITS = ("worse", "doubtful")
PERCENTILES = ("p50", "p95", "p99")


class HeatCell(NamedTuple):
    """A layer's mean in a category as 0 to 1: its text, interval and cases, and its change, which colours the cell.

    `way` is `fall` or `rise`, '' without a change; `shade` from 1 to 9 is its size, 0 for none.
    """

    value: str
    interval: str
    n: int
    way: str
    shade: int
    change: str


class MetricRow(NamedTuple):
    """A metric of the table or a tile of the first screen, with what moved. `compared`: None without a comparison.

    top       the end of the scale, if it is not 1
    n         the cases behind the mean; None for a figure that is no metric
    why       why no change is shown
    gate      whether the run's gate on it passes, with its line; only of a tile
    is_judged_by_model
              whether a model gave the score, which the name of `reference_match` hides
    """

    name: str
    value: str
    figure: IntervalFigure | None = None
    interval: str = ""
    n: int | None = None
    top: str = ""
    better: str = "higher"
    denominator: str = ""
    compared: ComparedMetric | None = None
    change_figure: IntervalFigure | None = None
    tone: Tone = "plain"
    line: Spark | None = None
    why: str = ""
    change: str = ""
    gate: tuple[bool | None, str] | None = None
    is_judged_by_model: bool = False


class Causes(NamedTuple):
    """The cases that fell in a metric: how many, and the first with their scores before and after."""

    fallen: int
    cases: Sequence[tuple[ListedCase, str, str]]


Columns = dict[str, Column]
"""The score of each case by metric, None for a case without one."""


# ── heat ──────────────────────────────────────────────────────────────────────────────────────────────────────


def heat(page: PageRun) -> tuple[list[str], list[tuple[str, int, list[HeatCell | None]]]]:
    """Return the layers, and for each category (the largest first) its number of cases and a cell for each layer."""
    compared = page.compared
    if compared is not None and page.both is not None and page.before is not None:
        compared = {
            **compared,
            "by_category": by_category(page.both, page.side.categories or page.before.categories, {}),
        }
    rows, scores = layer_rows(page.metrics, compared)[:SHOWN_CATEGORIES], _normalised_scores(page)
    return list(page.metrics["by_layer"]), [
        (row.name, row.cases, [_cell(cell, scores.get((row.name, layer), {})) for layer, cell in row.cells.items()])
        for row in rows
    ]


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
        share, column = shares[name], columns[name]
        if share is not float:  # most scores are shares already
            column = [None if score is None else share(score) for score in column]
        for category, chosen in places.items():
            by_cell.setdefault((category, described[name]["layer"]), {})[name] = list(map(column.__getitem__, chosen))
    return by_cell


def _cell(cell: LayerCell, columns: Columns) -> HeatCell | None:
    if cell.score is None:
        return None
    moved = change(cell.change)
    way = "" if moved in ("=", NO_VALUE) else "fall" if moved.startswith("-") else "rise"
    shade = min(math.ceil(abs(cell.change or 0) * SHADES_OF_A_SCALE), 9) if way else 0
    interval = interval_text(mean_of_means_interval(columns))
    return HeatCell(score_text(cell.score), interval, cases_with_values(columns), way, shade, moved if way else "")


# ── metrics ───────────────────────────────────────────────────────────────────────────────────────────────────


def metric_layers(page: PageRun) -> list[tuple[str, str, str, list[tuple[MetricRow, Causes | None]]]]:
    """Return the name, title, score and metrics of each layer; a metric that got worse with its causes."""
    described = page.metrics["metrics"]
    layers = []
    for layer, title in LAYERS.items():
        names = sorted(name for name, metric in described.items() if metric["layer"] == layer)
        rows = [metric_row(name, page) for name in names if described[name]["mean"] is not None]
        if rows:
            score = (page.metrics["by_layer"].get(layer) or {}).get("score")
            falls = [page.falls.get(row.name, ()) if row.tone in CULPRITS else () for row in rows]
            causes = [Causes(len(fallen), _first(fallen, page)) if fallen else None for fallen in falls]
            layers.append((layer, title, score_text(score), list(zip(rows, causes, strict=True))))
    return layers


def _first(falls: Sequence[Fall], page: PageRun) -> list[tuple[ListedCase, str, str]]:
    cases = ((page.cases[fall.number], fall.before, fall.after) for fall in falls[:SHOWN_CAUSES])
    return [(case, score_text(before), score_text(after)) for case, before, after in cases]


def unscored(page: PageRun) -> list[str]:
    """Return the metrics without a value in this run."""
    return sorted(name for name, metric in page.metrics["metrics"].items() if metric["mean"] is None)


def metric_row(name: str, page: PageRun) -> MetricRow:
    """Return a metric of the run with its change."""
    metric = page.metrics["metrics"][name]
    moved = page.compared["metrics"].get(name) if page.compared else None
    compared, top = compared_metric(name, moved) if moved else None, metric["scale"][1]
    return MetricRow(
        name=name,
        value=score_text(metric["mean"]),
        figure=interval_figure(metric["mean"], metric.get("ci"), metric["scale"]),
        interval=interval_text(metric.get("ci")),
        n=metric.get("n_scored"),
        top="" if top == 1 else f" of {top:g}",
        better=metric["better"],
        denominator=denominator(metric),
        compared=compared,
        change_figure=change_figure(moved["delta"], moved["ci"], metric["scale"]) if moved else None,
        tone=compared.tone if compared else "plain",
        line=spark(page.values_in_time(name), least_span(metric["scale"])),
        why=moved["why"] if moved else "",
        change=change(moved["delta"]) if moved and moved["delta"] is not None else "",
        is_judged_by_model=_is_judged_by_model(name, page),
    )


def _is_judged_by_model(name: str, page: PageRun) -> bool:
    judge = page.metrics.get("judge")
    return name.partition("@")[0] == "reference_match" and judge is not None and not judge["heuristic"]


def interval_text(ci: Sequence[float | None] | None) -> str:
    """Return `0.82 to 0.95`; '' without an interval."""
    low, high = ci or (None, None)
    return "" if low is None or high is None else f"{low:.2f} to {high:.2f}"


# ── distributions, speed ──────────────────────────────────────────────────────────────────────────────────────


def distributions(page: PageRun) -> Iterator[tuple[str, int, Chart]]:
    """Return histograms of the metrics that have more than two values, with those of the baseline."""
    described, columns = page.metrics["metrics"], page.listed.scores
    before = page.before_columns
    for name in sorted(described, key=lambda name: (list(LAYERS).index(described[name]["layer"]), name)):
        values, was = ([score for score in each.get(name, ()) if score is not None] for each in (columns, before))
        if len({*values}) > 2:
            yield name, len(values), histogram(values, described[name]["scale"], was)


def latency_rows(page: PageRun) -> list[tuple[str, ...]]:
    """Return phase, p50, p95 and p99 of asking, and p50 and p95 of its parts."""
    latency = page.metrics["volatile"].get("latency") or {}
    if latency.get("p50_ms") is None:
        return []
    rows = [_percentiles("asking, in all", latency)]
    if before := page.latency_before:
        rows.append(_percentiles("the same before", before))
    for phase, parts in (latency.get("phases") or {}).items():
        rows.append((phase.removesuffix("_ms").replace("_", " "), duration(parts["p50"]), duration(parts["p95"]), ""))
    if waited := latency.get("retry_wait_ms"):
        rows.append((f"before requests that were repeated, in all {duration(waited)}", "", "", ""))
    return rows


def _percentiles(name: str, latency: Mapping[str, Any]) -> tuple[str, ...]:
    times = (latency.get(f"{percentile}_ms") for percentile in PERCENTILES)
    return name, *(NO_VALUE if time is None else duration(time) for time in times)


def latency_chart(page: PageRun) -> Chart | None:
    """Return the cases by their latency; percentiles of the baseline are marked."""
    times = [case.latency for case in page.cases if case.latency is not None]
    before = page.latency_before
    marks = {f"{name} before": time for name in PERCENTILES[:2] if (time := before.get(f"{name}_ms")) is not None}
    return doubling_histogram(times, marks)


def history_charts(page: PageRun, names: Iterable[str]) -> Iterator[tuple[str, Chart]]:
    """Yield the pass rate and some metrics in the runs of the trend, each against the baseline."""
    dates = [run.timestamp[5:10] for run in page.trend]
    described, before = page.metrics["metrics"], page.before.metrics if page.before is not None else {}
    rates = [_pass_rate(run.outcomes, run.total) for run in page.trend]
    was = _pass_rate(before.get("outcomes") or {}, before.get("total_tests", 0))
    charts = [("pass rate", time_chart(rates, dates, was, 0.1))]
    for name in names:
        mean = ((before.get("metrics") or {}).get(name) or {}).get("mean")
        charts.append((name, time_chart(page.values_in_time(name), dates, mean, least_span(described[name]["scale"]))))
    yield from ((name, chart) for name, chart in charts if chart is not None)


def _pass_rate(outcomes: Mapping[str, int], total: int) -> float | None:
    return outcomes.get("passed", 0) / total if total else None


def slowest(page: PageRun) -> list[tuple[ListedCase, str]]:
    """Return the five slowest cases with their times."""
    timed = (case for case in page.cases if case.latency is not None)
    return [(case, duration(case.latency or 0)) for case in heapq.nlargest(5, timed, lambda case: case.latency or 0)]


def cost_rows(page: PageRun) -> list[tuple[str, str]]:
    cost = page.metrics["volatile"].get("cost") or {}
    unknown = "not known"
    dollars, tokens, saved = (cost.get(f"judge_{name}") for name in ("total_usd", "total_tokens", "saved_usd"))
    rows = [
        ("judge", unknown if dollars is None else f"${dollars:.4f}"),
        ("tokens of the judge", unknown if tokens is None else f"{tokens:,}"),
    ]
    for name, shown in (("judge_requests", "requests to the judge"), ("judge_tokens_cached", "of these cached there")):
        if name in cost:
            rows.append((shown, f"{cost[name]:,}"))
    if saved:
        rows.append(("saved by the cache", f"${saved:.4f}"))
    usage = cost.get("target_usage") or {}
    return rows + [(f"system: {name}", f"{value:,.6g}") for name, value in usage.items()]


# ── judge, history, configuration ─────────────────────────────────────────────────────────────────────────────


class JudgeRow(NamedTuple):
    """A fact about the judge; `remedy`: the command that measures it if it is not known."""

    name: str
    value: str
    remedy: str = ""


def judge_rows(page: PageRun) -> list[JudgeRow]:
    """Return rows on who judged, and on how far that judge can be trusted."""
    judge = page.metrics.get("judge")
    if not judge:
        return []
    kind = (
        "a heuristic without a model: its scores gate only where a gate was written"
        if judge["heuristic"]
        else "a model"
    )
    hits = page.metrics["volatile"].get("cache_hit_rate")
    prompts = ", ".join(f"{name} {version}" for name, version in judge["prompt_versions"].items())
    failures = failure_note(page.metrics.get("judge_errors") or ())
    checked = JudgeRow("spot check by a second judge", "not made", "rageval judge --spot-check makes one")
    if spot := (page.metrics.get("aggregate_metrics") or {}).get("judge_reliability"):
        share, judgements = score_text(spot["disagreement_rate"]), counted(spot["spot_check_n"], "judgement")
        checked = JudgeRow(checked.name, f"disagrees with {share} of {judgements}")
    agreement = [
        JudgeRow(f"agreement with people: {record.metric}", _agreement(record, judge["prompt_versions"]))
        for record in page.calibrations
    ]
    return [
        JudgeRow("judge", judge["model"]),
        JudgeRow("kind", kind),
        *([JudgeRow("failed judgements", failures)] if failures else ()),
        JudgeRow("prompts", prompts or "–"),
        *(agreement or [JudgeRow("agreement with people", "not measured", "rageval calibrate measures it")]),
        checked,
        JudgeRow("judgements from the cache", "–" if hits is None else percent(hits)),
    ]


def _agreement(record: CalibrationRecord, prompts: Mapping[str, str]) -> str:
    """Return how far the judge agreed with people when that was last measured."""
    share = f"{record.agreement:.2f} ({interval_text(record.interval)}) of {counted(record.answers, 'answer')}"
    kappa = "" if record.cohens_kappa is None else f", kappa {record.cohens_kappa:.2f}"
    prompt = prompts.get(record.metric)
    other = prompt is not None and record.prompt_versions and prompt not in record.prompt_versions
    caution = "; the rubric was worded otherwise then" if other else ""
    when = f"{record.labels}, {record.calibrated:%Y-%m-%d}"
    return f"{share} on the same side of {record.gate}{kappa}: {record.verdict} ({when}){caution}"


def configuration(page: PageRun) -> list[tuple[str, str]]:
    """Return every setting that can explain a result, by name."""
    return [(name, setting_text(value)) for name, value in flat_settings(page.config).items()] if page.config else []


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
    texts = []
    for metric in (registry[name] for name in names if name in registry):
        parts, title = doc_parts(metric), LAYERS[metric.layer]
        layer = metric.layer if metric.layer == title else f"{metric.layer} {title}"
        values = f"{metric.values}, {metric.better} is better"
        what = parts.definition or "A metric of the project's own, without a description."
        texts.append(
            DefinitionText(metric.name, layer, values, what, parts.details, parts.rule, parts.source, metric.gates)
        )
    return texts
