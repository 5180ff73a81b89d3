"""What asking took, as every face shows it: time, tokens and cost in their units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_rageval.text import NO_VALUE, change, counted, duration, score_text
from pytest_rageval.views.parts import FigureTable, Line, TableRow

Content = Mapping[str, Any]
STATISTICS = ("mean", "p50", "p95", "max")
"""The figures of an operation; a p95 of fewer than 20 values is not shown."""


def operation_figures(operation: Content) -> Iterator[tuple[str, str]]:
    """Yield the figures of an operation by their heads: of how many cases, its statistics, and all together."""
    unit = operation["unit"]
    yield "cases", f"{operation['n']:,}"
    for name in STATISTICS:
        yield name, score_text(operation[name], unit)
    yield "in all", score_text(operation["total"], unit)


def operation_lines(metrics: Content) -> Iterator[Line]:
    """Yield a line for each operation that a run scores: `latency_ms: mean 242 ms, p50 230 ms … (22 cases)`."""
    operations = metrics["volatile"].get("operations") or {}
    for name, metric in metrics["metrics"].items():
        if name in operations and metric["mean"] is not None:
            figures = dict(operation_figures(operations[name]))
            cases = figures.pop("cases")
            shown = [f"{head} {text}" for head, text in figures.items() if text != NO_VALUE]
            yield Line(f"{name}: {', '.join(shown)} ({cases} answers)")


def slower_line(slower: Content | None) -> Iterator[str]:
    """Yield `answers take 2.1 times as long: median 900 ms → 1.9 s (135 cases)` if they clearly do."""
    if slower is None:
        return
    medians = f"{duration(slower['before_ms'])} → {duration(slower['after_ms'])}"
    yield f"answers take {slower['ratio']:.1f} times as long: median {medians} ({counted(slower['n'], 'case')})"


def operations_section(operations: Content) -> Iterator[FigureTable]:
    """Yield the operations of two runs beside each other; nothing if none is known of both."""
    rows = []
    for name, operation in operations.items():
        unit = operation["unit"]
        before = operation["before"]
        after = operation["after"]
        means = [score_text(before["mean"], unit), score_text(after["mean"], unit)]
        moved = change(after["mean"] - before["mean"], unit)
        p95s = [score_text(before["p95"], unit), score_text(after["p95"], unit)]
        rows.append(TableRow((name, *means, moved, *p95s)))
    if rows:
        heads = ("operation", "mean before", "after", "change", "p95 before", "after")
        yield FigureTable(heads, tuple(rows), "Latency, tokens and cost", "operations")
