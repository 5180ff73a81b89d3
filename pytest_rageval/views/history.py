"""Runs in time: the results of each, what changed before it, and the trend of the complete ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_rageval.model import Json
from pytest_rageval.runs.config_diff import SettingChange, setting_text
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


@dataclass(frozen=True, slots=True)
class HistoryView:
    """The runs of one dataset in time."""

    runs: Section


def history_view(runs: Sequence[PastRun], metrics: Sequence[str]) -> HistoryView:
    """Return the view of the runs of one dataset, the oldest first."""
    title = f"cases of version {value_words(runs[-1].dataset_version)}: {counted(len(runs), 'run')}"
    return HistoryView((Line(title), runs_table(runs, metrics)))


def runs_table(runs: Sequence[PastRun], metrics: Sequence[str]) -> FigureTable:
    """Return the runs of one dataset, and the trend of the complete ones as a figure and as a chart."""
    has_names = not all(TIME_AS_ID.fullmatch(run.run_id) for run in runs)
    counts = COUNTS | ({KNOWN: "known"} if any(run.outcomes.get(KNOWN) for run in runs) else {})
    ended = ("ended (UTC)",) * has_names
    rows = [_run_row(run, counts, metrics, has_names=has_names) for run in runs]
    complete = [run for run in runs if not run.is_partial]
    values = [[run.overall for run in complete], *([run.value(name) for run in complete] for name in metrics)]
    blank = ("",) * (len(ended) + len(counts))
    if len(complete) > 1:
        rows.append(TableRow(("first to last", *blank, *map(_trend, values))))
    if len(complete) > 2:
        rows.append(TableRow((f"last {min(len(complete), CHARTED)} runs", *blank, *map(_chart, values))))
    return FigureTable(("run", *ended, *counts.values(), "overall", *metrics), tuple(rows))


def _run_row(run: PastRun, counts: Iterable[str], metrics: Sequence[str], *, has_names: bool) -> TableRow:
    ended = (run.timestamp[:16].replace("T", " "),) * has_names
    figures = (score_text(value) for value in (run.overall, *map(run.value, metrics)))
    notes = ["partial"] * run.is_partial
    if run.judge_requests:
        dollars = "" if run.judge_usd is None else f", ${run.judge_usd:.4f}"
        notes.append(f"judge: {counted(run.judge_requests, 'request')}{dollars}")
    notes += map(change_words, run.changes)
    return TableRow(
        (run.run_id, *ended, *(str(run.outcomes.get(name, 0)) for name in counts), *figures), note="; ".join(notes)
    )


def _trend(values: Sequence[float | None]) -> str:
    """Return the change from the first value to the last."""
    numbers = [value for value in values if value is not None]
    return change(numbers[-1] - numbers[0]) if len(numbers) > 1 else NO_VALUE


def _chart(values: Sequence[float | None]) -> str:
    """Return the last values as bars between their minimum and maximum, a dot for a run without one."""
    shown = values[-CHARTED:]
    numbers = [value for value in shown if value is not None]
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    step = (high - low) / (len(BARS) - 1)
    middle = BARS[len(BARS) // 2]
    return "".join("·" if each is None else BARS[round((each - low) / step)] if step else middle for each in shown)


def change_words(setting: SettingChange) -> str:
    """Return `k 5→10`, or what was added to a list and removed from it."""
    before, after = setting.before, setting.after
    if isinstance(before, list) and isinstance(after, list):
        parts = [*(f"+{value_words(item)}" for item in after), *(f"-{value_words(item)}" for item in before)]
        return f"{value_words(setting.name)} {' '.join(parts)}"
    return f"{value_words(setting.name)} {value_words(before)}→{value_words(after)}"


def value_words(value: Json) -> str:
    """Return a setting or version, cut for a table."""
    return cut(setting_text(value), WIDEST)
