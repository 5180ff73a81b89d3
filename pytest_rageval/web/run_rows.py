"""One run as a row of a list: its verdict and figures, or why it has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pytest_rageval.comparison.verdict_sentence import SYMBOLS, with_verdict
from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.history import PastRun, past_run
from pytest_rageval.runs.reader import CONFIG, METRICS, RESULTS, StoredRun
from pytest_rageval.text import duration, printable

RunState = Literal["passed", "worse", "failed", "partial", "stopped", "running", "unreadable"]
RUN_STATES: Mapping[str, str] = {
    "passed": "no gate fails and no case newly fails",
    "worse": "cases newly fail, or a metric regressed",
    "failed": "a gate or a case fails, or the run was not comparable",
    "partial": "only a part of the cases ran",
    "stopped": "ended before all cases were asked; it can be resumed",
    "running": "a process is writing it",
    "unreadable": "its files are damaged or missing",
}
STATE_SYMBOLS = {"stopped": "◐", "running": "▶", "unreadable": "⊘"}
"""The symbols of states without a verdict."""
PYTEST = "pytest"
"""The source of a run that was not started in the browser."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in lists.

    begun          UTC, ISO 8601
    source         connector, uploaded answers, or pytest
    series         key of its trend: agent and dataset, else target and cases
    past           its aggregates; None if it has not ended
    cases          number of ended cases
    selected       number of selected cases of a partial run
    points         change of the pass rate since `compared_with`, in per cent of the compared cases
    seconds        from start to end
    tone, word, sentence  of the verdict; None without one
    problem        why it is unreadable or has no aggregates
    """

    run_id: str
    state: RunState
    begun: str
    source: str = PYTEST
    series: tuple[str | None, ...] = ()
    agent: str | None = None
    agent_version: str | None = None
    dataset: str | None = None
    dataset_version: str | None = None
    target: str | None = None
    past: PastRun | None = None
    cases: int | None = None
    selected: int | None = None
    points: float | None = None
    p95_ms: float | None = None
    seconds: int | None = None
    compared_with: str | None = None
    description: str | None = None
    tone: str | None = None
    word: str | None = None
    sentence: str | None = None
    problem: str | None = None

    @property
    def symbol(self) -> str:
        return SYMBOLS.get(self.word or "") or STATE_SYMBOLS.get(self.state, "○")

    @property
    def pass_rate(self) -> float | None:
        """Return the share of cases that pass, or None if none ended."""
        return self.past.outcomes.get("passed", 0) / self.past.total if self.past and self.past.total else None

    @property
    def rate(self) -> str:
        """Return the share of cases that pass in per cent; `–` if unknown."""
        return "–" if self.pass_rate is None else f"{100 * self.pass_rate:.1f} %"

    @property
    def change(self) -> str:
        """Return the change of the rate in points; blank if unknown."""
        return "" if self.points is None else f"{self.points:+.1f}" if self.points else "="

    @property
    def change_tone(self) -> str:
        return "plain" if not self.points else "better" if self.points > 0 else "worse"

    @property
    def took(self) -> str:
        """Return the time from start to end."""
        return "–" if self.seconds is None else duration(1000 * self.seconds) if self.seconds else "< 1 s"

    @property
    def begun_minute(self) -> str:
        return self.begun[:16].replace("T", " ")

    @property
    def is_finished(self) -> bool:
        """Return True if the run has aggregates, so that it can be compared."""
        return self.past is not None

    @property
    def is_partial(self) -> bool:
        return self.past is not None and self.past.is_partial

    @property
    def searched(self) -> str:
        """Return the lower-case text in which words are searched."""
        texts = (self.run_id, self.description, self.agent, self.dataset, self.target, self.sentence or self.problem)
        return " ".join(text for text in texts if text).lower()


def read_run(folder: Path) -> RunRow:
    """Return the row of a run folder in any state. Errors in its files become part of the row."""
    run = StoredRun(folder)
    try:
        state = run.state
        if state == "being written":
            return _unfinished(run, "running")
        if state == "interrupted":
            return _unfinished(run, "stopped")
        if state == "broken":
            return _unreadable(run, _why_broken(run))
        return _finished(run)
    except (SettingsError, OSError) as error:
        return _unreadable(run, str(error))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        # A file edited by hand: whatever is wrong with it, the other runs are still listed.
        return _unreadable(run, f"{METRICS} is not what a run writes: {type(error).__name__}: {error}")


def _why_broken(run: StoredRun) -> str:
    try:
        _ = run.config, run.metrics
    except SettingsError as error:
        return str(error)
    return f"{CONFIG} or {METRICS} cannot be read"


def _unreadable(run: StoredRun, problem: str) -> RunRow:
    begun = _time(run.path.stat().st_mtime) if run.path.is_dir() else _time(0)
    told = printable(problem.replace(f"{run.path}/", ""))
    return RunRow(printable(run.run_id), "unreadable", begun, problem=told)


def _unfinished(run: StoredRun, state: RunState) -> RunRow:
    row = _configured_row(run, state)
    if state == "running":
        return row
    return replace(
        row, cases=_lines(run.path / RESULTS), problem="it did not come to its end: its page says how to finish it"
    )


def _lines(path: Path) -> int:
    """Count the lines of a file; 0 if there is none."""
    try:
        with path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    except OSError:
        return 0


def _finished(run: StoredRun) -> RunRow:
    metrics = with_verdict(run.finished_metrics)
    verdict, latency = metrics["verdict"], metrics["volatile"].get("latency") or {}
    compared = metrics.get("comparison")
    comparison = compared if compared is not None and compared["compared"] else {}
    selected = (metrics.get("selection") or {}).get("selected")
    row = _configured_row(run, _state(metrics, selected))
    settings = {"agent": f"{row.agent} v{row.agent_version}"} if row.agent else {}
    past = past_run(run)
    past = replace(past, dataset_version=row.dataset_version, settings={**past.settings, **settings})
    return replace(
        row,
        past=past,
        cases=past.total,
        selected=selected,
        points=_points(comparison.get("paired")),
        compared_with=comparison.get("baseline_run_id"),
        p95_ms=latency.get("p95_ms"),
        seconds=max(int(run.timestamp.timestamp()) - int(datetime.fromisoformat(row.begun).timestamp()), 0),
        description=past.description,
        tone=verdict["tone"],
        word=verdict["word"],
        sentence=verdict["sentence"],
    )


def _state(metrics: Mapping[str, Any], selected: int | None) -> RunState:
    """Return the state for filters; the word of the verdict is more precise."""
    tone, word = metrics["verdict"]["tone"], metrics["verdict"]["word"]
    if metrics["partial"]:
        recorded = (metrics.get("selection") or {}).get("recorded", metrics["total_tests"])
        return "stopped" if selected is not None and recorded < selected else "partial"
    if tone in ("green", "grey"):
        return "passed"
    return "worse" if word == "Worse" else "failed"


def _points(paired: Mapping[str, int] | None) -> float | None:
    """Return the change of the pass rate in points, or None if it is not recorded or no case was compared."""
    if not paired or not paired["cases"]:
        return None
    return round(100 * (paired["passed_after"] - paired["passed_before"]) / paired["cases"], 1)


def _configured_row(run: StoredRun, state: RunState) -> RunRow:
    """Return a row with the values from the configuration, which every run has."""
    config = run.config
    origin, target = config.get("origin") or {}, config.get("target")
    agent, agent_version, dataset, dataset_version = (
        None if origin.get(name) is None else str(origin[name])
        for name in ("agent", "agent_version", "dataset", "dataset_version")
    )
    target = target if isinstance(target, str) else None
    series = ("", agent, dataset) if agent or dataset else (target, config["dataset_hash"])
    return RunRow(
        printable(run.run_id),
        state,
        _start_time(run),
        str(origin.get("source") or PYTEST),
        series,
        agent,
        agent_version,
        dataset,
        dataset_version,
        target,
    )


def _start_time(run: StoredRun) -> str:
    try:
        begun = datetime.fromisoformat(run.config["begun"])
    except (KeyError, TypeError, ValueError):  # an older run without this key: use the configuration's time
        return _time((run.path / CONFIG).stat().st_mtime)
    return begun.astimezone(UTC).isoformat(timespec="microseconds")


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
