"""The metrics of conversations by the number of the turn: first and later turns are never averaged in one figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_rageval.text import score_text
from pytest_rageval.views.parts import FigureTable, TableRow

SHOWN_METRICS = 5
DECAY = "turn_decay@"


def turns_table(metrics: Mapping[str, Any], most: int | None = None) -> FigureTable | None:
    """Return a row for each number of a turn; None for a run without conversations.

    metrics  the content of metrics.json
    most     the rows that a face with little room shows
    """
    by_turn: Mapping[str, Mapping[str, Any]] = metrics.get("by_turn") or {}
    if not by_turn:
        return None
    names = _shown_metrics(metrics["metrics"], by_turn)
    rows: list[TableRow] = []
    for number, group in by_turn.items():
        figures = [str(group["tests"]), str(group["outcomes"]["passed"])]
        for name in names:
            scored = group["metrics"].get(name)
            figures.append(score_text(scored and scored["mean"]))
        rows.append(TableRow((f"turn {number}", *figures)))
    heads = ("", "cases", "passed", *names)
    return FigureTable(heads, tuple(rows), what="turns", most=most)


def _shown_metrics(metrics: Mapping[str, Any], by_turn: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the metrics with a value in turns: those whose decay is measured first, as gates read them."""
    scored = {name for group in by_turn.values() for name in group["metrics"]}
    ordered = sorted(name for name in scored if metrics[name].get("unit") is None)
    decaying = [name for name in ordered if f"{DECAY}{name}" in metrics]
    others = [name for name in ordered if name not in decaying]
    return [*decaying, *others][:SHOWN_METRICS]
