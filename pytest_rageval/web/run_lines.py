"""Runs as lines of a list and cards of the dashboard: what the index holds of them, in words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.numbers import duration
from pytest_rageval.render.html.figures import Spark, spark
from pytest_rageval.render.html.first_screen import PREFERRED
from pytest_rageval.web.index.run_queries import metric_means, pass_rates
from pytest_rageval.web.index.run_rows import RunRow
from pytest_rageval.web.versions.version_names import versions_title

UNVERSIONED_TITLE = "unversioned (pytest)"
CARD_METRICS = 3


class RunLine(NamedTuple):
    """A run of a list.

    rate       share of cases that pass, in per cent
    change     of that against the run it was compared with, in points of the cases that were compared; '' where that
               is not known
    tone       of the change: worse, better or plain
    took       from the beginning to the end
    begun      UTC, to the minute
    """

    run: RunRow
    rate: str
    change: str
    tone: str
    took: str
    begun: str
    trend: Spark | None


class RunCard(NamedTuple):
    """The last run of a series on the dashboard, with its most looked-at metrics as name and value."""

    line: RunLine
    metrics: Sequence[tuple[str, float]]
    p95: str


def lines_of_runs(connection: sqlite3.Connection, runs: Sequence[RunRow]) -> list[RunLine]:
    """A line a run, in the same order."""
    return [_line(connection, run) for run in runs]


def run_cards(connection: sqlite3.Connection, runs: Sequence[RunRow]) -> list[RunCard]:
    """A card a run, in the same order."""
    return [
        RunCard(line, chosen_metrics(metric_means(connection, line.run.run_id).items(), CARD_METRICS), _p95(line.run))
        for line in lines_of_runs(connection, runs)
    ]


def chosen_metrics(means: Iterable[tuple[str, float | None]], most: int) -> list[tuple[str, float]]:
    """Of the metrics that have a value those that people look for first."""
    by_bare: dict[str, tuple[str, float]] = {}
    for name, mean in means:
        if mean is not None:
            by_bare.setdefault(name.partition("@")[0], (name, mean))
    preferred = [by_bare.pop(name) for name in PREFERRED if name in by_bare]
    return [*preferred, *by_bare.values()][:most]


def made_from(run: RunRow, data: Path) -> str:
    """`Shop bot v4 × Products v2`, by the names that they have in the data folder; of a run of pytest what it asked."""
    if run.agent or run.dataset:
        return versions_title(data, (run.agent, run.agent_version), (run.dataset, run.dataset_version))
    return f"{UNVERSIONED_TITLE} · {run.target}" if run.target else UNVERSIONED_TITLE


def _line(connection: sqlite3.Connection, run: RunRow) -> RunLine:
    rate, points = run.pass_rate, run.points
    return RunLine(
        run=run,
        rate="–" if rate is None else f"{100 * rate:.1f} %",
        change="" if points is None else f"{points:+.1f}" if points else "=",
        tone="plain" if not points else "better" if points > 0 else "worse",
        took="–" if run.seconds is None else duration(1000 * run.seconds) if run.seconds else "< 1 s",
        begun=run.begun[:16].replace("T", " "),
        trend=spark(pass_rates(connection, run)) if run.is_finished else None,
    )


def _p95(run: RunRow) -> str:
    return "" if run.p95_ms is None else f"p95 {duration(run.p95_ms)}"
