"""Flaky cases: those that passed though an attempt failed, since they were asked again or a plugin ran them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.io.suggestions import listed
from pytest_rageval.runs.reservations import RERUN
from pytest_rageval.runs.row import Row
from pytest_rageval.text import counted

FLAKY = "flaky: "
"""The beginning of the reason of a case that passed and is flaky."""
CASES = "flaky"
"""The key in metrics.json of the flaky cases; a run that asked no case again is without it."""
CONFIRMED = "confirmed"
"""The key beside it of the number of new failures that failed again."""
SHOWN = 3
"""How many ids the sentence of a verdict names."""


def passed_when_rerun(attempts: int) -> str | None:
    """Return the reason of a case that passed at a later attempt of a plugin; None for the first."""
    return f"{FLAKY}passed only when run again, at attempt {attempts}" if attempts > 1 else None


def is_flaky_record(record: Mapping[str, Any]) -> bool:
    """Return True for a record of a case that passed, though an attempt at it did not."""
    if record["outcome"] != "passed":
        return False
    return "confirmation" in record["verdict"] or record.get("attempts", 1) > 1


def flaky_cases(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the flaky cases of a run by key, each with the reason, and their share; empty if none was asked again."""
    if not any(row.has_confirmation or row.attempts > 1 for row in rows):
        return {}
    cases: list[dict[str, str]] = []
    confirmed = sum(row.has_confirmation and row.is_bad for row in rows)
    for row in rows:
        if row.is_flaky:
            why = (row.message or "").removeprefix(FLAKY)
            cases.append({"case_key": row.key, "why": why})
    return {CASES: cases, CONFIRMED: confirmed}


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
    """Return `confirmed: 3 new failures failed again when asked again`; None if no new failure did."""
    confirmed = metrics.get(CONFIRMED)
    return f"confirmed: {counted(confirmed, 'new failure')} failed again when asked again" if confirmed else None


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
