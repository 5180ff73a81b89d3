"""Runs in time: the results of each, what changed before it, and the trend of the complete ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_rageval.io.suggestions import listed
from pytest_rageval.metrics.calls import OPERATION_UNITS
from pytest_rageval.model import Json
from pytest_rageval.runs.config_diff import SettingChange, setting_text
from pytest_rageval.runs.flaky_cases import SHOWN
from pytest_rageval.runs.history import PastRun
from pytest_rageval.text import NO_VALUE, change, counted, cut, score_text
from pytest_rageval.views.parts import FigureTable, Line, Section, TableRow

TIME_AS_ID = re.compile(r"\d{8}_\d{6}(_\d+)?")
"""The id of a run without a given name, which repeats its time."""
COUNTS = {"passed": "passed", "failed": "failed", "error": "error"}
KNOWN = "xfailed"
"""Known failures: a column only if a run has some."""
CHARTED = 12
"""Most runs of a chart, which must not widen its column much."""
BARS = "▁▂▃▄▅▆▇█"
WIDEST = 32
"""Columns of a setting's value."""


@dataclass(frozen=True, slots=True)
class HistoryView:
    """The runs of one dataset in time."""

    runs: Section
    """The dataset's version, and its runs in a table, the oldest first."""


def history_view(runs: Sequence[PastRun], metrics: Sequence[str]) -> HistoryView:
    """Return the view of the runs of one dataset, the oldest first."""
    title = f"cases of version {value_words(runs[-1].dataset_version)}: {counted(len(runs), 'run')}"
    return HistoryView((Line(title), runs_table(runs, metrics)))


def runs_table(runs: Sequence[PastRun], metrics: Sequence[str]) -> FigureTable:
    """Return the runs of one dataset, and the trend of the complete ones as a figure and as a chart."""
    has_names = not all(TIME_AS_ID.fullmatch(run.run_id) for run in runs)
    counts = dict(COUNTS)
    if any(run.outcomes.get(KNOWN) for run in runs):
        counts[KNOWN] = "known"
    heads = ["run", "ended (UTC)", *counts.values()] if has_names else ["run", *counts.values()]
    rows = [_run_row(run, counts, metrics, has_names=has_names) for run in runs]
    complete = [run for run in runs if not run.is_partial]
    overall = [run.overall for run in complete]
    values = [overall, *(_values_of(name, complete) for name in metrics)]
    units = [None, *(OPERATION_UNITS.get(name) for name in metrics)]
    blank = [""] * (len(heads) - 1)
    if len(complete) > 1:
        rows.append(TableRow(("first to last", *blank, *map(_trend, values, units))))
    if len(complete) > 2:
        charted = f"last {min(len(complete), CHARTED)} runs"
        rows.append(TableRow((charted, *blank, *map(_chart, values))))
    return FigureTable((*heads, "overall", *metrics), tuple(rows))


def _values_of(metric: str, runs: Sequence[PastRun]) -> list[float | None]:
    return [run.value(metric) for run in runs]


def _run_row(run: PastRun, counts: Iterable[str], metrics: Sequence[str], *, has_names: bool) -> TableRow:
    cells = [run.run_id]
    if has_names:
        cells.append(run.timestamp[:16].replace("T", " "))
    cells += [str(run.outcomes.get(name, 0)) for name in counts]
    cells.append(score_text(run.overall))
    cells += [score_text(run.value(name), OPERATION_UNITS.get(name)) for name in metrics]
    return TableRow(tuple(cells), note="; ".join(_notes(run)))


def _notes(run: PastRun) -> Iterator[str]:
    if run.is_partial:
        yield "partial"
    if run.flaky:
        yield f"{len(run.flaky):,} flaky ({listed(run.flaky, SHOWN)})"
    if run.judge_requests:
        dollars = "" if run.judge_usd is None else f", ${run.judge_usd:.4f}"
        yield f"judge: {counted(run.judge_requests, 'request')}{dollars}"
    yield from map(change_words, run.changes)


def _trend(values: Sequence[float | None], unit: str | None) -> str:
    """Return the change from the first value to the last."""
    numbers = [value for value in values if value is not None]
    return change(numbers[-1] - numbers[0], unit) if len(numbers) > 1 else NO_VALUE


def _chart(values: Sequence[float | None]) -> str:
    """Return the last values as bars between their minimum and maximum, a dot for a run without one."""
    shown = values[-CHARTED:]
    numbers = [value for value in shown if value is not None]
    low = min(numbers, default=0.0)
    high = max(numbers, default=0.0)
    step = (high - low) / (len(BARS) - 1)
    chart = ""
    for value in shown:
        if value is None:
            chart += "·"
        elif step:
            chart += BARS[round((value - low) / step)]
        else:
            chart += BARS[len(BARS) // 2]
    return chart


def change_words(setting: SettingChange) -> str:
    """Return `k 5→10`, or what was added to a list and removed from it."""
    name = value_words(setting.name)
    before = setting.before
    after = setting.after
    if isinstance(before, list) and isinstance(after, list):
        parts = [f"+{value_words(item)}" for item in after]
        parts += [f"-{value_words(item)}" for item in before]
        return f"{name} {' '.join(parts)}"
    return f"{name} {value_words(before)}→{value_words(after)}"


def value_words(value: Json) -> str:
    """Return a setting or version, cut for a table."""
    return cut(setting_text(value), WIDEST)
