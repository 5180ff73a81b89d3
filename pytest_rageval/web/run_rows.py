"""One run as a row of a list: its verdict and figures, or why it has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from pytest_rageval.comparison.verdict_facts import VerdictFacts
from pytest_rageval.comparison.verdict_reasons import PASSED_THEN
from pytest_rageval.comparison.verdict_sentence import SYMBOLS, run_verdict, with_verdict
from pytest_rageval.config.tables import Origin
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import open_regular
from pytest_rageval.runs.history import PastRun, past_run
from pytest_rageval.runs.reader import CONFIG, METRICS, StoredRun
from pytest_rageval.runs.records.line_form import RESULTS
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
    past           its aggregates; None if it has not ended
    cases          number of ended cases
    selected       number of selected cases of a partial run
    points         change of the pass rate since `compared_with`, in per cent of the compared cases
    seconds        from start to end
    tone, word, headline, sentence  of the verdict; None without one
    fails_build    whether the commands exit with 1; None without a verdict
    problem        why it is unreadable or has no aggregates
    """

    run_id: str
    state: RunState
    begun: str
    source: str = PYTEST
    agent: str | None = None
    agent_version: int | None = None
    dataset: str | None = None
    dataset_version: int | None = None
    target: str | None = None
    past: PastRun | None = None
    cases: int | None = None
    selected: int | None = None
    points: float | None = None
    speed: str = ""
    """The latency, as `p95 340 ms`; of fewer than 20 cases as `median 340 ms`; '' if it is not known."""
    seconds: int | None = None
    compared_with: str | None = None
    description: str | None = None
    tone: str | None = None
    word: str | None = None
    headline: str | None = None
    sentence: str | None = None
    fails_build: bool | None = None
    problem: str | None = None

    @property
    def symbol(self) -> str:
        return SYMBOLS.get(self.tone or "") or STATE_SYMBOLS.get(self.state, "○")

    @property
    def pass_rate(self) -> float | None:
        """Return the share of cases that pass, or None if none ended."""
        return self.past.outcomes.get("passed", 0) / self.past.total if self.past and self.past.total else None

    @property
    def rate(self) -> str:
        """Return the share of cases that pass in per cent; `–` if unknown."""
        return "–" if self.pass_rate is None else f"{100 * self.pass_rate:.1f} %"

    @property
    def took(self) -> str:
        """Return the time from start to end."""
        if self.seconds is None:
            return "–"
        return duration(1000 * self.seconds) if self.seconds else "< 1 s"

    @property
    def is_partial(self) -> bool:
        return self.past is not None and self.past.is_partial

    @property
    def is_complete(self) -> bool:
        """Return True if all cases ended, so that other runs can be held against this one."""
        return self.past is not None and not self.past.is_partial

    @property
    def series(self) -> tuple[str | None, ...]:
        """Return what the runs of one series have in common: agent and dataset, or else target and cases."""
        if self.agent or self.dataset:
            # Without their versions: a new version is the next point of the same line.
            return "", self.agent, self.dataset
        return self.target, self.past.dataset_hash if self.past else None

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
        row = _begun_row(run)
        if state == "being written":
            return row
        if state == "interrupted":
            problem = "it did not come to its end: its page says how to finish it"
            return replace(row, state="stopped", cases=_lines(folder / RESULTS), problem=problem)
        return _ended_row(run, row)
    except (SettingsError, OSError) as error:
        problem = str(error)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        # A file edited by hand: whatever is wrong with it, the other runs are still listed.
        problem = f"{METRICS} is not what a run writes: {type(error).__name__}: {error}"
    begun = iso_time(folder.stat().st_mtime if folder.is_dir() else 0)
    return RunRow(printable(run.run_id), "unreadable", begun, problem=printable(problem.replace(f"{folder}/", "")))


def _lines(path: Path) -> int:
    try:
        with open_regular(path) as file:
            return sum(1 for _ in file)
    except FileNotFoundError:
        return 0


