"""Calls of metrics that are not of this package: watched by a deadline, and what they return checked in depth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_rageval.errors import OddScoreError, ends_the_run, message_of
from pytest_rageval.io.deadline import MissedDeadline, call_within
from pytest_rageval.io.messages import Unsound, format_path, shown_value
from pytest_rageval.io.strict_json import plain_json
from pytest_rageval.model import NotApplicable, Score
from pytest_rageval.text import cut, excerpt, printable

MOST_MISSED = 3
"""Deadlines missed in a row after which a metric is not called again: a run of many cases has to end, too."""
MOST_STEPS = 5
"""Steps shown of a path within the details of a score."""
LONGEST_REASON = 2_000
"""Characters kept of the reason why a metric does not apply."""


class WatchedCalls:
    """The calls of one metric."""

    def __init__(self, name: str, seconds: float) -> None:
        self._name = name
        self._seconds = seconds
        self._missed = 0

    def score(self, call: Callable[[], Any]) -> float | Score | NotApplicable:
        """Return the score that a call gives; raise OddScoreError if it gives none in time."""
        if self._missed >= MOST_MISSED:
            raise OddScoreError(
                f"{self._name} is not called any more: {MOST_MISSED} calls in a row did not return within "
                f"{self._seconds:g} s"
            )
        try:
            scored = call_within(self._seconds, call)
        except MissedDeadline:
            self._missed += 1
            raise OddScoreError(f"{self._name} did not return within {self._seconds:g} s (metric_timeout)") from None
        self._missed = 0
        return self._checked(scored)

    def _checked(self, scored: Any) -> float | Score | NotApplicable:
        if isinstance(scored, NotApplicable):
            return self._checked_reason(scored)
        if isinstance(scored, Score):
            return Score(scored.value, self._checked_detail(scored.detail))
        if isinstance(scored, float):
            return scored
        raise OddScoreError(f"{self._name} is {shown_value(scored)}, expected a number, a Score or NotApplicable")

    def _checked_reason(self, scored: NotApplicable) -> NotApplicable:
        if not isinstance(scored.reason, str):
            what = shown_value(scored.reason)
            raise OddScoreError(f"{self._name} is NotApplicable with the reason {what}, expected a text")
        return NotApplicable(printable(cut(scored.reason, LONGEST_REASON)), bool(scored.is_unobserved))

    def _checked_detail(self, detail: Any) -> Mapping[str, Any]:
        """Return the details of a score as plain data, which every file can hold."""
        if not isinstance(detail, Mapping):
            raise OddScoreError(f"{self._name} has the detail {shown_value(detail)}, expected a mapping")
        try:
            plain: dict[str, Any] = plain_json(dict(detail), ("detail",))
        except Unsound as unsound:
            path, message, _ = unsound.findings.first[0]
            # Only the beginning of the path of a structure that holds itself.
            raise OddScoreError(f"{self._name}: {format_path(path[:MOST_STEPS])} {message}") from None
        return plain


def formula_of(terms: Callable[[], Any], seconds: float) -> str:
    """Return the formula that a metric's `terms` give, or why they give none: a reader is all that misses it."""
    try:
        formula = call_within(seconds, terms)
    except MissedDeadline:
        return f"(terms did not return within {seconds:g} s)"
    # A project's own code may raise SystemExit, too; it must cost the formula alone.
    except BaseException as error:
        if ends_the_run(error):
            raise
        return f"(terms raised {type(error).__name__}: {excerpt(message_of(error))})"
    return excerpt(formula, LONGEST_REASON) if isinstance(formula, str) else f"(terms gave {shown_value(formula)})"
