"""The metrics of a comparison: which moved, by how much, and with which verdict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from pytest_rageval.comparison.changes import gain
from pytest_rageval.comparison.gate_lines import p_text, paired_cases
from pytest_rageval.io.suggestions import and_more, listed
from pytest_rageval.text import NO_VALUE, change, counted, score_text
from pytest_rageval.views.operations import operations_section
from pytest_rageval.views.parts import Block, FigureTable, Line, TableRow, Tone

Content = Mapping[str, Any]
VERDICTS = (
    "regressed",
    "beyond tolerance, may be noise",
    "unmeasured",
    "significant, within tolerance",
    "improved",
    "new",
    "incomparable",
    "unchanged",
)
"""Verdicts in the order of display."""
QUIET = ("unchanged", "new", "incomparable")
"""Verdicts of metrics that need not be shown."""
SHOWN_GROUPS = 3


class MetricColumn(NamedTuple):
    """A figure of a compared metric."""

    head: str
    text: Callable[[Content], str]
    """Gives the figure of a metric."""
    other_head: str | None = None
    """The heading in the HTML report if it is another; '' if the report shows the figure in its own way."""

    @property
    def page_head(self) -> str:
        return self.head if self.other_head is None else self.other_head


def _after(metric: Content) -> str:
    score = score_text(metric["after"], metric.get("unit"))
    _, end = metric["scale"]
    if metric["after"] is None or end == 1 or "unit" in metric:
        return score
    return f"{score} of {end:g}"


def _interval(metric: Content) -> str:
    low, high = metric["ci"] or (None, None)
    if low is None or high is None:
        return NO_VALUE
    unit = metric.get("unit")
    if unit is not None:
        return f"{change(low, unit)} to {change(high, unit)}"
    return f"{low:+.3f} to {high:+.3f}"


def shown_change(metric: Content) -> str:
    """Return the change of a compared metric, or in how many cases it is no longer measured."""
    lost = metric.get("lost")
    if lost and metric["verdict"] == "unmeasured":
        return f"lost in {counted(lost, 'case')}"
    return change(metric["delta"], metric.get("unit"))


def _p_value(metric: Content) -> str:
    p = metric["p_adjusted"]
    return NO_VALUE if p is None else p_text(p)


METRIC_COLUMNS = (
    MetricColumn("before", lambda metric: score_text(metric["before"], metric.get("unit"))),
    MetricColumn("after", _after, ""),
    MetricColumn("change", shown_change),
    MetricColumn("95 %", _interval, "95 % of the change"),
    MetricColumn("p", _p_value),
    MetricColumn("n", paired_cases, ""),
)
"""The figures of a compared metric, in every face."""


class ComparedMetric(NamedTuple):
    """A metric of a comparison."""

    name: str
    label: str
    """Its name, with that of the other run if it differs."""
    figures: Mapping[str, str]
    """The figures by their heading."""
    verdict: str
    tone: Tone
    worsened: str
    """The verb for a worse score: fell or rose."""


def compared_metric(name: str, metric: Content) -> ComparedMetric:
    """Return the view of a metric of a comparison."""
    figures = {column.head: column.text(metric) for column in METRIC_COLUMNS}
    worsened = "fell" if metric["better"] == "higher" else "rose"
    return ComparedMetric(name, metric["label"], figures, metric["verdict"], tone_of(metric), worsened)


def tone_of(metric: Content) -> Tone:
    """Return the tone of a metric's verdict."""
    share = gain(metric["delta"], metric)
    if metric["verdict"] == "unmeasured":
        return "doubtful"
    if share is None or metric["verdict"] in QUIET:
        return "plain"
    if metric["verdict"] in ("regressed", "improved"):
        return "better" if share > 0 else "worse"
    return "doubtful" if share < 0 else "plain"


def moved_metrics(content: Content) -> list[ComparedMetric]:
    """Return the metrics that moved or have a verdict to show, the worst verdict first."""
    metrics: Mapping[str, Content] = content["metrics"]

    def worst_first(name: str) -> tuple[int, float, str]:
        metric = metrics[name]
        return VERDICTS.index(metric["verdict"]), gain(metric["delta"], metric) or 0, name

    names = [name for name, metric in metrics.items() if _is_to_show(name, metric)]
    return [compared_metric(name, metrics[name]) for name in sorted(names, key=worst_first)]


def _is_to_show(name: str, metric: Content) -> bool:
    is_moved = shown_change(metric) not in ("=", NO_VALUE)
    is_renamed = metric["label"] != name
    return metric["verdict"] not in QUIET or is_moved or is_renamed


def metrics_section(content: Content) -> Iterator[Block]:
    """Yield the metrics that moved, and how many did not."""
    heads = ("metric", *(column.head for column in METRIC_COLUMNS), "verdict")
    moved = moved_metrics(content)
    if moved:
        rows = tuple(_metric_row(metric) for metric in moved)
        yield FigureTable(heads, rows, "Metrics", "metrics", has_verdicts=True, least=4)
    yield from _unmoved_line(content, {metric.name for metric in moved})
    yield from map(Line, fallen_lines(content))
    yield from operations_section(content.get("operations") or {})


def _unmoved_line(content: Content, moved: Collection[str]) -> Iterator[Line]:
    """Yield how many other metrics did not move, how many have no value at all, and how many only one to compare."""
    unmoved = 0
    uncompared = 0
    unmeasured = 0
    for name, metric in content["metrics"].items():
        if name in moved:
            continue
        if metric["delta"] is not None:
            unmoved += 1
        elif metric["before"] is None and metric["after"] is None:
            unmeasured += 1
        else:
            uncompared += 1
    parts = []
    if unmoved:
        # Without any that moved, they are no more of them.
        parts.append(f"{counted(unmoved, 'more metric' if moved else 'metric')} did not move")
    if uncompared:
        parts.append(f"{uncompared:,} could not be compared")
    if unmeasured:
        have = "has" if unmeasured == 1 else "have"
        parts.append(f"{unmeasured:,} {have} no value in either run")
    if parts:
        yield Line("; ".join(parts))


def _metric_row(metric: ComparedMetric) -> TableRow:
    return TableRow((metric.label, *metric.figures.values(), metric.verdict), metric.tone)


def fallen_lines(content: Content) -> list[str]:
    """Return a line for each group of metrics that got worse in the same cases."""
    groups = content.get("fallen", ())
    lines = []
    for group in groups[:SHOWN_GROUPS]:
        names = group["metrics"]
        lines.append(f"the same {group['cases']:,} cases got worse in {len(names)} metrics: {listed(names, 3)}")
    if len(groups) > SHOWN_GROUPS:
        lines.append(and_more(len(groups) - SHOWN_GROUPS, "such groups"))
    return lines
