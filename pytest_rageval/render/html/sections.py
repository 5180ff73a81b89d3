"""The sections of the HTML report below its first screen, as rows: heat, metrics, distributions, speed, history."""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_rageval.comparison.gate_lines import GateState, gate_line, gate_state
from pytest_rageval.comparison.layer_table import LayerCell, layer_rows
from pytest_rageval.comparison.listed_case import ListedCase
from pytest_rageval.comparison.pairing import by_category
from pytest_rageval.comparison.severity import shares_of
from pytest_rageval.render.html.figures import (
    Chart,
    doubling_histogram,
    time_chart,
)
from pytest_rageval.render.html.judge_section import JudgeRow, judge_rows
from pytest_rageval.render.html.metric_rows import (
    MetricLayer,
    distributions,
    interval_text,
    measured_metrics,
    metric_layers,
    unscored,
)
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.render.html.turn_charts import TurnChart, turn_charts
from pytest_rageval.runs.columns import Column
from pytest_rageval.runs.config_diff import flat_settings, setting_text
from pytest_rageval.runs.history import PastRun
from pytest_rageval.stats.clusters import Clusters, clustered_columns
from pytest_rageval.stats.intervals import cases_with_values, mean_of_means_interval
from pytest_rageval.text import NO_VALUE, change, duration, score_text
from pytest_rageval.views.compared_metrics import (
    METRIC_COLUMNS,
    MetricColumn,
)
from pytest_rageval.views.comparison import settings_table, versions_table
from pytest_rageval.views.operations import operation_figures
from pytest_rageval.views.parts import FigureTable, TableRow
from pytest_rageval.views.turns import turns_table

SHOWN_CATEGORIES = 30
SHADES_OF_A_SCALE = 30
"""The darkest shade of a change stands for about a third of the scale."""
PERCENTILES = ("p50", "p95")


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


Columns = dict[str, Column]
"""The score of each case by metric, None for a case without one."""


@dataclass(frozen=True, slots=True)
class Sections:
    """What the HTML report shows below the list of cases."""

    heat_layers: Sequence[str]
    """The layers of the table of categories."""
    heat_rows: Sequence[tuple[str, int, list[HeatCell | None]]]
    """Each category with its number of cases and a cell for each layer."""
    turns: FigureTable | None
    """The metrics of conversations by the number of the turn; None without any."""
    turn_charts: Sequence[TurnChart]
    """The same as charts."""
    moved: Sequence[MetricLayer]
    """The metrics that moved; without a comparison, all with a value."""
    unmoved: Sequence[MetricLayer]
    """The metrics that did not move."""
    unmoved_metrics: int
    """The number of metrics that did not move."""
    unscored: Sequence[str]
    """The metrics without a value in this run."""
    gates: Sequence[tuple[GateState, str]]
    """Whether each gate of the run passes, with its line."""
    distributions: Sequence[tuple[str, int, Chart]]
    """Histograms of the metrics that moved."""
    unmoved_distributions: Sequence[tuple[str, int, Chart]]
    """Histograms of the other metrics."""
    operations: FigureTable
    """What asking took, with the other run."""
    latency_rows: Sequence[tuple[str, ...]]
    """Percentiles of the phases of asking."""
    latency_chart: Chart | None
    """The cases by their latency."""
    slowest: Sequence[tuple[ListedCase, str]]
    """The slowest cases with their times."""
    cost_rows: Sequence[tuple[str, str]]
    """The cost by kind."""
    judge_rows: Sequence[JudgeRow]
    """Who judged, and how far that judge can be trusted."""
    history: Chart | None
    """The pass rate in the last runs of the same cases."""
    changed: FigureTable
    """The settings that differ from the other run."""
    configuration: Sequence[tuple[str, str]]
    """Every setting by name."""
    versions: FigureTable | None
    """The versions of both runs; None without another run."""
    change_columns: Sequence[MetricColumn]
    """The figures of a compared metric."""


