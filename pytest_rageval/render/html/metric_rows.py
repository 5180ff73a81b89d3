"""The metrics of a run in the HTML report: rows with changes, the cases that fell, distributions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.comparison.gate_lines import GateState
from pytest_rageval.comparison.listed_case import ListedCase
from pytest_rageval.io.suggestions import listed
from pytest_rageval.metrics.registry import LAYERS, Registry
from pytest_rageval.render.html.environment import metric_tip
from pytest_rageval.render.html.figures import (
    Chart,
    IntervalFigure,
    Spark,
    change_figure,
    histogram,
    interval_figure,
    least_span,
    spark,
)
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.text import NO_VALUE, change, denominator, score_text
from pytest_rageval.views.compared_metrics import (
    ComparedMetric,
    compared_metric,
    moved_metrics,
    shown_change,
)
from pytest_rageval.views.parts import Tone

SHOWN_CAUSES = 10
CULPRITS = ("worse", "doubtful")
"""Tones of metrics that are shown with the cases that fell."""


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
    gate: tuple[GateState, str] | None = None
    """Whether the run's gate on it passes, with its line; only of a tile."""
    is_judged_by_model: bool = False
    """A model gave the score, which the name of `reference_match` hides."""
    tip: str = ""
    """The definition of the metric."""
    fallen: int = 0
    """The number of cases that fell in it."""


class Causes(NamedTuple):
    """The cases that fell in a metric."""

    fallen: int
    """Their number."""
    cases: Sequence[tuple[ListedCase, str, str]]
    """The first of them, with their scores before and after."""


class MetricLayer(NamedTuple):
    """The metrics of a layer."""

    name: str
    title: str
    score: str
    change: str
    """The change over what both runs share; – if they share nothing, '' without a comparison."""
    tone: Tone
    why: str
    """Why the layer has no change, or which metrics its change leaves out; '' if it has all."""
    rows: Sequence[tuple[MetricRow, Causes | None]]
    """The metrics; one that got worse with the cases that fell in it."""


def metric_layers(page: PageRun, names: Collection[str]) -> list[MetricLayer]:
    """Return the layers with those of their metrics that are named."""
    described = page.metrics["metrics"]
    layers = []
    for layer, title in LAYERS.items():
        rows = []
        # By name: the same place in every report, whatever was measured.
        for name in sorted(name for name in names if described[name]["layer"] == layer):
            row = metric_row(name, page)
            rows.append((row, _causes(row, page)))
        if rows:
            score = (page.metrics["by_layer"].get(layer) or {}).get("score")
            moved = (page.compared or {}).get("layers", {}).get(layer, {"delta": None, "why": ""})
            why = moved["why"]
            if "without" in moved:
                why = f"over the metrics of both runs, without {listed(moved['without'])}"
            delta = moved["delta"]
            text = change(delta) if page.compared else ""
            tone: Tone = "plain"
            # By the text: a change that rounds to nothing gets no colour.
            if text not in ("", "=", NO_VALUE):
                tone = "better" if delta > 0 else "worse"
            layers.append(MetricLayer(layer, title, score_text(score), text, tone, why, rows))
    return layers


def measured_metrics(page: PageRun) -> tuple[list[str], list[str]]:
    """Return the metrics with a value that moved since the other run, and the others; without one all have moved."""
    measured = [name for name, metric in page.metrics["metrics"].items() if metric["mean"] is not None]
    if page.compared is None:
        return measured, []
    shown = {metric.name for metric in moved_metrics(page.compared)}
    moved = [name for name in measured if name in shown]
    return moved, [name for name in measured if name not in shown]


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
    unit = metric.get("unit")
    scale = metric["scale"] if unit is None else amounts_scale(metric)
    row = MetricRow(
        name=name,
        value=score_text(metric["mean"], unit),
        figure=interval_figure(metric["mean"], metric.get("ci"), scale),
        interval=interval_text(metric.get("ci"), unit),
        n=metric.get("n_scored"),
        top="" if unit is not None or scale[1] == 1 else f" of {scale[1]:g}",
        better=metric["better"],
        denominator=denominator(metric),
        line=spark(page.values_in_time(name), least_span(scale)),
        is_judged_by_model=_is_judged_by_model(name, page),
        tip=_tip(name, page.registry),
        fallen=len(page.falls.get(name, ())),
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
        change="" if moved["delta"] is None else shown_change(moved),
    )


def amounts_scale(metric: Mapping[str, Any]) -> Sequence[float]:
    """Return the room in which amounts are drawn: from 0 to the largest of mean, interval and values."""
    _, high = metric.get("ci") or (None, None)
    known = [value for value in (metric["mean"], high, metric.get("max")) if value is not None]
    # An amount has no end of its scale; where all are 0, the room is 1.
    return 0.0, max([*known, 0.0]) or 1.0


def _tip(name: str, registry: Registry) -> str:
    bare = name.partition("@")[0]
    return metric_tip(registry[bare]) if bare in registry else ""


def _is_judged_by_model(name: str, page: PageRun) -> bool:
    judge = page.metrics.get("judge")
    return name.partition("@")[0] == "reference_match" and judge is not None and not judge["heuristic"]


def interval_text(ci: Sequence[float | None] | None, unit: str | None = None) -> str:
    """Return `0.82 to 0.95`; '' without an interval."""
    low, high = ci or (None, None)
    if low is None or high is None:
        return ""
    if unit is not None:
        return f"{score_text(low, unit)} to {score_text(high, unit)}"
    return f"{low:.2f} to {high:.2f}"


def distributions(page: PageRun, names: Iterable[str]) -> Iterator[tuple[str, int, Chart]]:
    """Yield histograms of the named metrics that have more than two values, with those of the baseline."""
    described = page.metrics["metrics"]
    layers = list(LAYERS)
    for name in sorted(names, key=lambda name: (layers.index(described[name]["layer"]), name)):
        values = _present(page.listed.scores.get(name, ()))
        before = _present(page.before_columns.get(name, ()))
        # Of two values, as in yes and no, the mean says all.
        if len(set(values)) > 2:
            scale = described[name]["scale"]
            if "unit" in described[name]:
                scale = 0.0, max(*values, *before)
            yield name, len(values), histogram(values, scale, before)


def _present(scores: Iterable[float | None]) -> list[float]:
    return [score for score in scores if score is not None]
