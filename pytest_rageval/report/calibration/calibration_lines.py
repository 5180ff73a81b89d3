"""What did a comparison of judge and people find? As lines for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pytest_rageval.report.columns import aligned, shortened
from pytest_rageval.report.numbers import NO_VALUE, short
from pytest_rageval.text import printable

if TYPE_CHECKING:
    from pytest_rageval.stats.agreement import Estimate
    from pytest_rageval.stats.thresholds import Threshold
    from pytest_rageval.workbench.calibrate import Calibration, Case

MOST_SHOWN = 5
AIMS = {"youden": "Youden's J", "agreement": "agreement"}


def calibration_lines(found: Calibration, *, width: int, show_texts: bool = True) -> list[str]:
    """The report within a width in columns; nothing in it can steer the terminal.

    `show_texts`: whether questions and the judge's reasoning may be shown; else ids alone.
    """
    parts = (
        _headline(found),
        _confusion(found),
        _figures(found),
        ["which limit would serve best (chosen on nine tenths, tried on the rest)", *_thresholds(found)],
        ["how many answers pass, with 95 % intervals", *_pass_rates(found)],
        _not_scored(found),
        _disagreements(found, width, show_texts=show_texts),
        [f"note: {note}" for note in found.notes],
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


def judged_by(found: Calibration) -> str:
    """Who judged, on one line."""
    names = ", ".join(found.models) or "scores that came with the labels"
    return f"{names} (a heuristic)" if found.heuristic else names


def verdict(found: Calibration) -> str:
    """One line: the agreement in words, with the figure that they stand for."""
    kappa = found.confusion.kappa
    if kappa is None:
        return f"{found.verdict}: judge or people say the same of all answers"
    return f"{found.verdict}: kappa {kappa.value:.2f}, 95 % {between(kappa)} (in the words of Landis and Koch 1977)"


def figures(found: Calibration) -> list[tuple[str, str, str, str]]:
    """What is measured, its value, its interval, and what it is."""
    confusion, kappa = found.confusion, found.confusion.kappa
    agreement, n = confusion.agreement, found.scored_by_people
    kappas = f"scores of {n} answers, rounded"
    rows = [
        ("agreement", agreement and agreement.value, between(agreement), "share on the same side of the gate"),
        ("Cohen's kappa", kappa and kappa.value, between(kappa), "agreement beyond chance; 1 at best"),
        ("precision", confusion.precision, "", "of those that the judge fails, people fail"),
        ("recall", confusion.recall, "", "of those that people fail, the judge fails"),
        ("specificity", confusion.specificity, "", "of those that people pass, the judge passes"),
        ("AUROC", found.auroc and found.auroc.value, between(found.auroc), "passing above failing; 0.5 is chance"),
    ]
    if n:
        rows += [
            ("linear kappa", found.linear_kappa, "", kappas),
            ("quadratic kappa", found.quadratic_kappa, "", kappas),
            ("Spearman", found.spearman, "", f"ranks of {n} answers"),
        ]
    return [(name, two_digits(value), interval, about) for name, value, interval, about in rows]


def threshold_line(aim: str, found: Threshold | str, gate: str) -> str:
    """One line: what the limit reaches on answers that were not used to find it, against the present gate."""
    if isinstance(found, str):
        return f"{AIMS[aim]}: no limit is suggested: {found}"
    if found.is_present:
        return f"{AIMS[aim]} {found.present:.2f}: the present gate serves best"
    low, high = found.gain_interval
    doubt = f"{'may be chance' if found.gain > 0 else 'no gain'}: keep {gate}"
    advice = "beyond chance" if found.is_clearly_better else doubt
    first, last = map(short, found.chosen)
    spread = "" if first == last else f"; over the folds {first} to {last}"
    return (
        f"{AIMS[aim]} {found.held_out:.2f} held out, {found.present:.2f} at {gate}: "
        f"gain {found.gain:+.2f} ({low:+.2f} to {high:+.2f}), {advice}{spread}"
    )


def found_gate(metric: str, found: Threshold) -> str:
    """The limit as a gate: `groundedness >= 2.8`."""
    return f"{metric} >= {found.limit:.12g}"


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _headline(found: Calibration) -> Iterator[str]:
    scored = f"{len(found.cases)} of {found.labelled} labelled answers scored"
    yield f"{judged_by(found)} against people: {found.gate}, {scored}"
    yield verdict(found)


def _confusion(found: Calibration) -> Iterator[str]:
    confusion = found.confusion
    rows = [
        ("", "judge fails it", "judge passes it"),
        ("people fail it", str(confusion.tp), str(confusion.fn)),
        ("people pass it", str(confusion.fp), str(confusion.tn)),
    ]
    yield from aligned(rows)


def _figures(found: Calibration) -> Iterator[str]:
    yield from aligned(figures(found), to_the_left=True)


def _thresholds(found: Calibration) -> Iterator[str]:
    reasons = {one for one in found.thresholds.values() if isinstance(one, str)}
    if len(reasons) == 1:
        yield f"  no limit is suggested: {next(iter(reasons))}"
        return
    for aim, one in found.thresholds.items():
        limit = "" if isinstance(one, str) else f"{found_gate(found.metric, one)}  "
        yield f"  {limit}{threshold_line(aim, one, str(found.gate))}"


def _pass_rates(found: Calibration) -> Iterator[str]:
    rows = [
        ("  labelled, by people", two_digits(_value(found.human_rate)), between(found.human_rate)),
        ("  labelled, by the judge", two_digits(_value(found.judge_rate)), between(found.judge_rate)),
    ]
    more = found.unlabelled
    if more is not None:
        by_judge, corrected = found.judge_rate_unlabelled, found.corrected_rate
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


def _not_scored(found: Calibration) -> Iterator[str]:
    if found.unscored:
        yield f"not scored by the judge, and in no figure: {sum(found.unscored.values())}"
        yield from _counts(found.unscored)
    if found.errors:
        yield f"errors, in no figure: {sum(found.errors.values())}"
        yield from _counts(found.errors)
        yield from (f"  error: {message}" for message in found.messages[:MOST_SHOWN])
        if len(found.messages) > MOST_SHOWN:
            yield f"  and {len(found.messages) - MOST_SHOWN} other messages"


def _counts(counts: Mapping[str, int]) -> Iterator[str]:
    shown = list(counts.items())[: 2 * MOST_SHOWN]
    yield from (f"  {n}  {shortened(name, 200)}" for name, n in shown)
    if len(counts) > len(shown):
        yield f"  and {len(counts) - len(shown)} other reasons"


def _disagreements(found: Calibration, width: int, *, show_texts: bool) -> Iterator[str]:
    cases = found.disagreements
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
