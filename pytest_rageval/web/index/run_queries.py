"""Questions to the index: lists of runs, their trends, what they are chosen by, and how their lines read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.render.html.figures import Spark, spark
from pytest_rageval.render.html.first_screen import PREFERRED
from pytest_rageval.runs.history import PastRun, with_changes
from pytest_rageval.text import duration
from pytest_rageval.web.index.run_rows import RUN_COLUMNS, RUN_STATES, RunRow
from pytest_rageval.web.versions.version_folder import versions_title

UNVERSIONED = "unversioned"
"""Stands in filters for runs without an agent, or a data set, of this app."""
TREND = 20
MOST_WORDS = 20
_SELECT = f"SELECT {', '.join(f'r.{column}' for column in RUN_COLUMNS)} FROM runs AS r"  # noqa: S608  names of ours
_LAST_OF_SERIES = """r.word IS NOT NULL AND NOT r.is_partial AND r.run_id = (
    SELECT s.run_id FROM runs AS s WHERE s.series = r.series AND s.word IS NOT NULL AND NOT s.is_partial
    ORDER BY s.begun DESC, s.run_id DESC LIMIT 1)"""
_NEWEST_FIRST = "ORDER BY r.begun DESC, r.run_id DESC"


@dataclass(frozen=True, slots=True)
class RunFilter:
    """What a list of runs is narrowed to; a blank field narrows nothing."""

    agent: str = ""
    dataset: str = ""
    source: str = ""
    state: str = ""
    text: str = ""

    @property
    def asked(self) -> dict[str, str]:
        """The fields that narrow, as an address holds them."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name))}


class RunChoices(NamedTuple):
    """What there is to choose from in the filters of a list."""

    agents: Sequence[str]
    datasets: Sequence[str]
    sources: Sequence[str]
    states: Sequence[str]


class RunList(NamedTuple):
    """A page of runs, the newest first; `left` by the filter of `total`."""

    runs: Sequence[RunRow]
    left: int
    total: int


def run_list(connection: sqlite3.Connection, narrowed: RunFilter, page: int = 1, size: int = 50) -> RunList:
    """One page of the runs that a filter leaves."""
    where, values = _where(narrowed)
    (total,) = connection.execute("SELECT count(*) FROM runs").fetchone()
    (left,) = connection.execute(f"SELECT count(*) FROM runs AS r WHERE {where}", values).fetchone()  # noqa: S608
    offset = min(size * (max(page, 1) - 1), 2**62)
    rows = connection.execute(f"{_SELECT} WHERE {where} {_NEWEST_FIRST} LIMIT ? OFFSET ?", (*values, size, offset))
    return RunList([_run(row) for row in rows], left, total)


def run_choices(connection: sqlite3.Connection) -> RunChoices:
    """Agents, data sets, sources and states of the runs that there are."""
    agents, datasets, sources, states = (
        {value for (value,) in connection.execute(f"SELECT DISTINCT {column} FROM runs")}  # noqa: S608  our own names
        for column in ("agent", "dataset", "source", "state")
    )
    return RunChoices(
        _named(agents), _named(datasets), sorted(sources), [state for state in RUN_STATES if state in states]
    )  # fmt: skip


def run_by_id(connection: sqlite3.Connection, run_id: str) -> RunRow | None:
    """The row of a run, if there is one."""
    row = connection.execute(f"{_SELECT} WHERE r.run_id = ?", (run_id,)).fetchone()
    return _run(row) if row else None


def runs_by_id(connection: sqlite3.Connection, run_ids: Iterable[str]) -> dict[str, RunRow]:
    """Rows of some runs; those that are not there are left out."""
    rows = {run_id: run_by_id(connection, run_id) for run_id in run_ids}
    return {run_id: row for run_id, row in rows.items() if row is not None}


def latest_of_series(connection: sqlite3.Connection, most: int) -> list[RunRow]:
    """The last whole run of each series, the newest first: what a dashboard is about."""
    rows = connection.execute(f"{_SELECT} WHERE {_LAST_OF_SERIES} {_NEWEST_FIRST} LIMIT ?", (most,))
    return [_run(row) for row in rows]


def pass_rates(connection: sqlite3.Connection, run: RunRow) -> list[float | None]:
    """Shares of passing cases of the last whole runs of its series up to this one, the oldest first.

    Only runs of the same cases: with others a share means something else.
    """
    rows = connection.execute(
        "SELECT passed * 1.0 / cases FROM runs WHERE series = ? AND dataset_hash IS ? "
        "AND word IS NOT NULL AND NOT is_partial AND cases > 0 "
        "AND (begun, run_id) <= (?, ?) ORDER BY begun DESC, run_id DESC LIMIT ?",
        (run.series, run.dataset_hash, run.begun, run.run_id, TREND),
    )
    return [rate for (rate,) in rows][::-1]


