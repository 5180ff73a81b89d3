"""One run as the index holds it: a row of what lists show, its metrics, and its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pytest_rageval.comparison.verdict_sentence import SYMBOLS, with_verdict
from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.config_diff import flat_settings
from pytest_rageval.runs.reader import CONFIG, METRICS, RESULTS, StoredRun
from pytest_rageval.text import printable

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
"""Of states without a verdict."""
PYTEST = "pytest"
"""Source of a run that was not begun in the browser."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """What lists say of a run.

    stamp            of its files: the row is read again when that differs
    begun, ended     UTC, ISO 8601
    source           connector, uploaded answers, or pytest
    series           what it is to be seen in a line with: agent and data set, else target and cases
    cases … known    numbers of cases; None of a run without aggregates. `known`: known failures
    selected         of a partial run, how many were to be asked
    newly_failing    since the run it was compared with; None without one
    points           change of the share of passing cases since then, in per cent, among the cases that were compared
    seconds          from the beginning to the end
    tone … sentence  the verdict; None of a run without one
    problem          why it cannot be read, or has no aggregates
    """

    run_id: str
    stamp: str
    state: RunState
    begun: str
    source: str = PYTEST
    series: str = ""
    ended: str | None = None
    agent: str | None = None
    agent_version: str | None = None
    dataset: str | None = None
    dataset_version: str | None = None
    dataset_hash: str | None = None
    target: str | None = None
    judge: str | None = None
    k: int | None = None
    is_partial: bool = False
    cases: int | None = None
    passed: int | None = None
    failed: int | None = None
    errors: int | None = None
    skipped: int | None = None
    known: int | None = None
    selected: int | None = None
    newly_failing: int | None = None
    fixed: int | None = None
    points: float | None = None
    overall: float | None = None
    p95_ms: float | None = None
    cost_usd: float | None = None
    seconds: int | None = None
    compared_with: str | None = None
    description: str | None = None
    tone: str | None = None
    word: str | None = None
    sentence: str | None = None
    problem: str | None = None
    searched: str = field(default="", repr=False)

    @property
    def symbol(self) -> str:
        return SYMBOLS.get(self.word or "") or STATE_SYMBOLS.get(self.state, "○")

    @property
    def pass_rate(self) -> float | None:
        """Share of the cases that pass; None where none ended."""
        return self.passed / self.cases if self.cases and self.passed is not None else None

    @property
    def is_finished(self) -> bool:
        """Has it aggregates, so that it can be compared?"""
        return self.word is not None


RUN_COLUMNS = tuple(column.name for column in fields(RunRow))


@dataclass(frozen=True, slots=True)
class MetricMean:
    """The mean of a metric in a run, with its 95 % interval and how many cases have a score."""

    metric: str
    mean: float | None
    low: float | None
    high: float | None
    scored: int | None


@dataclass(frozen=True, slots=True)
class IndexedRun:
    """All that the index holds of a run."""

    row: RunRow
    metrics: Sequence[MetricMean] = ()
    settings: str = "{}"


def read_run(folder: Path, stamp: str) -> IndexedRun:
    """The run of a folder, in whatever state it is; nothing in its files is an error here."""
    run = StoredRun(folder)
    try:
        state = run.state
        if state == "being written":
            return _unfinished(run, stamp, "running")
        if state == "interrupted":
            return _unfinished(run, stamp, "stopped")
        if state == "broken":
            return _unreadable(run, stamp, _why_broken(run))
        return _finished(run, stamp)
    except (SettingsError, OSError) as error:
        return _unreadable(run, stamp, str(error))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        # A file that somebody wrote by hand: whatever is wrong with it, the other runs are listed.
        return _unreadable(run, stamp, f"{METRICS} is not what a run writes: {type(error).__name__}: {error}")


def unstorable(indexed: IndexedRun, error: Exception) -> IndexedRun:
    """The row of a run whose numbers or texts no database takes."""
    row = indexed.row
    problem = f"{METRICS} is not what a run writes: {type(error).__name__}: {error}"
    return IndexedRun(RunRow(row.run_id, row.stamp, "unreadable", row.begun, problem=printable(problem)))


def _why_broken(run: StoredRun) -> str:
    try:
        _ = run.config, run.metrics
    except SettingsError as error:
        return str(error)
    return f"{CONFIG} or {METRICS} cannot be read"


def _unreadable(run: StoredRun, stamp: str, problem: str) -> IndexedRun:
    run_id = printable(run.run_id)
    begun = _time(run.path.stat().st_mtime) if run.path.is_dir() else _time(0)
    told = printable(problem.replace(f"{run.path}/", ""))
    return IndexedRun(RunRow(run_id, stamp, "unreadable", begun, problem=told, searched=run_id.lower()))


def _unfinished(run: StoredRun, stamp: str, state: RunState) -> IndexedRun:
    problem = None
    if state == "stopped":
        problem = "it did not come to its end: its page says how to finish it"
    recorded = _lines(run.path / RESULTS) if state == "stopped" else None
    facts = _asked(run) | {"cases": recorded, "problem": problem}
    return IndexedRun(_row(run, stamp, state, facts), (), json.dumps(flat_settings(run.config)))


def _lines(path: Path) -> int:
    """Lines of a file; 0 where there is none."""
    try:
        with path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    except OSError:
        return 0


def _finished(run: StoredRun, stamp: str) -> IndexedRun:
    metrics = with_verdict(run.finished_metrics)
    verdict, outcomes, volatile = metrics["verdict"], metrics["outcomes"], metrics["volatile"]
    compared = metrics.get("comparison")
    comparison = compared if compared is not None and compared["compared"] else {}
    latency, cost = volatile.get("latency") or {}, volatile.get("cost") or {}
    facts = _asked(run) | {
        "ended": run.timestamp.isoformat(timespec="seconds"),
        "is_partial": metrics["partial"],
        "cases": metrics["total_tests"],
        "passed": outcomes.get("passed", 0), "failed": outcomes.get("failed", 0), "errors": outcomes.get("error", 0),
        "skipped": outcomes.get("skipped", 0), "known": outcomes.get("xfailed", 0),
        "selected": (metrics.get("selection") or {}).get("selected"),
        "newly_failing": len(comparison["flipped_to_fail"]) if comparison else None,
        "fixed": len(comparison["flipped_to_pass"]) if comparison else None,
        "points": _points(comparison.get("paired")),
        "compared_with": comparison.get("baseline_run_id"),
        "overall": metrics.get("overall_score"),
        "p95_ms": latency.get("p95_ms"),
        "seconds": max(int(run.timestamp.timestamp()) - int(datetime.fromisoformat(_begun(run)).timestamp()), 0),
        "cost_usd": cost.get("judge_total_usd"),
        "description": metrics.get("description"),
        "tone": verdict["tone"], "word": verdict["word"], "sentence": verdict["sentence"],
    }  # fmt: skip
    state = _state(metrics, facts["selected"])
    rows = [_metric(name, metric) for name, metric in metrics["metrics"].items()]
    return IndexedRun(_row(run, stamp, state, facts), rows, json.dumps(flat_settings(run.config)))


def _state(metrics: Mapping[str, Any], selected: int | None) -> RunState:
    """The state as a filter knows it; the word of the verdict says more."""
    tone, word = metrics["verdict"]["tone"], metrics["verdict"]["word"]
    if metrics["partial"]:
        recorded = (metrics.get("selection") or {}).get("recorded", metrics["total_tests"])
        return "stopped" if selected is not None and recorded < selected else "partial"
    if tone in ("green", "grey"):
        return "passed"
    return "worse" if word == "Worse" else "failed"


def _points(paired: Mapping[str, int] | None) -> float | None:
    """None where nobody counted, as in older runs, or no case was compared."""
    if not paired or not paired["cases"]:
        return None
    return round(100 * (paired["passed_after"] - paired["passed_before"]) / paired["cases"], 1)


def _metric(name: str, metric: Mapping[str, Any]) -> MetricMean:
    low, high = metric.get("ci") or (None, None)
    return MetricMean(name, metric["mean"], low, high, metric.get("n_scored"))


def _asked(run: StoredRun) -> dict[str, Any]:
    """What the configuration tells of every run, ended or not."""
    config = run.config
    origin = config.get("origin") or {}
    judge, target = config.get("judge") or {}, config.get("target")
    facts: dict[str, Any] = {
        name: None if origin.get(name) is None else str(origin[name])
        for name in ("agent", "agent_version", "dataset", "dataset_version")
    }
    facts |= {
        "source": str(origin.get("source") or PYTEST),
        "dataset_hash": config["dataset_hash"],
        "target": target if isinstance(target, str) else None,
        "judge": judge.get("model"),
        "k": config["k"],
    }
    named = facts["agent"] or facts["dataset"]
    series = (facts["agent"], facts["dataset"]) if named else (facts["target"], facts["dataset_hash"])
    return facts | {"series": json.dumps([bool(named), *series], ensure_ascii=False)}


def _row(run: StoredRun, stamp: str, state: RunState, facts: Mapping[str, Any]) -> RunRow:
    run_id = printable(run.run_id)
    texts = (run_id, facts.get("description"), facts["agent"], facts["dataset"], facts["target"], facts.get("sentence"))
    searched = " ".join(text for text in texts if text).lower()
    return RunRow(run_id, stamp, state, _begun(run), searched=searched, **facts)


def _begun(run: StoredRun) -> str:
    try:
        begun = datetime.fromisoformat(run.config["begun"])
    except (KeyError, TypeError, ValueError):  # written before there was this key: when the configuration was
        return _time((run.path / CONFIG).stat().st_mtime)
    return begun.astimezone(UTC).isoformat(timespec="microseconds")


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
