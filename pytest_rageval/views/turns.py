"""The metrics of conversations by the number of the turn: first and later turns are never averaged in one figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_rageval.text import score_text
from pytest_rageval.views.parts import FigureTable, Line, TableRow

SHOWN_METRICS = 5
FALLING_METRICS = 2
"""Metrics in the line of a terminal."""
LEAST_FALL = 0.05
"""The share of its scale by which a metric falls that is worth a word."""
DECAY = "turn_decay@"


def turns_table(metrics: Mapping[str, Any], most: int | None = None) -> FigureTable | None:
    """Return a row for each number of a turn; None for a run without conversations.

    metrics  the content of metrics.json
    most     the rows that a face with little room shows
    """
    by_turn: Mapping[str, Mapping[str, Any]] = metrics.get("by_turn") or {}
    if not by_turn:
        return None
    names = metrics_by_turn(metrics["metrics"], by_turn)
    rows: list[TableRow] = []
    for number, group in by_turn.items():
        figures = [str(group["tests"]), str(group["outcomes"]["passed"])]
        figures += [_figure(group["metrics"].get(name), group["tests"]) for name in names]
        rows.append(TableRow((f"turn {number}", *figures)))
    heads = ("", "cases", "passed", *names)
    return FigureTable(heads, tuple(rows), what="turns", most=most)


def turns_line(metrics: Mapping[str, Any]) -> Line | None:
    """Return how later turns do beside first ones, with the metrics that fall most; None where they do as well."""
    by_turn: Mapping[str, Mapping[str, Any]] = metrics.get("by_turn") or {}
    first = by_turn.get("1")
    later = [group for number, group in by_turn.items() if number != "1"]
    if first is None or not later:
        return None
    passed = sum(group["outcomes"]["passed"] for group in later)
    turns = sum(group["tests"] for group in later)
    falling = _falling(metrics["metrics"])
    if not falling and passed * first["tests"] == first["outcomes"]["passed"] * turns:
        return None
    words = [f"{first['outcomes']['passed']} of {first['tests']} → {passed} of {turns} pass"]
    for name, decay in falling:
        mean = first["metrics"][name]["mean"]
        words.append(f"{name} {score_text(mean)} → {score_text(mean + decay)}")
    return Line(f"first turns → later turns: {' · '.join(words)}")


def _falling(metrics: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the metrics that are worse in later turns, with the difference; those that fall most on their scale."""
    falls: list[tuple[float, str, float]] = []
    for title, metric in metrics.items():
        if not title.startswith(DECAY) or metric["mean"] is None:
            continue
        low, high = metric["scale"]
        share = metric["mean"] / (high - low)
        if metric["better"] == "lower":
            share = -share
        if share <= -LEAST_FALL:
            falls.append((share, title.removeprefix(DECAY), metric["mean"]))
    return [(name, decay) for _, name, decay in sorted(falls)[:FALLING_METRICS]]


def _figure(scored: Mapping[str, Any] | None, turns: int) -> str:
    """Return a mean, with the number of its turns where that is not the number of all."""
    if scored is None:
        return score_text(None)
    text = score_text(scored["mean"])
    return text if scored["n_scored"] == turns else f"{text} (n {scored['n_scored']})"


def metrics_by_turn(metrics: Mapping[str, Any], by_turn: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return some metrics with a value in turns: those whose decay is measured first, of most turns first."""
    counts: dict[str, int] = {}
    for group in by_turn.values():
        for name, scored in group["metrics"].items():
            counts[name] = counts.get(name, 0) + scored["n_scored"]
    names = [name for name in counts if metrics[name].get("unit") is None]

    def place(name: str) -> tuple[bool, int, str]:
        return f"{DECAY}{name}" not in metrics, -counts[name], name

    return sorted(names, key=place)[:SHOWN_METRICS]