def report_sections(page: PageRun) -> Sections:
    """Return the content of the sections."""
    heat_layers, heat_rows = heat(page)
    moved, unmoved = measured_metrics(page)
    versions = None
    if page.comparison:
        versions = versions_table(page.comparison)
    changed = settings_table(page.comparison or {"configuration": ()})
    change_columns = [column for column in METRIC_COLUMNS if column.page_head]
    return Sections(
        heat_layers=heat_layers,
        heat_rows=heat_rows,
        turns=turns_table(page.metrics),
        turn_charts=turn_charts(page.metrics),
        moved=metric_layers(page, moved),
        unmoved=metric_layers(page, unmoved),
        unmoved_metrics=len(unmoved),
        unscored=unscored(page),
        gates=list(_gates(page)),
        distributions=list(distributions(page, moved)),
        unmoved_distributions=list(distributions(page, unmoved)),
        operations=operations_table(page),
        latency_rows=latency_rows(page),
        latency_chart=latency_chart(page),
        slowest=slowest(page),
        cost_rows=cost_rows(page),
        judge_rows=judge_rows(page),
        history=history_chart(page),
        changed=changed,
        configuration=configuration(page),
        versions=versions,
        change_columns=change_columns,
    )


def _gates(page: PageRun) -> Iterator[tuple[GateState, str]]:
    """Yield whether each gate of the run passes, with its line."""
    is_partial = page.metrics["partial"]
    for gate in page.gates:
        yield gate_state(gate, is_partial=is_partial), gate_line(gate, is_partial=is_partial)


# ── heat ──────────────────────────────────────────────────────────────────────────────────────────────────────


def heat(page: PageRun) -> tuple[list[str], list[tuple[str, int, list[HeatCell | None]]]]:
    """Return the layers, and for each category (the largest first) its number of cases and a cell for each layer."""
    compared = page.compared
    if compared is not None and page.both is not None and page.before is not None:
        categories = page.side.categories or page.before.categories
        compared = {**compared, "by_category": by_category(page.both, categories, {})}
    scores = _normalised_scores(page)
    clusters = _clusters_by_category(page)
    rows = []
    for row in layer_rows(page.metrics, compared)[:SHOWN_CATEGORIES]:
        of_row = clusters.get(row.name)
        cells = [_cell(cell, scores.get((row.name, layer), {}), of_row) for layer, cell in row.cells.items()]
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
    for name in sorted(columns.keys() & shares.keys()):
        share = shares[name]
        column = columns[name]
        layer = described[name]["layer"]
        if share is not float:  # most scores are shares already
            column = [None if score is None else share(score) for score in column]
        for category, chosen in places.items():
            of_cell = by_cell.setdefault((category, layer), {})
            of_cell[name] = [column[place] for place in chosen]
    return by_cell


def _clusters_by_category(page: PageRun) -> dict[str, list[Hashable]]:
    """Return the conversation of each case of each category; empty if no case is a turn."""
    if not any(case.conversation for case in page.cases):
        return {}
    clusters: dict[str, list[Hashable]] = {}
    for place, case in enumerate(page.cases):
        cluster: Hashable = place
        if case.conversation:
            cluster = (case.file, case.conversation)
        clusters.setdefault(case.category, []).append(cluster)
    return clusters


def _cell(cell: LayerCell, columns: Columns, clusters: Clusters | None) -> HeatCell | None:
    """Return a cell of the heat map. `clusters`: the conversation of each case; None if no case is a turn."""
    if cell.score is None:
        return None
    value = score_text(cell.score)
    n = cases_with_values(columns)
    # Turns of a conversation depend on each other: taken for single cases, the interval would be too narrow.
    if clusters is not None:
        columns = clustered_columns(columns, clusters)
    interval = interval_text(mean_of_means_interval(columns))
    moved = change(cell.change)
    if moved in ("=", NO_VALUE):
        return HeatCell(value, interval, n, way="", shade=0, change="")
    way = "fall" if moved.startswith("-") else "rise"
    # Rounded up: the smallest change that is shown has a colour.
    shade = min(math.ceil(abs(cell.change or 0) * SHADES_OF_A_SCALE), 9)
    return HeatCell(value, interval, n, way, shade, moved)


