"""A calibration as one self-contained HTML page with its ROC curve, histogram and disagreements."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_rageval.numbers import short
from pytest_rageval.render.text.calibration_lines import (
    AIMS,
    between,
    both_sides,
    figures,
    found_gate,
    judged_by,
    threshold_line,
    two_digits,
    verdict,
)
from pytest_rageval.text import printable

if TYPE_CHECKING:
    from jinja2 import Template

    from pytest_rageval.tools.calibrate import Calibration, Case

MOST_SHOWN = 20
LONGEST_TEXT = 2000
BINS = 20


def calibration_page(calibration: Calibration, title: str, *, show_texts: bool = True) -> str:
    """The page. Every text in it is escaped; `show_texts`: whether questions, answers and reasoning are in it."""
    thresholds = {
        AIMS[aim]: (None if isinstance(threshold, str) else found_gate(calibration.metric, threshold),
                    threshold_line(aim, threshold, str(calibration.gate)))
        for aim, threshold in calibration.thresholds.items()
    }  # fmt: skip
    return _template().render(
        title=title,
        calibration=calibration,
        judge=judged_by(calibration),
        verdict=verdict(calibration),
        figures=figures(calibration),
        thresholds=thresholds,
        rates=_rates(calibration),
        cells=_cells(calibration),
        curve=_curve(calibration),
        histogram=_histogram(calibration),
        disagreements=[_shown(case, show_texts) for case in calibration.disagreements[:MOST_SHOWN]],
        messages=calibration.messages[:MOST_SHOWN],
    )


@functools.cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        finalize=lambda value: printable(value) if type(value) is str else value,  # not what is escaped already
    )  # fmt: skip
    return environment.from_string((files(__package__) / "calibration.html.j2").read_text(encoding="utf-8"))


def _shown(case: Case, show_texts: bool) -> dict[str, Any]:
    texts = {"Question": case.question, "Answer": case.answer, "Judge": case.reasoning} if show_texts else {}
    cut = {name: text[:LONGEST_TEXT] + "…" * (len(text) > LONGEST_TEXT) for name, text in texts.items()}
    return {"id": case.id, "place": case.place, "said": both_sides(case),
            "texts": {name: text for name, text in cut.items() if text.strip()}}  # fmt: skip


def _rates(calibration: Calibration) -> list[tuple[str, str, str]]:
    more = calibration.unlabelled
    rows = [("labelled, by people", calibration.human_rate), ("labelled, by the judge", calibration.judge_rate)]
    if more is not None:
        rows += [
            (f"{len(more.passing)} unlabelled of run {more.run_id}, by the judge", calibration.judge_rate_unlabelled),
            ("the same, by people (estimated)", calibration.corrected_rate),
        ]
    return [
        (name, two_digits(None if estimate is None else estimate.value), between(estimate)) for name, estimate in rows
    ]


# ── charts, in units of their own viewBox ─────────────────────────────────────────────────────────────────────

SIDE = 220
"""Of the square in which the curve is drawn."""
WIDTH, HEIGHT = 440, 90
"""Of one histogram."""


class Cell(NamedTuple):
    """One of the four counts: where it stands, and how strongly it is tinted."""

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
    """The ROC as points of a polyline, and where the present gate lies on it."""
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
    """No more points than the chart can show."""
    step = max(1, len(points) // (4 * SIDE))
    return [*points[:-1:step], points[-1]]


def _histogram(calibration: Calibration) -> Mapping[str, Any] | None:
    """For each kind of answers the bars by score, and the places of the present and the suggested limit."""
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
