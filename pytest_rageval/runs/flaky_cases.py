"""Flaky cases: those that passed though an attempt failed, since they were asked again or a plugin ran them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import Confirmation
from pytest_rageval.runs.reservations import RERUN
from pytest_rageval.runs.row import Row
from pytest_rageval.text import counted

FLAKY = "flaky: "
"""The beginning of the reason of a case that passed and is flaky."""
CASES = "flaky"
"""The key in metrics.json of the flaky cases; a run that asked no case again is without it."""
NEW_FAILURES = "new_failures"
"""The key in `volatile` of how many new failures were asked again: where too many fail, the order decides which."""
CONFIRMED = "confirmed"
UNCONFIRMED = "not_asked_again"
SPARED = "spared"
"""The key in a flaky case of the metrics whose gates failed by chance, if the case fails by others."""
SHOWN = 3
"""How many ids the sentence of a verdict names."""


def passed_when_rerun(attempts: int) -> str | None:
    """Return the reason of a case that passed at a later attempt of a plugin; None for the first."""
    return f"{FLAKY}passed only when run again, at attempt {attempts}" if attempts > 1 else None


def is_flaky_record(record: Mapping[str, Any]) -> bool:
    """Return True for a record of a case that passed, though an attempt at it did not; or some of its gates did."""
    confirmation = record["verdict"].get("confirmation")
    if confirmation is not None and confirmation.get(SPARED):
        return True
    if record["outcome"] != "passed":
        return False
    return confirmation is not None or record.get("attempts", 1) > 1


def flaky_cases(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the flaky cases of a run by key, each with the reason, and their share; empty if none was asked again."""
    if not any(row.confirmation or row.attempts > 1 for row in rows):
        return {}
    return {CASES: [_flaky_case(row) for row in rows if row.is_flaky]}


def new_failure_counts(rows: Iterable[Row]) -> dict[str, Any]:
    """Return how many new failures failed again, and how many were not asked again; empty if there is none."""
    counts: Counter[str] = Counter()
    for row in rows:
        if row.confirmation is not None and row.is_bad and not row.is_flaky:
            counts[CONFIRMED if row.confirmation.attempts > 1 else UNCONFIRMED] += 1
    return {NEW_FAILURES: dict(sorted(counts.items()))} if counts else {}


def _flaky_case(row: Row) -> dict[str, Any]:
    confirmation = row.confirmation
    if confirmation is not None and confirmation.spared:
        why = f"{confirmation.first} {confirmation}"
        return {"case_key": row.key, "why": why, SPARED: list(confirmation.spared)}
    return {"case_key": row.key, "why": (row.message or "").removeprefix(FLAKY)}


def spared_gates(metrics: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Return the metrics whose gates failed by chance in cases that fail by others, by case, of a metrics.json."""
    return {case["case_key"]: case[SPARED] for case in metrics.get(CASES) or () if SPARED in case}


def confirmation_words(confirmation: Confirmation, repeat: int | None) -> str:
    """Return what the attempts at a new failure came to; `repeat`: how many trials each has, None if they differ."""
    if confirmation.attempts == 1:
        return "not asked again, since too many cases newly fail"
    of_trials = f", each of {counted(repeat, 'trial')}" if repeat is not None and repeat > 1 else ""
    word = "flaky" if confirmation.is_flaky else "confirmed"
    return f"{word}: {confirmation}{of_trials}"


def flaky_ids(metrics: Mapping[str, Any]) -> list[str]:
    """Return the ids of the flaky cases in a metrics.json."""
    keys = [case["case_key"] for case in metrics.get(CASES) or ()]
    return [key.partition("::")[2] or key for key in keys]


def flaky_counts(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield `2 cases are flaky (q1, q2)`."""
    ids = flaky_ids(metrics)
    if ids:
        yield f"{counted(len(ids), 'case is', 'cases are')} flaky ({listed(ids, SHOWN)})"
    elif again := metrics.get(RERUN):  # of a run from before flaky cases were recorded
        yield f"{counted(len(again), 'case')} passed only when run again"


def confirmed_line(metrics: Mapping[str, Any]) -> str | None:
    """Return `confirmed: 3 new failures failed again when asked again`; None if no new failure was asked again."""
    counts = metrics["volatile"].get(NEW_FAILURES)
    if not counts or CONFIRMED not in counts:
        return None
    line = f"confirmed: {counted(counts[CONFIRMED], 'new failure')} failed again when asked again"
    if UNCONFIRMED in counts:
        line += f"; {counts[UNCONFIRMED]:,} more were not asked again, since too many cases newly fail"
    repeats = metrics.get("repeats")
    if repeats:
        # Without this, a failure in which two of three trials pass reads as a contradiction.
        line += f"; an attempt is {counted(repeats['trials'], 'trial')}, which decide together"
    return line


def flaky_lines(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line a flaky case, with the reason."""
    for case_id, case in zip(flaky_ids(metrics), metrics.get(CASES) or (), strict=True):
        yield f"{case_id}: {case['why']}"


def saved_requests(trials: Iterable[Row], repeat: int) -> int:
    """Return how many trials were not asked, since those before had decided about their case."""
    asked: dict[str, int] = {}
    attempts: dict[str, int] = {}
    for row in trials:
        # A case with as many records as configured says nothing of their number.
        if row.records is not None:
            asked[row.key] = row.records
            attempts[row.key] = max(attempts.get(row.key, 1), row.confirms + 1)
    planned = repeat * sum(attempts.values())
    return planned - sum(asked.values())
