"""The part of summary.md that sets a run beside the baseline and the complete run before it: one table for both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pytest_rageval.compare.gate_lines import evidence
from pytest_rageval.numbers import change, score_text
from pytest_rageval.report.markdown_text import escaped, folded, table

QUIET = ("unchanged", "new", "incomparable")
Comparison = Mapping[str, Any]


class Other(NamedTuple):
    """What the run is set beside: its name in the heads of the table, and in a sentence."""

    short: str
    name: str
    comparison: Comparison


def beside_others(
    baseline: Comparison | None, previous: Comparison | None, *, is_partial: bool, can_be_baseline: bool
) -> Iterator[str]:
    """`previous`: the comparison with the run before this one; left out where that is the baseline."""
    is_same = bool(baseline and previous and baseline["baseline_run_id"] == previous["baseline_run_id"])
    others = [Other("baseline", "the baseline", baseline)] if baseline else []
    if previous and not is_same:
        others.append(Other("previous", "the previous run", previous))
    yield "## Compared"
    yield ""
    yield _with_which(baseline, previous, is_same=is_same, can_be_baseline=can_be_baseline)
    yield ""
    for other in others:
        for problem in other.comparison["problems"]:
            yield f"**Not comparable with {other.name} as they are**: {escaped(problem)}."
            yield ""
    yield from _moved(others)
    for other in others:
        yield from _cases(other, is_partial=is_partial)


def _with_which(
    baseline: Comparison | None, previous: Comparison | None, *, is_same: bool, can_be_baseline: bool
) -> str:
    before = f"The previous complete run is {escaped(previous['baseline_run_id'])}" if previous else ""
    if is_same:
        return f"{before}; it is the baseline."
    if not baseline:
        advice = ": `pytest --rageval-update-baseline` makes this run the first one" if can_be_baseline else ""
        none = f"There was no baseline{advice}"
        return f"{none}. {before}." if before else f"{none}, and no complete run before this one."
    first = f"The baseline is {escaped(baseline['baseline_run_id'])}"
    return f"{first}. {before}." if before else f"{first}. There was no complete run before this one."


def _moved(others: list[Other]) -> Iterator[str]:
    """The metrics that moved against one of them: before, change and verdict of each, side by side."""
    names = dict.fromkeys(name for other in others for name in other.comparison["metrics"] if _has_moved(name, other))
    if not names:
        if others:
            yield "No metric moved beyond its tolerance or significantly."
            yield ""
        return
    heads = [f"{other.short}: {head}" for other in others for head in ("before", "change", "evidence", "verdict")]
    yield from table(["metric", "now", *heads], [_row(name, others) for name in names])


def _has_moved(name: str, other: Other) -> bool:
    return other.comparison["metrics"][name]["verdict"] not in QUIET


def _row(name: str, others: list[Other]) -> list[str]:
    metrics = [other.comparison["metrics"].get(name) for other in others]
    now = next((metric["after"] for metric in metrics if metric is not None and metric["after"] is not None), None)
    return [f"`{name}`", score_text(now), *(cell for metric in metrics for cell in _cells(metric))]


def _cells(metric: Mapping[str, Any] | None) -> list[str]:
    if metric is None:
        return ["–", "–", "", "not there"]
    numbers = [score_text(metric["before"]), change(metric["delta"])]
    return [*numbers, escaped(evidence(metric)), escaped(metric["verdict"])]


def _cases(other: Other, *, is_partial: bool) -> Iterator[str]:
    """What became of cases. Those that newly fail against the baseline stand above, among what fails now."""
    comparison, place = other.comparison, "metrics.json"
    titles = {
        "flipped_to_fail": f"Fail now, did not in {other.name}",
        "flipped_to_pass": f"Pass now, failed in {other.name}",
        "not_measured": f"Failed in {other.name} by gates that were not measured now",
        "newly_gated": f"Fail gates that {other.name} did not measure",
        "only_before": f"Only in {other.name}",
        "only_after": f"Not in {other.name}",
        "changed_cases": f"Another case than in {other.name}, compared with nothing",
    }
    if other.short == "baseline":
        del titles["flipped_to_fail"]
    if is_partial:  # the other cases are no news
        del titles["only_before"]
    listed = {title: comparison[name] for name, title in titles.items() if comparison[name]}
    lines = [line for title, keys in listed.items() for line in folded(title, keys, place)]
    if lost := comparison["unmeasured"]:
        cases = [f"{case['case_key']} ({case['reason']})" for case in lost]
        lines += folded(f"Have no score now, had one in {other.name}", cases, place)
    yield from lines
    yield from [""] * bool(lines)
