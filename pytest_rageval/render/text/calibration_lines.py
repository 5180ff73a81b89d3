"""A calibration as lines for a terminal: agreement, thresholds, pass rates, disagreements."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pytest_rageval.numbers import NO_VALUE, short
from pytest_rageval.render.text.columns import aligned, shortened
from pytest_rageval.text import counted, printable

if TYPE_CHECKING:
    from pytest_rageval.stats.agreement import Estimate
    from pytest_rageval.stats.thresholds import Threshold
    from pytest_rageval.tools.calibrate import Calibration, Case

MOST_SHOWN = 5
AIMS = {"youden": "Youden's J", "agreement": "agreement"}


def calibration_lines(calibration: Calibration, *, width: int, show_texts: bool = True) -> list[str]:
    """The report within a width in columns; nothing in it can steer the terminal.

    `show_texts`: whether questions and the judge's reasoning may be shown; else ids alone.
    """
    parts = (
        _headline(calibration),
        _confusion(calibration),
        _figures(calibration),
        ["which limit would serve best (chosen on nine tenths, tried on the rest)", *_thresholds(calibration)],
        ["how many answers pass, with 95 % intervals", *_pass_rates(calibration)],
        _not_scored(calibration),
        _disagreements(calibration, width, show_texts=show_texts),
        [f"note: {note}" for note in calibration.notes],
    )
    lines: list[str] = []
    for part in map(list, parts):
        lines += [*([""] if lines and part else []), *part]
    return [cut for line in lines for cut in _within(printable(line), max(width, 40))]


def two_digits(value: float | None) -> str:
    """`0.73`, or a dash where there is none."""
    return NO_VALUE if value is None else f"{value:.2f}"


def between(estimate: Estimate | None) -> str:
    """The interval as `0.61 to 0.84`, nothing where there is none."""
    if estimate is None or estimate.interval is None:
        return ""
    return f"{estimate.interval[0]:.2f} to {estimate.interval[1]:.2f}"


def judged_by(calibration: Calibration) -> str:
    """Who judged, on one line."""
    names = ", ".join(calibration.models) or "scores that came with the labels"
    return f"{names} (a heuristic)" if calibration.heuristic else names


def verdict(calibration: Calibration) -> str:
    """One line: the agreement in words, with the figure that they stand for."""
    kappa = calibration.confusion.kappa
    if kappa is None:
        return f"{calibration.verdict}: judge or people say the same of all answers"
    return (
        f"{calibration.verdict}: kappa {kappa.value:.2f}, 95 % {between(kappa)} (in the words of Landis and Koch 1977)"
    )


def figures(calibration: Calibration) -> list[tuple[str, str, str, str]]:
    """What is measured, its value, its interval, and what it is."""
    confusion, kappa = calibration.confusion, calibration.confusion.kappa
    agreement, n = confusion.agreement, calibration.scored_by_people
    kappas = f"scores of {counted(n, 'answer')}, rounded"
    rows = [
        ("agreement", agreement and agreement.value, between(agreement), "share on the same side of the gate"),
        ("Cohen's kappa", kappa and kappa.value, between(kappa), "agreement beyond chance; 1 at best"),
        ("precision", confusion.precision, "", "of those that the judge fails, people fail"),
        ("recall", confusion.recall, "", "of those that people fail, the judge fails"),
        ("specificity", confusion.specificity, "", "of those that people pass, the judge passes"),
        (
            "AUROC",
            calibration.auroc and calibration.auroc.value,
            between(calibration.auroc),
            "passing above failing; 0.5 is chance",
        ),
    ]
    if n:
        rows += [
            ("linear kappa", calibration.linear_kappa, "", kappas),
            ("quadratic kappa", calibration.quadratic_kappa, "", kappas),
            ("Spearman", calibration.spearman, "", f"ranks of {counted(n, 'answer')}"),
        ]
    return [(name, two_digits(value), interval, about) for name, value, interval, about in rows]


def threshold_line(aim: str, threshold: Threshold | str, gate: str) -> str:
    """One line: what the limit reaches on answers that were not used to find it, against the present gate."""
    if isinstance(threshold, str):
        return f"{AIMS[aim]}: no limit is suggested: {threshold}"
    if threshold.is_present:
        return f"{AIMS[aim]} {threshold.present:.2f}: the present gate serves best"
    low, high = threshold.gain_interval
    doubt = f"{'may be chance' if threshold.gain > 0 else 'no gain'}: keep {gate}"
    advice = "beyond chance" if threshold.is_clearly_better else doubt
    first, last = map(short, threshold.chosen)
    spread = "" if first == last else f"; over the folds {first} to {last}"
    return (
        f"{AIMS[aim]} {threshold.held_out:.2f} held out, {threshold.present:.2f} at {gate}: "
        f"gain {threshold.gain:+.2f} ({low:+.2f} to {high:+.2f}), {advice}{spread}"
    )


def found_gate(metric: str, threshold: Threshold) -> str:
    """The limit as a gate: `groundedness >= 2.8`."""
    return f"{metric} >= {threshold.limit:.12g}"


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _headline(calibration: Calibration) -> Iterator[str]:
    scored = f"{len(calibration.cases)} of {calibration.labelled} labelled answers scored"
    yield f"{judged_by(calibration)} against people: {calibration.gate}, {scored}"
    yield verdict(calibration)


def _confusion(calibration: Calibration) -> Iterator[str]:
    confusion = calibration.confusion
    rows = [
        ("", "judge fails it", "judge passes it"),
        ("people fail it", str(confusion.tp), str(confusion.fn)),
        ("people pass it", str(confusion.fp), str(confusion.tn)),
    ]
    yield from aligned(rows)


def _figures(calibration: Calibration) -> Iterator[str]:
    yield from aligned(figures(calibration), to_the_left=True)


def _thresholds(calibration: Calibration) -> Iterator[str]:
    reasons = {threshold for threshold in calibration.thresholds.values() if isinstance(threshold, str)}
    if len(reasons) == 1:
        yield f"  no limit is suggested: {next(iter(reasons))}"
        return
    for aim, threshold in calibration.thresholds.items():
        limit = "" if isinstance(threshold, str) else f"{found_gate(calibration.metric, threshold)}  "
        yield f"  {limit}{threshold_line(aim, threshold, str(calibration.gate))}"


def _pass_rates(calibration: Calibration) -> Iterator[str]:
    rows = [
        ("  labelled, by people", two_digits(_value(calibration.human_rate)), between(calibration.human_rate)),
        ("  labelled, by the judge", two_digits(_value(calibration.judge_rate)), between(calibration.judge_rate)),
    ]
    more = calibration.unlabelled
    if more is not None:
        by_judge, corrected = calibration.judge_rate_unlabelled, calibration.corrected_rate
        rows += [
            (f"  {len(more.passing)} unlabelled, by the judge", two_digits(_value(by_judge)), between(by_judge)),
            ("  unlabelled, by people (estimated)", two_digits(_value(corrected)), between(corrected)),
        ]
    yield from aligned(rows, to_the_left=True)
    if more is not None:
        counts = [f"{more.without_score} without a score"] * bool(more.without_score)
        counts += [f"{more.left_out} labelled and counted there"] * bool(more.left_out)
        left_out = f"; left out: {', '.join(counts)}" if counts else ""
        yield (
            f"  run {more.run_id}{left_out}. Estimated by prediction-powered inference; holds if the labelled answers "
            "were drawn at random from the same answers"
        )


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value


def _not_scored(calibration: Calibration) -> Iterator[str]:
    if calibration.unscored:
        yield f"not scored by the judge, and in no figure: {sum(calibration.unscored.values())}"
        yield from _counts(calibration.unscored)
    if calibration.errors:
        yield f"errors, in no figure: {sum(calibration.errors.values())}"
        yield from _counts(calibration.errors)
        yield from (f"  error: {message}" for message in calibration.messages[:MOST_SHOWN])
        if len(calibration.messages) > MOST_SHOWN:
            yield f"  and {len(calibration.messages) - MOST_SHOWN} other messages"


def _counts(counts: Mapping[str, int]) -> Iterator[str]:
    shown = list(counts.items())[: 2 * MOST_SHOWN]
    yield from (f"  {n}  {shortened(name, 200)}" for name, n in shown)
    if len(counts) > len(shown):
        yield f"  and {len(counts) - len(shown)} other reasons"


def _disagreements(calibration: Calibration, width: int, *, show_texts: bool) -> Iterator[str]:
    cases = calibration.disagreements
    if not cases:
        return
    shown = cases[:MOST_SHOWN]
    yield "widest apart, of " + (f"{len(cases)} disagreements" if len(cases) > 1 else "1 disagreement")
    for case in shown:
        yield "  " + shortened(f"{case.id} · {both_sides(case)} · {case.place}", width - 2)
        texts = {"question": case.question, "answer": case.answer, "judge": case.reasoning} if show_texts else {}
        for name, text in texts.items():
            if text.strip():
                yield f"    {name:<8}  {shortened(text, max(20, width - 14))}"


def both_sides(case: Case) -> str:
    """Both sides of one answer: `people fail it (1), judge 4.6`."""
    human = "" if case.human is None else f" ({short(case.human)})"
    return f"people {'pass' if case.passes else 'fail'} it{human}, judge {short(case.score)}"


def _within(line: str, width: int) -> list[str]:
    """The line, folded where it is too long, what follows indented."""
    if len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    folded = textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False, replace_whitespace=False)
    return folded or [""]
