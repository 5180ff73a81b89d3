"""A judge against people: agreement, better limits, pass rates, and the largest disagreements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_rageval.check.calibrate import Calibration, UnlabelledCases
from pytest_rageval.check.judged_labels import ScoredLabel
from pytest_rageval.stats.agreement import Estimate
from pytest_rageval.stats.thresholds import Threshold
from pytest_rageval.text import NO_VALUE, counted, plain, short
from pytest_rageval.views.parts import Block, FigureTable, Fold, FoldList, LabelledText, Line, Section, TableRow

MOST_SHOWN = 5
"""Messages and disagreements to show; twice as many reasons."""
AIMS = {"youden": "Youden's J", "agreement": "agreement"}
ASSUMPTION = (
    "Estimated by prediction-powered inference; holds if the labelled answers were drawn at random from the same "
    "answers"
)


@dataclass(frozen=True, slots=True)
class CalibrationView:
    """A calibration as every face shows it."""

    head: Section
    """The judge, the gate, the number of answers, and the agreement in words."""
    confusion: Section
    """How often people and the judge fail or pass an answer."""
    figures: tuple[FigureTable, ...]
    """The measures of agreement with their intervals."""
    limits: Section
    """The limit that each aim suggests for the gate."""
    rates: Section
    """The share of answers that pass, by people and by the judge."""
    unscored: Section
    """The answers without a score, by reason."""
    disagreements: tuple[FoldList, ...]
    """The answers on which people and the judge are furthest apart."""
    notes: Section
    """Remarks on how far the figures can be trusted."""


def calibration_view(calibration: Calibration, *, show_texts: bool = True) -> CalibrationView:
    """Return the view of a calibration. `show_texts`: show questions, answers and the judge's reasoning."""
    return CalibrationView(
        head=tuple(_head(calibration)),
        confusion=(_confusion_table(calibration),),
        figures=(FigureTable((), tuple(_figures(calibration)), has_verdicts=True, least=3),),
        limits=tuple(_limits(calibration)),
        rates=tuple(_rates(calibration)),
        unscored=tuple(_unscored(calibration)),
        disagreements=tuple(_disagreements(calibration, show_texts)),
        notes=tuple(Line(f"note: {note}", form="title") for note in calibration.notes),
    )


def _head(calibration: Calibration) -> Iterator[Line]:
    scored = f"{len(calibration.cases)} of {len(calibration.judged)} labelled answers scored"
    yield Line(f"{judged_by(calibration)} against people: {calibration.gate}, {scored}", form="title")
    yield Line(verdict_of(calibration), form="title")


def _confusion_table(calibration: Calibration) -> FigureTable:
    confusion = calibration.confusion
    failed_by_people = TableRow(("people fail it", str(confusion.tp), str(confusion.fn)))
    passed_by_people = TableRow(("people pass it", str(confusion.fp), str(confusion.tn)))
    return FigureTable(("", "judge fails it", "judge passes it"), (failed_by_people, passed_by_people))


def judged_by(calibration: Calibration) -> str:
    """Return the names of the judges, on one line."""
    names = ", ".join(calibration.models) or "scores that came with the labels"
    return f"{names} (a heuristic)" if calibration.heuristic else names


def verdict_of(calibration: Calibration) -> str:
    """Return the agreement in words, with the figure behind them."""
    kappa = calibration.kappa
    if kappa is None:
        return f"{calibration.verdict}: judge or people say the same of all answers"
    figure = f"kappa {kappa.value:.2f}"
    if kappa.interval is not None:
        figure += f", 95 % {_interval(kappa)}"
    return f"{calibration.verdict}: {figure} (in the words of Landis and Koch 1977)"


def _figures(calibration: Calibration) -> Iterator[TableRow]:
    """Yield rows of each measure: name, value, interval, meaning."""
    confusion = calibration.confusion
    figures = calibration.of_scores
    yield _estimate("agreement", calibration.agreement, "share on the same side of the gate")
    yield _estimate("Cohen's kappa", calibration.kappa, "agreement beyond chance; 1 at best")
    yield _number("precision", confusion.precision, "of those that the judge fails, people fail")
    yield _number("recall", confusion.recall, "of those that people fail, the judge fails")
    yield _number("specificity", confusion.specificity, "of those that people pass, the judge passes")
    yield _estimate("AUROC", calibration.auroc, "passing above failing; 0.5 is chance")
    scored_by_people = figures["n_scored_by_people"]
    if scored_by_people:
        answers = counted(int(scored_by_people), "answer")
        yield _number("linear kappa", figures["linear_kappa"], f"scores of {answers}, rounded")
        yield _number("quadratic kappa", figures["quadratic_kappa"], f"scores of {answers}, rounded")
        yield _number("Spearman", figures["spearman"], f"ranks of {answers}")


def _estimate(name: str, estimate: Estimate | None, *about: str) -> TableRow:
    value = estimate.value if estimate else None
    return TableRow((name, _two_digits(value), _interval(estimate), *about))


def _number(name: str, value: float | None, about: str) -> TableRow:
    return TableRow((name, _two_digits(value), "", about))


def _two_digits(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:.2f}"


