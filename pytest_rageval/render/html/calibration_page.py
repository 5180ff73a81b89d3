"""A calibration as one self-contained HTML page with its ROC curve, histogram and disagreements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pytest_rageval.render.html.environment import rendered
from pytest_rageval.text import short
from pytest_rageval.tools.calibrate import Calibration
from pytest_rageval.views.calibration import ASSUMPTION, calibration_view, judged_by, suggested_limits, verdict_of

MOST_SHOWN = 20
LONGEST_TEXT = 2000
BINS = 20


def calibration_page(calibration: Calibration, title: str, *, show_texts: bool = True) -> str:
    """Return the page. `show_texts`: it shows questions, answers and reasoning."""
    view = calibration_view(calibration, show_texts=show_texts)
    folds = view.disagreements[0].folds if view.disagreements else ()
    return rendered(
        "calibration.html",
        title=title,
        calibration=calibration,
        judge=judged_by(calibration),
        verdict=verdict_of(calibration),
        view=view,
        limits=suggested_limits(calibration).values(),
        assumption=ASSUMPTION,
        cells=_cells(calibration),
        curve=_curve(calibration),
        histogram=_histogram(calibration),
        disagreements=folds[:MOST_SHOWN],
        longest=LONGEST_TEXT,
        messages=calibration.messages[:MOST_SHOWN],
    )


# ── charts, in units of their own viewBox ─────────────────────────────────────────────────────────────────────

SIDE = 220
"""Side of the square in which the curve is drawn."""
WIDTH, HEIGHT = 440, 90
"""Size of one histogram."""


class Cell(NamedTuple):
    """One of the four counts: its place, and the strength of its tint."""

    x: int
    y: int
    n: int
    share: float
    is_right: bool
    name: str


def _cells(calibration: Calibration) -> list[Cell]:
    confusion = calibration.confusion
    counts = (
        (0, 0, confusion.tp, True, "both fail it"),
        (1, 0, confusion.fn, False, "people alone fail it"),
        (0, 1, confusion.fp, False, "the judge alone fails it"),
        (1, 1, confusion.tn, True, "both pass it"),
    )
    return [
        Cell(x, y, n, round(0.12 + 0.6 * n / max(confusion.n, 1), 3), right, name) for x, y, n, right, name in counts
    ]


def _curve(calibration: Calibration) -> dict[str, Any] | None:
    """Return the ROC curve as points of a polyline, and where the present gate lies on it."""
    if not calibration.curve:
        return None
    confusion = calibration.confusion
    assert confusion.recall is not None  # a curve needs answers of both kinds
    assert confusion.specificity is not None
    return {
        "points": " ".join(f"{x * SIDE:.1f},{(1 - y) * SIDE:.1f}" for x, y in _thinned(calibration.curve)),
        "gate": (round((1 - confusion.specificity) * SIDE, 1), round((1 - confusion.recall) * SIDE, 1)),
        "side": SIDE,
    }


def _thinned(points: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
    """Return no more points than the chart can show."""
    step = max(1, len(points) // (4 * SIDE))
    return [*points[:-1:step], points[-1]]


def _histogram(calibration: Calibration) -> Mapping[str, Any] | None:
    """Return for each kind of answers the bars by score, and the places of the present and the suggested limit."""
    if not calibration.cases:
        return None
    low, high = calibration.scale
    kinds = []
    for passes, name in ((False, "people fail it"), (True, "people pass it")):
        scores = [case.score for case in calibration.cases if case.passes is passes]
        counts = [0] * BINS
        for score in scores:
            counts[min(BINS - 1, max(0, int((score - low) / (high - low) * BINS)))] += 1
        most = max(counts) or 1
        bars = [
            (round(at * WIDTH / BINS + 1, 1), round(HEIGHT * n / most, 1), n, _span(at, low, high))
            for at, n in enumerate(counts)
            if n
        ]
        kinds.append({"name": name, "n": len(scores), "bars": bars, "passes": passes, "most": max(counts)})
    best = calibration.thresholds["youden"]
    return {
        "kinds": kinds,
        "width": WIDTH,
        "height": HEIGHT,
        "bar": round(WIDTH / BINS - 2, 1),
        "gate": _at(calibration.gate.threshold, low, high),
        "best": None if isinstance(best, str) else _at(best.limit, low, high),
        "ticks": [(_at(value, low, high), short(value)) for value in (low + (high - low) * at / 5 for at in range(6))],
    }


def _span(bar: int, low: float, high: float) -> str:
    size = (high - low) / BINS
    return f"{short(low + bar * size)} to {short(low + (bar + 1) * size)}"


def _at(value: float, low: float, high: float) -> float:
    return round((min(max(value, low), high) - low) / (high - low) * WIDTH, 1)
