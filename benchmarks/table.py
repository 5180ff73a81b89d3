"""Rows of figures as text: for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from harness import Figure, Row

HEAD = ("what", "unit", "ours", "peer", "peer's", "ratio", "goal", "")


def terminal(rows: Iterable[Row]) -> str:
    """Columns, aligned. Figures are least / median, the ratio is of the medians."""
    cells = [HEAD, *(_cells(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)
    return "\n".join(line.rstrip() for line in lines)


def markdown(rows: Iterable[Row]) -> str:
    """The same as a Markdown table."""
    lines = [HEAD, ("---",) * len(HEAD), *(_cells(row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cells(row: Row) -> tuple[str, ...]:
    ratio = f"{row.ours.median / row.peer.median:.2f}" if row.peer and row.peer.median > 0 else ""
    verdict = "" if row.goal is None else _verdict(row.ours, row.goal)
    goal = "" if row.goal is None else f"≤ {row.goal:g}"
    return (row.what, row.unit, _shown(row.ours), row.peer_name, _shown(row.peer), ratio, goal, verdict)


def _verdict(ours: Figure, goal: float) -> str:
    """Noise decides nothing: where the least and the median fall on different sides, neither is claimed."""
    is_reached = {ours.least <= goal, ours.median <= goal}
    return "unclear" if len(is_reached) == 2 else "reached" if is_reached == {True} else "missed"


def _shown(figure: Figure | None) -> str:
    return "" if figure is None else f"{_digits(figure.least)} / {_digits(figure.median)}"


def _digits(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
