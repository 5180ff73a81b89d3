"""A judge against people: agreement, better limits, pass rates, and the largest disagreements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_rageval.check.calibrate import Calibration
from pytest_rageval.stats.agreement import Estimate
from pytest_rageval.stats.thresholds import Threshold
from pytest_rageval.text import NO_VALUE, counted, short
from pytest_rageval.views.parts import FigureTable, Fold, FoldList, LabelledText, Line, Section, TableRow

MOST_SHOWN = 5
AIMS = {"youden": "Youden's J", "agreement": "agreement"}
ASSUMPTION = (
    "Estimated by prediction-powered inference; holds if the labelled answers were drawn at random from the same "
    "answers"
)


@dataclass(frozen=True, slots=True)
class CalibrationView:
    """A calibration as every face shows it."""

    head: Section
    confusion: Section
    figures: tuple[FigureTable, ...]
    limits: Section
    rates: Section
    unscored: Section
    disagreements: tuple[FoldList, ...]
    notes: Section


def calibration_view(calibration: Calibration, *, show_texts: bool = True) -> CalibrationView:
    """Return the view of a calibration. `show_texts`: show questions, answers and the judge's reasoning."""
    scored = f"{len(calibration.cases)} of {len(calibration.judged)} labelled answers scored"
    confusion = calibration.confusion
    return CalibrationView(
        head=(
            Line(f"{judged_by(calibration)} against people: {calibration.gate}, {scored}", form="title"),
            Line(verdict_of(calibration), form="title"),
        ),
        confusion=(
            FigureTable(
                ("", "judge fails it", "judge passes it"),
                (
                    TableRow(("people fail it", str(confusion.tp), str(confusion.fn))),
                    TableRow(("people pass it", str(confusion.fp), str(confusion.tn))),
                ),
            ),
        ),
        figures=(FigureTable((), tuple(_figures(calibration)), has_verdicts=True, least=3),),
        limits=(
            Line("which limit would serve best (chosen on nine tenths, tried on the rest)", form="title"),
            *(Line(text, form="detail") for text in _limits(calibration)),
        ),
        rates=(
            Line("how many answers pass, with 95 % intervals", form="title"),
            FigureTable((), tuple(_rates(calibration))),
            *(Line(text, form="detail") for text in _about_unlabelled(calibration)),
        ),
        unscored=tuple(_unscored(calibration)),
        disagreements=tuple(_disagreements(calibration, show_texts)),
        notes=tuple(Line(f"note: {note}", form="title") for note in calibration.notes),
    )


def judged_by(calibration: Calibration) -> str:
    """Return the names of the judges, on one line."""
    names = ", ".join(calibration.models) or "scores that came with the labels"
    return f"{names} (a heuristic)" if calibration.heuristic else names


def verdict_of(calibration: Calibration) -> str:
    """Return the agreement in words, with the figure behind them."""
    kappa = calibration.confusion.kappa
    if kappa is None:
        return f"{calibration.verdict}: judge or people say the same of all answers"
    figure = f"kappa {kappa.value:.2f}, 95 % {_interval(kappa)}"
    return f"{calibration.verdict}: {figure} (in the words of Landis and Koch 1977)"


def _figures(calibration: Calibration) -> Iterator[TableRow]:
    """Yield rows of each measure: name, value, interval, meaning."""
    confusion, figures = calibration.confusion, calibration.of_scores
    yield _estimate("agreement", confusion.agreement, "share on the same side of the gate")
    yield _estimate("Cohen's kappa", confusion.kappa, "agreement beyond chance; 1 at best")
    yield _number("precision", confusion.precision, "of those that the judge fails, people fail")
    yield _number("recall", confusion.recall, "of those that people fail, the judge fails")
    yield _number("specificity", confusion.specificity, "of those that people pass, the judge passes")
    yield _estimate("AUROC", calibration.auroc, "passing above failing; 0.5 is chance")
    if n := figures["n_scored_by_people"]:
        answers = counted(int(n), "answer")
        yield _number("linear kappa", figures["linear_kappa"], f"scores of {answers}, rounded")
        yield _number("quadratic kappa", figures["quadratic_kappa"], f"scores of {answers}, rounded")
        yield _number("Spearman", figures["spearman"], f"ranks of {answers}")


def _estimate(name: str, estimate: Estimate | None, *about: str) -> TableRow:
    return TableRow((name, _two_digits(estimate.value if estimate else None), _interval(estimate), *about))