def _interval(estimate: Estimate | None) -> str:
    """Return the interval as `0.61 to 0.84`; '' without one."""
    if estimate is None or estimate.interval is None:
        return ""
    low, high = estimate.interval
    return f"{low:.2f} to {high:.2f}"


def _limits(calibration: Calibration) -> Iterator[Line]:
    yield Line("which limit would serve best (chosen on nine tenths, tried on the rest)", form="title")
    for text in _suggestions(calibration):
        yield Line(text, form="detail")


def _suggestions(calibration: Calibration) -> Iterator[str]:
    """Yield for each aim the limit as a gate, and its result."""
    reasons = {threshold for threshold in calibration.thresholds.values() if isinstance(threshold, str)}
    if len(reasons) == 1:
        yield f"no limit is suggested: {next(iter(reasons))}"
        return
    for aim, limit in calibration.thresholds.items():
        if isinstance(limit, str):
            yield f"{AIMS[aim]}: no limit is suggested: {limit}"
        else:
            gate = f"{calibration.gate.name} >= {plain(limit.limit)}"
            yield f"{gate}  {AIMS[aim]} {_result_of(limit, str(calibration.gate))}"


def _result_of(limit: Threshold, gate: str) -> str:
    """Return the result of a limit on answers that were not used to find it, against the present gate."""
    if limit.is_present:
        return f"{limit.present:.2f}: the present gate serves best"
    if limit.is_clearly_better:
        advice = "beyond chance"
    elif limit.gain > 0:
        advice = f"may be chance: keep {gate}"
    else:
        advice = f"no gain: keep {gate}"
    first, last = map(short, limit.chosen)
    spread = "" if first == last else f"; over the folds {first} to {last}"
    low, high = limit.gain_interval
    gained = f"gain {limit.gain:+.2f} ({low:+.2f} to {high:+.2f}), {advice}{spread}"
    return f"{limit.held_out:.2f} held out, {limit.present:.2f} at {gate}: {gained}"


def _rates(calibration: Calibration) -> Iterator[Block]:
    yield Line("how many answers pass, with 95 % intervals", form="title")
    yield FigureTable((), tuple(_rate_rows(calibration)))
    if calibration.unlabelled is not None:
        yield Line(_about_unlabelled(calibration.unlabelled), form="detail")


def _rate_rows(calibration: Calibration) -> Iterator[TableRow]:
    rates = calibration.rates
    yield _estimate("labelled, by people", rates["by_people"])
    yield _estimate("labelled, by the judge", rates["by_judge"])
    if calibration.unlabelled is not None:
        number = len(calibration.unlabelled.passing)
        yield _estimate(f"{number} unlabelled, by the judge", rates["unlabelled"])
        yield _estimate("unlabelled, by people (estimated)", rates["corrected"])


def _about_unlabelled(unlabelled: UnlabelledCases) -> str:
    left_out = []
    if unlabelled.without_score:
        left_out.append(f"{unlabelled.without_score} without a score")
    if unlabelled.left_out:
        left_out.append(f"{unlabelled.left_out} labelled and counted there")
    omissions = f"; left out: {', '.join(left_out)}" if left_out else ""
    return f"run {unlabelled.run_id}{omissions}. {ASSUMPTION}"


def _unscored(calibration: Calibration) -> Iterator[Line]:
    yield from _counts("not scored by the judge, and in no figure", calibration.unscored)
    yield from _counts("errors, in no figure", calibration.errors)
    messages = calibration.messages if calibration.errors else ()
    for message in messages[:MOST_SHOWN]:
        yield Line(f"error: {message}", form="detail")
    if len(messages) > MOST_SHOWN:
        yield Line(f"and {len(messages) - MOST_SHOWN} other messages", form="detail")


def _counts(title: str, counts: Mapping[str, int]) -> Iterator[Line]:
    """Yield how many answers are left out, and for which reasons."""
    if not counts:
        return
    yield Line(f"{title}: {sum(counts.values())}")
    shown = list(counts.items())[: 2 * MOST_SHOWN]
    for reason, number in shown:
        yield Line(f"{number}  {reason}", form="detail")
    if len(counts) > len(shown):
        yield Line(f"and {len(counts) - len(shown)} other reasons", form="detail")


def _disagreements(calibration: Calibration, show_texts: bool) -> Iterator[FoldList]:
    folds = tuple(_disagreement(case, show_texts) for case in calibration.disagreements)
    if folds:
        yield FoldList("widest apart, of the disagreements", "plain", folds, MOST_SHOWN)


def _disagreement(case: ScoredLabel, show_texts: bool) -> Fold:
    people = "people pass it" if case.passes else "people fail it"
    if case.human is not None:
        people += f" ({short(case.human)})"
    title = f"{case.label.id} · {people}, judge {short(case.score)} · {case.label.source}"
    texts: dict[str, str] = {}
    if case.observation is not None:
        texts["question"] = case.observation.case.question
        texts["answer"] = case.observation.answer.text or ""
    if case.judgement is not None:
        texts["judge"] = case.judgement.reasoning
    if not show_texts:
        texts = {}
    facts = tuple(LabelledText(name, "", text) for name, text in texts.items() if text.strip())
    return Fold(title, (), facts)
