"""Lists of runs: their filter, their lines and cards, and their metrics over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.render.html.figures import Spark, spark
from pytest_rageval.render.html.first_screen import PREFERRED
from pytest_rageval.runs.history import PastRun, with_changes
from pytest_rageval.web.run_rows import RUN_STATES, RunRow
from pytest_rageval.web.versions.version_folder import versions_title

UNVERSIONED = "unversioned"
"""The filter value for runs without an agent or dataset of this app."""
UNVERSIONED_TITLE = "unversioned (pytest)"
TREND = 20
CARD_METRICS = 3
Rows = Sequence[RunRow]
"""All runs, the newest first."""


class RunFilter(NamedTuple):
    """A filter of a list of runs; blank fields match every run."""

    agent: str = ""
    dataset: str = ""
    source: str = ""
    state: str = ""
    text: str = ""

    @property
    def asked(self) -> dict[str, str]:
        """Return the fields in use, as query parameters."""
        return {name: value for name, value in self._asdict().items() if value}

    def of(self, rows: Rows) -> list[RunRow]:
        """Return the runs that meet all fields."""
        exact = {name: value for name, value in self.asked.items() if name != "text"}
        words = {*self.text.lower().split()}
        return [
            run
            for run in rows
            if all((getattr(run, name) or UNVERSIONED) == value for name, value in exact.items())
            and all(word in run.searched for word in words)
        ]


class RunChoices(NamedTuple):
    """The choices of a list's filters."""

    agents: Sequence[str]
    datasets: Sequence[str]
    sources: Sequence[str]
    states: Sequence[str]


def run_choices(rows: Rows) -> RunChoices:
    """Return the agents, datasets, sources and states of the existing runs."""
    states = {run.state for run in rows}
    return RunChoices(
        _named({run.agent for run in rows}),
        _named({run.dataset for run in rows}),
        sorted({run.source for run in rows}),
        [state for state in RUN_STATES if state in states],
    )


def _named(values: Iterable[str | None]) -> list[str]:
    """Return the names in order, `UNVERSIONED` last."""
    values = set(values)
    return [*sorted(value for value in values if value), *([UNVERSIONED] if None in values else [])]


def latest_of_series(rows: Rows, most: int) -> list[RunRow]:
    """Return the last complete run of each series, the newest first, for the dashboard."""
    latest: dict[object, RunRow] = {}
    for run in _complete_runs(rows):
        latest.setdefault(run.series, run)
    return list(latest.values())[:most]


def _complete_runs(rows: Rows) -> Iterable[RunRow]:
    return (run for run in rows if run.is_finished and not run.is_partial)


# ── metrics in time ───────────────────────────────────────────────────────────────────────────────────────────


class DatasetRuns(NamedTuple):
    """The number of finished runs over the same cases.

    key   hash of the cases, or the name of a dataset over all its versions
    name  for display
    """

    key: str
    name: str
    runs: int


def datasets_run(rows: Rows) -> list[DatasetRuns]:
    """Return the datasets of finished runs, the latest first, each over all its versions and by version."""
    by_cases: dict[str, list[RunRow]] = {}
    for run in rows:
        if run.past is not None:
            by_cases.setdefault(run.past.dataset_hash, []).append(run)
    versions: dict[str, list[DatasetRuns]] = {}
    for key, runs in by_cases.items():
        run = next((run for run in runs if run.dataset), runs[0])
        named = f"{run.dataset} v{run.dataset_version}" if run.dataset else f"{run.cases} cases, {key[:8]}"
        versions.setdefault(run.dataset or key, []).append(DatasetRuns(key, named, len(runs)))
    return [each for name, group in versions.items() for each in (*_over_versions(name, group), *group)]


def _over_versions(name: str, group: Sequence[DatasetRuns]) -> list[DatasetRuns]:
    return [DatasetRuns(name, f"{name}, all versions", sum(each.runs for each in group))] if len(group) > 1 else []


def past_runs(rows: Rows, dataset: str, agent: str = "", most: int = 200) -> list[PastRun]:
    """Return the last finished runs of a dataset in order of time, with the changes between them.

    dataset  a `key` of `datasets_run`
    agent    only its runs; `UNVERSIONED` selects those without one
    """
    runs = [
        run.past
        for run in RunFilter(agent=agent).of(rows)
        if run.past is not None and dataset in (run.past.dataset_hash, run.dataset)
    ]
    return list(with_changes(sorted(runs, key=lambda run: (run.timestamp, run.run_id))[-most:]))


def recent_runs_of(rows: Rows, run_id: str) -> list[PastRun]:
    """Return the earlier complete runs of the same cases and this run, the oldest first; none if it is unknown."""
    place = next((place for place, run in enumerate(rows) if run.run_id == run_id), None)
    own = None if place is None else rows[place].past
    if place is None or own is None:
        return []
    before = [
        run.past for run in _complete_runs(rows[place + 1 :]) if run.past and run.past.dataset_hash == own.dataset_hash
    ]
    return list(with_changes([own, *before][:TREND][::-1]))


# ── lines and cards ───────────────────────────────────────────────────────────────────────────────────────────


def trends_of(rows: Rows, shown: Rows) -> dict[str, Spark | None]:
    """Return the line of the pass rates up to each of the `shown` runs, by id."""
    series: dict[object, list[RunRow]] = {}
    for run in _complete_runs(rows):
        series.setdefault(_trend_key(run), []).append(run)
    trends: dict[str, Spark | None] = {}
    for run in shown:
        if run.is_finished:
            own = (run.begun, run.run_id)
            before = (each.pass_rate for each in series.get(_trend_key(run), ()) if (each.begun, each.run_id) <= own)
            trends[run.run_id] = spark([*islice(before, TREND)][::-1])
    return trends


def card_metrics(run: RunRow) -> list[tuple[str, float]]:
    """Return the names and means of a run's main metrics."""
    return chosen_metrics(run.past.metrics.items() if run.past else (), CARD_METRICS)


def chosen_metrics(means: Iterable[tuple[str, float | None]], most: int) -> list[tuple[str, float]]:
    """Return up to `most` metrics that have a value, the preferred ones first."""
    by_bare: dict[str, tuple[str, float]] = {}
    for name, mean in means:
        if mean is not None:
            by_bare.setdefault(name.partition("@")[0], (name, mean))
    preferred = [by_bare.pop(name) for name in PREFERRED if name in by_bare]
    return [*preferred, *by_bare.values()][:most]


def made_from(run: RunRow, data: Path) -> str:
    """Return `Shop bot v4 × Products v2`, with the current names; for a run of pytest its target."""
    if run.agent or run.dataset:
        return versions_title(data, (run.agent, run.agent_version), (run.dataset, run.dataset_version))
    return f"{UNVERSIONED_TITLE} · {run.target}" if run.target else UNVERSIONED_TITLE


def _trend_key(run: RunRow) -> tuple[object, ...]:
    """Return the key of a run's trend. A trend has runs of the same cases: other pass rates are not comparable."""
    return run.series, run.past.dataset_hash if run.past else None