# ── speed ──────────────────────────────────────────────────────────────────────────────────────


def latency_rows(page: PageRun) -> list[tuple[str, ...]]:
    """Return phase, p50 and p95 of the parts of asking, and how long repeated requests were waited for."""
    latency = page.metrics["volatile"].get("latency") or {}
    if latency.get("p50_ms") is None:
        return []
    rows: list[tuple[str, ...]] = []
    timed = page.operations.get("latency_ms")
    is_enough = timed is not None and timed["p95"] is not None
    for phase, parts in (latency.get("phases") or {}).items():
        name = phase.removesuffix("_ms").replace("_", " ")
        p95 = duration(parts["p95"]) if is_enough else NO_VALUE
        rows.append((name, duration(parts["p50"]), p95))
    waited = latency.get("retry_wait_ms")
    if waited:
        rows.append((f"before requests that were repeated, in all {duration(waited)}", "", ""))
    return rows


def operations_table(page: PageRun) -> FigureTable:
    """Return what asking took, an operation a row, with the mean of the other run if both are of the same cases."""
    heads: tuple[str, ...] = ()
    rows = []
    before = page.operations_before
    for name, operation in page.operations.items():
        figures = dict(operation_figures(operation))
        if before:
            earlier = before.get(name)
            figures["mean before"] = score_text(earlier and earlier["mean"], operation["unit"])
        heads = ("operation", *figures)
        rows.append(TableRow((name, *figures.values())))
    return FigureTable(heads, tuple(rows), what="operations")


def latency_chart(page: PageRun) -> Chart | None:
    """Return the cases by their latency; percentiles of the baseline are marked."""
    times = [case.latency_ms for case in page.cases if case.latency_ms is not None]
    marks = {}
    timed = page.operations_before.get("latency_ms") or {}
    for percentile in PERCENTILES:
        time = timed.get(percentile)
        if time is not None:
            marks[f"{percentile} before"] = time
    return doubling_histogram(times, marks)


def history_chart(page: PageRun) -> Chart | None:
    """Return the pass rate in the last runs of the same cases, against the other run; None for fewer than two."""
    dates = [run.timestamp[5:10] for run in page.trend]
    before: Mapping[str, Any] = page.before.metrics if page.before is not None else {}
    rate_before = _pass_rate(before.get("outcomes") or {}, before.get("total_tests", 0))
    # The rate before is of other cases.
    if not page.is_of_same_cases:
        rate_before = None
    return time_chart(pass_rates(page.trend), dates, rate_before, 0.1)


def pass_rates(runs: Iterable[PastRun]) -> list[float | None]:
    """Return the share of the cases that passed in each run."""
    return [_pass_rate(run.outcomes, run.total) for run in runs]


def _pass_rate(outcomes: Mapping[str, int], total: int) -> float | None:
    return outcomes.get("passed", 0) / total if total else None


def slowest(page: PageRun) -> list[tuple[ListedCase, str]]:
    """Return the five slowest cases with their times."""
    timed = (case for case in page.cases if case.latency_ms is not None)
    slowest_cases = heapq.nlargest(5, timed, lambda case: case.latency_ms or 0)
    return [(case, duration(case.latency_ms or 0)) for case in slowest_cases]


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


# ── configuration ───────────────────────────────────────────────────────────────────────────────────────────


def configuration(page: PageRun) -> list[tuple[str, str]]:
    """Return every setting that can explain a result, by name."""
    if not page.config:
        return []
    return [(name, setting_text(value)) for name, value in flat_settings(page.config).items()]
