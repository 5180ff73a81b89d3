"""A calibration as one self-contained HTML page with its histograms, ROC curve and disagreements."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

from pytest_rageval.render.html.environment import policy, rendered, style
from pytest_rageval.render.html.figures import Axis, AxisValue, Chart, histogram, line_path
from pytest_rageval.tools.calibrate import Calibration
from pytest_rageval.views.calibration import calibration_view, judged_by, suggested_limits

MOST_SHOWN = 20
KINDS = {False: "answers that people fail, by the judge's score", True: "answers that people pass"}


def calibration_page(calibration: Calibration, title: str, *, show_texts: bool = True) -> str:
    """Return the page. `show_texts`: it shows questions, answers and reasoning."""
    view = calibration_view(calibration, show_texts=show_texts)
    return rendered(
        "calibration.html",
        policy=policy(),
        style=style(),
        version=version("pytest-rageval"),
        title=title,
        judge=judged_by(calibration),
        view=view,
        limits=suggested_limits(calibration).values(),
        charts=list(_charts(calibration)),
        disagreements=[fold for block in view.disagreements for fold in block.folds[:MOST_SHOWN]],
        total=len(calibration.disagreements),
    )


def _charts(calibration: Calibration) -> Iterator[tuple[str, Chart]]:
    """Yield the scores of the answers of each kind, with the present and the best limit; then the ROC curve."""
    low, high = calibration.scale
    best = calibration.thresholds["youden"]
    limits = {"gate": calibration.gate.threshold} | ({} if isinstance(best, str) else {"best": best.limit})
    places = Axis(low, high, low, high)
    marks = [AxisValue(places.across(min(max(limit, low), high)), name) for name, limit in limits.items()]
    for passes, name in KINDS.items():
        if scores := [case.score for case in calibration.cases if case.passes is passes]:
            yield name, histogram(scores, calibration.scale)._replace(marks=marks, dashed="limits")
    confusion, share = calibration.confusion, Axis(0, 1, 0, 1)
    if calibration.curve and confusion.specificity is not None:
        diagonal, curve = (
            line_path((share.across(x), share.height(y)) for x, y in points)
            for points in (((0, 0), (1, 1)), calibration.curve)
        )
        gate = [AxisValue(share.across(1 - confusion.specificity), "gate")]
        unit = "recall of failing answers over 1 - specificity"
        across, up = share.labels(share.across), share.labels(share.height)
        yield "ROC", Chart(unit, across, up, line=curve, before=diagonal, marks=gate, dashed="chance, and the gate")