def _begun_row(run: StoredRun) -> RunRow:
    """Return the row of a running run: the values from the configuration, which every run has."""
    target = run.config.get("target")
    named = target if isinstance(target, str) else None
    return RunRow(printable(run.run_id), "running", _start_time(run), **dict(origin_of(run.config)), target=named)


def origin_of(config: Mapping[str, Any]) -> Origin:
    """Return which versions a run is made from, by its config.json; for a run of pytest none."""
    try:
        return Origin.model_validate(config.get("origin"))
    except ValidationError:
        return Origin.model_construct(source=PYTEST)  # type: ignore[arg-type]


def _start_time(run: StoredRun) -> str:
    try:
        begun = datetime.fromisoformat(run.config["begun"])
    except (KeyError, TypeError, ValueError):  # a run without this key: use the configuration's time
        return iso_time((run.path / CONFIG).stat().st_mtime)
    return begun.astimezone(UTC).isoformat(timespec="microseconds")


def iso_time(seconds: float) -> str:
    """Return a time as `2026-11-22T10:00:00.000000+00:00`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def _ended_row(run: StoredRun, row: RunRow) -> RunRow:
    metrics = with_verdict(run.finished_metrics)
    verdict = metrics["verdict"]
    compared = metrics.get("comparison")
    comparison = compared if compared is not None and compared["compared"] else {}
    selection = metrics.get("selection") or {}
    paired = comparison.get("paired")
    past = past_run(run)
    settings = past.settings
    if row.agent:
        settings = {**settings, "agent": f"{row.agent} v{row.agent_version}"}
    version = None if row.dataset_version is None else str(row.dataset_version)
    seconds = int(run.timestamp.timestamp()) - int(datetime.fromisoformat(row.begun).timestamp())
    return replace(
        row,
        state=_state(metrics, selection),
        past=replace(past, dataset_version=version, settings=settings),
        cases=past.total,
        selected=selection.get("selected"),
        points=_points(paired, past.total),
        compared_with=comparison.get("baseline_run_id"),
        speed=_speed(metrics),
        # A clock that is set back must not make a negative time.
        seconds=max(seconds, 0),
        description=past.description,
        tone=verdict["tone"],
        word=verdict["word"],
        headline=_headline(metrics),
        sentence=verdict["sentence"],
        fails_build=verdict.get("fails_build", verdict["tone"] == "red"),
    )


def _speed(metrics: Mapping[str, Any]) -> str:
    latency = (metrics["volatile"].get("operations") or {}).get("latency_ms")
    if latency is None:
        return ""
    if latency["p95"] is None:
        return f"median {duration(latency['p50'])}"
    return f"p95 {duration(latency['p95'])}"


def _headline(metrics: Mapping[str, Any]) -> str:
    """Return the first clause of the recorded sentence; the whole sentence of an older or edited run."""
    decided = metrics["verdict"]
    facts = VerdictFacts(
        metrics,
        metrics.get("comparison"),
        metrics["gates"],
        decided.get("problems") or {},
        decided.get("exit_status", 0),
        known_failures=decided.get("known_failures") or "fail",
    )
    verdict = run_verdict(facts)
    sentence: str = decided["sentence"]
    return verdict.headline if verdict.sentence == sentence else sentence


def _state(metrics: Mapping[str, Any], selection: Mapping[str, int]) -> RunState:
    """Return the state for filters; the word of the verdict is more precise."""
    verdict = metrics["verdict"]
    selected = selection.get("selected")
    if metrics["partial"]:
        recorded = selection.get("recorded", metrics["total_tests"])
        return "stopped" if selected is not None and recorded < selected else "partial"
    if verdict["tone"] in ("green", "grey"):
        return "passed"
    return "worse" if verdict["word"] == "Worse" else "failed"


def _points(paired: Mapping[str, int] | None, cases: int) -> float | None:
    """Return the change of the pass rate; None if the runs are not of the same cases."""
    if not paired or not cases or paired["cases"] != cases:
        return None
    passed_before = paired.get(PASSED_THEN, paired["passed_before"])
    return round(100 * (paired["passed_after"] - passed_before) / paired["cases"], 1)
