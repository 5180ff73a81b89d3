"""Rows of figures as text: for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from harness import Figure, Row

HEAD = ("what", "unit", "ours", "peer", "peer's", "ratio", "goal", "")


def terminal(rows: Iterable[Row]) -> str:
    """Columns, aligned. Figures are least / median; ratio and goal are about the median."""
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
    verdict = "" if row.goal is None else "reached" if row.ours.median <= row.goal else "missed"
    goal = "" if row.goal is None else f"≤ {row.goal:g}"
    return (row.what, row.unit, _shown(row.ours), row.peer_name, _shown(row.peer), ratio, goal, verdict)


def _shown(figure: Figure | None) -> str:
    return "" if figure is None else f"{_digits(figure.least)} / {_digits(figure.median)}"


def _digits(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