def metric_means(connection: sqlite3.Connection, run_id: str) -> dict[str, float | None]:
    """By name the means of a run's metrics."""
    return dict(connection.execute("SELECT metric, mean FROM run_metrics WHERE run_id = ?", (run_id,)))


class DatasetRuns(NamedTuple):
    """Cases that were run with: a key, what people call them, and how many finished runs there are.

    key  the hash of the cases; of a data set over all its versions its name
    """

    key: str
    name: str
    runs: int


def datasets_run(connection: sqlite3.Connection) -> list[DatasetRuns]:
    """The data sets of finished runs, the one of the last run first, each with all its versions and by version."""
    rows = connection.execute(
        "SELECT dataset_hash, max(dataset), max(dataset_version), count(*), max(cases) FROM runs "
        "WHERE word IS NOT NULL GROUP BY dataset_hash ORDER BY max(begun) DESC"
    ).fetchall()
    versions: dict[str, list[DatasetRuns]] = {}
    for key, name, version, runs, cases in rows:
        named = f"{name} v{version}" if name else f"{cases} cases, {key[:8]}"
        versions.setdefault(name or key, []).append(DatasetRuns(key, named, runs))
    return [each for name, group in versions.items() for each in (*_over_versions(name, group), *group)]


def _over_versions(name: str, group: Sequence[DatasetRuns]) -> list[DatasetRuns]:
    return [DatasetRuns(name, f"{name}, all versions", sum(each.runs for each in group))] if len(group) > 1 else []


def past_runs(connection: sqlite3.Connection, dataset: str, agent: str = "", most: int = 200) -> list[PastRun]:
    """The last finished runs of a data set in time, with what was changed in between.

    dataset  a `key` of `datasets_run`
    agent    only its runs; `UNVERSIONED` are those without one
    """
    where, values = _where(RunFilter(agent=agent))
    rows = connection.execute(
        f"{_SELECT} WHERE r.word IS NOT NULL AND (r.dataset_hash = ? OR r.dataset = ?) AND {where} "
        "ORDER BY r.ended DESC, r.run_id DESC LIMIT ?",
        (dataset, dataset, *values, most),
    ).fetchall()  # fmt: skip
    return list(with_changes(_past_run(connection, _run(row)) for row in reversed(rows)))


def recent_runs_of(connection: sqlite3.Connection, run_id: str, most: int = TREND) -> list[PastRun]:
    """A run and the whole ones of the same cases before it, the oldest first; none where the index does not have it."""
    rows = connection.execute(
        f"{_SELECT}, runs AS own WHERE own.run_id = ? AND r.word IS NOT NULL AND r.dataset_hash = own.dataset_hash "
        "AND (r.begun, r.run_id) <= (own.begun, own.run_id) AND (NOT r.is_partial OR r.run_id = own.run_id) "
        f"{_NEWEST_FIRST} LIMIT ?",
        (run_id, most),
    ).fetchall()
    return list(with_changes(_past_run(connection, _run(row)) for row in reversed(rows)))


def _past_run(connection: sqlite3.Connection, run: RunRow) -> PastRun:
    (settings,) = connection.execute("SELECT settings FROM run_settings WHERE run_id = ?", (run.run_id,)).fetchone()
    outcomes = {"passed": run.passed, "failed": run.failed, "error": run.errors, "skipped": run.skipped,
                "xfailed": run.known}  # fmt: skip
    return PastRun(
        run_id=run.run_id, timestamp=run.ended or run.begun, dataset_version=run.dataset_version,
        dataset_hash=run.dataset_hash or "", is_partial=bool(run.is_partial), k=run.k or 0, total=run.cases or 0,
        outcomes={name: number or 0 for name, number in outcomes.items()}, overall=run.overall,
        metrics=metric_means(connection, run.run_id), description=run.description,
        settings=json.loads(settings) | ({"agent": f"{run.agent} v{run.agent_version}"} if run.agent else {}),
    )  # fmt: skip


def _run(row: Sequence[Any]) -> RunRow:
    return RunRow(*row)


def _where(narrowed: RunFilter) -> tuple[str, tuple[str, ...]]:
    """The condition of a filter: names of columns are ours, values are bound."""
    parts, values = ["1"], []
    for column in ("agent", "dataset", "source", "state"):
        value = getattr(narrowed, column)
        if value == UNVERSIONED:
            parts.append(f"r.{column} IS NULL")
        elif value:
            parts.append(f"r.{column} = ?")
            values.append(value)
    for word in narrowed.text.lower().split()[:MOST_WORDS]:
        parts.append("instr(r.searched, ?) > 0")
        values.append(word)
    return " AND ".join(parts), tuple(values)


def _named(values: Iterable[str | None]) -> list[str]:
    """Names in order; that of what has none comes last."""
    values = set(values)
    return [*sorted(value for value in values if value), *([UNVERSIONED] if None in values else [])]


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