def _number(name: str, value: float | None, about: str) -> TableRow:
    return TableRow((name, _two_digits(value), "", about))


def _two_digits(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:.2f}"


def _interval(estimate: Estimate | None) -> str:
    """Return the interval as `0.61 to 0.84`; '' without one."""
    if estimate is None or estimate.interval is None:
        return ""
    return f"{estimate.interval[0]:.2f} to {estimate.interval[1]:.2f}"


def _limits(calibration: Calibration) -> Iterator[str]:
    """Yield for each aim the limit as a gate, and its result."""
    reasons = {threshold for threshold in calibration.thresholds.values() if isinstance(threshold, str)}
    if len(reasons) == 1:
        yield f"no limit is suggested: {next(iter(reasons))}"
        return
    for aim, limit in calibration.thresholds.items():
        if isinstance(limit, str):
            yield f"{AIMS[aim]}: no limit is suggested: {limit}"
        else:
            gate = f"{calibration.gate.name} >= {limit.limit:.12g}"
            yield f"{gate}  {AIMS[aim]} {_result_of(limit, str(calibration.gate))}"


def _result_of(limit: Threshold, gate: str) -> str:
    """Return the result of a limit on answers that were not used to find it, against the present gate."""
    if limit.is_present:
        return f"{limit.present:.2f}: the present gate serves best"
    low, high = limit.gain_interval
    doubt = f"{'may be chance' if limit.gain > 0 else 'no gain'}: keep {gate}"
    advice = "beyond chance" if limit.is_clearly_better else doubt
    first, last = map(short, limit.chosen)
    spread = "" if first == last else f"; over the folds {first} to {last}"
    gained = f"gain {limit.gain:+.2f} ({low:+.2f} to {high:+.2f}), {advice}{spread}"
    return f"{limit.held_out:.2f} held out, {limit.present:.2f} at {gate}: {gained}"


def _rates(calibration: Calibration) -> Iterator[TableRow]:
    rates = calibration.rates
    yield _estimate("labelled, by people", rates["by_people"])
    yield _estimate("labelled, by the judge", rates["by_judge"])
    if (more := calibration.unlabelled) is not None:
        yield _estimate(f"{len(more.passing)} unlabelled, by the judge", rates["unlabelled"])
        yield _estimate("unlabelled, by people (estimated)", rates["corrected"])


def _about_unlabelled(calibration: Calibration) -> Iterator[str]:
    if (more := calibration.unlabelled) is not None:
        counts = [f"{more.without_score} without a score"] * bool(more.without_score)
        counts += [f"{more.left_out} labelled and counted there"] * bool(more.left_out)
        left_out = f"; left out: {', '.join(counts)}" if counts else ""
        yield f"run {more.run_id}{left_out}. {ASSUMPTION}"


def _unscored(calibration: Calibration) -> Iterator[Line]:
    for title, counts in (
        ("not scored by the judge, and in no figure", calibration.unscored),
        ("errors, in no figure", calibration.errors),
    ):
        if counts:
            yield Line(f"{title}: {sum(counts.values())}")
            shown = list(counts.items())[: 2 * MOST_SHOWN]
            yield from (Line(f"{n}  {name}", form="detail") for name, n in shown)
            if len(counts) > len(shown):
                yield Line(f"and {len(counts) - len(shown)} other reasons", form="detail")
    messages = calibration.messages if calibration.errors else ()
    yield from (Line(f"error: {message}", form="detail") for message in messages[:MOST_SHOWN])
    if len(messages) > MOST_SHOWN:
        yield Line(f"and {len(messages) - MOST_SHOWN} other messages", form="detail")


def _disagreements(calibration: Calibration, show_texts: bool) -> Iterator[FoldList]:
    folds = []
    for case in calibration.disagreements:
        human = "" if case.human is None else f" ({short(case.human)})"
        sides = f"people {'pass' if case.passes else 'fail'} it{human}, judge {short(case.score)}"
        texts = {"judge": case.judgement.reasoning if case.judgement else ""}
        if (obs := case.observation) is not None:
            texts = {"question": obs.case.question, "answer": obs.answer.text or "", **texts}
        facts = (LabelledText(name, "", text) for name, text in texts.items() if show_texts and text.strip())
        folds.append(Fold(f"{case.label.id} · {sides} · {case.label.source}", (), tuple(facts)))
    if folds:
        yield FoldList("widest apart, of the disagreements", "plain", tuple(folds), MOST_SHOWN)
