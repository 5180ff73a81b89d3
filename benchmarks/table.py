"""Rows of figures as text: for a terminal, and as Markdown. What we do not do best stands first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from environments import NAMES
from harness import Figure, Row

HEAD = ("what", "unit", "ours", "floor", "ratio", "best peer", "ratio", "goal", "", "load")
PEERS_HEAD = ("what", "unit", "ours", *NAMES)


class Line(NamedTuple):
    """All rows of one quantity.

    floor, peer  the cheapest plain script, and the best of the other tools: name and figure; None where there is none
    reasons      of peers without a figure
    """

    what: str
    unit: str
    ours: Figure
    figures: dict[str, Figure]
    reasons: dict[str, str]
    goals: tuple[str, ...]
    verdict: str
    loads: tuple[float, float] | None

    @property
    def floor(self) -> tuple[str, Figure] | None:
        return _least({name: figure for name, figure in self.figures.items() if name not in NAMES})

    @property
    def peer(self) -> tuple[str, Figure] | None:
        return _least({name: figure for name, figure in self.figures.items() if name in NAMES})

    @property
    def is_behind(self) -> bool:
        """Is another tool better, or a goal missed?"""
        return self.verdict == "missed" or (self.peer is not None and self.ours.median > self.peer[1].median)


def lines(rows: Iterable[Row]) -> list[Line]:
    """The rows by quantity; first those in which we are behind, else in their order."""
    by_what: dict[str, list[Row]] = {}
    for row in rows:
        by_what.setdefault(row.what, []).append(row)
    found = [_line(alike) for alike in by_what.values()]
    return sorted(found, key=lambda line: not line.is_behind)


def _line(rows: Sequence[Row]) -> Line:
    first = rows[0]
    goals = {goal: verdict for row in rows for goal, verdict in _goals(row)}
    verdict = next((each for each in ("missed", "unclear", "reached") if each in goals.values()), "")
    return Line(
        first.what,
        first.unit,
        first.ours,
        {row.peer_name: row.peer for row in rows if isinstance(row.peer, Figure)},
        {row.peer_name: row.peer for row in rows if isinstance(row.peer, str)},
        tuple(goals),
        verdict,
        first.loads,
    )


def _goals(row: Row) -> Iterable[tuple[str, str]]:
    if row.goal is not None:
        yield f"≤ {row.goal:g}", _verdict(row.ours.least, row.ours.median, row.goal)
    if row.ratio_goal is not None and isinstance(row.peer, Figure) and row.peer.least > 0:
        ratios = row.ours.least / row.peer.least, row.ours.median / row.peer.median
        # What is made of differences may come out below nothing, where noise is larger than what was measured.
        verdict = _verdict(*ratios, row.ratio_goal) if min(ratios) > 0 else "unclear"
        yield f"≤ {row.ratio_goal:g} × {row.peer_name}", verdict


def _verdict(least: float, median: float, goal: float) -> str:
    """Noise decides nothing: where the least and the median fall on different sides, neither is claimed."""
    is_reached = {least <= goal, median <= goal}
    return "unclear" if len(is_reached) == 2 else "reached" if is_reached == {True} else "missed"


def _least(figures: dict[str, Figure]) -> tuple[str, Figure] | None:
    return min(figures.items(), key=lambda item: item[1].median, default=None)


def terminal(rows: Iterable[Row]) -> str:
    """Columns, aligned. Figures are least / median, ratios are of the medians."""
    cells = [HEAD, *map(_cells, lines(rows))]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    texts = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)
    return "\n".join(line.rstrip() for line in texts)


def markdown(rows: Iterable[Row]) -> str:
    """The same as a Markdown table, and a second one of all peers."""
    table = lines(rows)
    text = _table(HEAD, map(_cells, table))
    with_peers = [line for line in table if line.peer is not None]
    if with_peers:
        text += "\nEach peer, as a multiple of ours:\n\n" + _table(PEERS_HEAD, map(_peer_cells, with_peers))
    return text


def _table(head: Sequence[str], cells: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ("---",) * len(head), *cells))


def _cells(line: Line) -> tuple[str, ...]:
    loads = "" if line.loads is None else f"{line.loads[0]:.1f} → {line.loads[1]:.1f}"
    return (
        line.what, line.unit, _shown(line.ours), *_beside(line.ours, line.floor), *_beside(line.ours, line.peer),
        ", ".join(line.goals), line.verdict, loads,
    )  # fmt: skip


def _beside(ours: Figure, other: tuple[str, Figure] | None) -> tuple[str, str]:
    if other is None:
        return "", ""
    name, figure = other
    return f"{name} {_shown(figure)}", _ratio(ours, figure)


def _ratio(ours: Figure, figure: Figure) -> str:
    return f"{ours.median / figure.median:.2f}" if min(ours.median, figure.median) > 0 else ""


def _peer_cells(line: Line) -> tuple[str, ...]:
    return (line.what, line.unit, _shown(line.ours), *(_of_peer(line, name) for name in NAMES))


def _of_peer(line: Line, name: str) -> str:
    """How many times as much it takes, with the rounds where they are fewer than ours; else why that is not known."""
    if name not in line.figures:
        return line.reasons.get(name, "")
    figure = line.figures[name]
    times = f"{figure.median / line.ours.median:.1f} ×" if line.ours.median > 0 else _shown(figure)
    return times + (f" ({figure.rounds} rounds)" if 0 < figure.rounds < line.ours.rounds else "")


def _shown(figure: Figure) -> str:
    return f"{_digits(figure.least)} / {_digits(figure.median)}"


def _digits(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
