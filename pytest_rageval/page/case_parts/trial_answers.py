"""The trials of a case beside one another: what each answered, whether it held its gates, what it scored in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pytest_rageval.numbers import short
from pytest_rageval.page.case_parts.case_texts import limited


class TrialAnswer(NamedTuple):
    """One trial: its number from 1; `scores` of the metrics whose gates fail; `error` where it ended in one."""

    number: int
    has_passed: bool
    answer: str | None
    scores: list[tuple[str, str]]
    error: str | None
    is_shown: bool


def trial_answers(
    records: Mapping[int, Mapping[str, Any]], lines: Mapping[int, Mapping[str, Any]], shown: Mapping[str, Any]
) -> dict[str, Any] | None:
    """How many trials held their gates, and each one's answer; None of a single one. `shown`: the page's own trial."""
    if len(records) < 2:
        return None
    each = [
        _answer(records[number], lines.get(number), is_shown=records[number] is shown) for number in sorted(records)
    ]
    return {"passed": sum(trial.has_passed for trial in each), "each": each}


def _answer(record: Mapping[str, Any], line: Mapping[str, Any] | None, *, is_shown: bool) -> TrialAnswer:
    error, failed = record["error"], record["verdict"]["failed_gates"]
    full = ((line or {}).get("answer") or {}).get("answer")
    scores = record.get("scores", {})
    return TrialAnswer(
        record["trial"] + 1,
        bool(record["verdict"].get("trial_passed")),
        limited(full if full is not None else record["answer"]),
        [(gate["metric"], short(scores[gate["metric"]])) for gate in failed if gate["metric"] in scores],
        f"{error['kind']}: {error['message'] or 'its message is left out'}" if error else None,
        is_shown,
    )
