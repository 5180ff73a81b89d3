"""Texts of a record in the form that the settings allow."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_rageval.config.settings import Settings
from pytest_rageval.model import Answer, CaseResult, Problem, Trace
from pytest_rageval.targets.native_contract import answer_to_response
from pytest_rageval.text import cut

CUT = 200
"""The length in characters of a text in results.jsonl."""
LONGEST_MESSAGE = 2_000
"""In characters; messages of this package are shorter."""


class RecordTexts:
    """Texts of a record in the form that the settings allow: whole, cut, or left out."""

    def __init__(self, settings: Settings) -> None:
        self._saves_traces = settings.save_traces
        self._redacts = settings.redact
        self._longest = sys.maxsize if settings.store_full_text else CUT

    def __call__(self, text: str | None) -> str | None:
        if text is None or self._redacts:
            return None
        return text if len(text) <= self._longest else text[:CUT] + "…"

    def all(self, texts: Iterable[str] | None) -> list[str] | None:
        """Return each of several texts; None without texts or with `redact`."""
        if texts is None or self._redacts:
            return None
        return [self(text) or "" for text in texts]

    def detail(self, detail: Mapping[str, Any]) -> dict[str, Any]:
        """Return the details of a score; with `redact` only its numbers and booleans."""
        if self._redacts:
            # Numbers say nothing of a text; any other detail may quote one.
            return {name: value for name, value in detail.items() if isinstance(value, bool | int | float)}
        return {name: self.tree(value) for name, value in detail.items()}

    def message(self, message: str) -> str | None:
        """Return an error's message, which may quote what the system sent; None with `redact`."""
        return None if self._redacts else cut(message, LONGEST_MESSAGE)

    def reason(self, result: CaseResult) -> str | None:
        """Return the reason for the outcome; with `redact` only if skipped or xfailed, which quote no exception."""
        is_quotable = result.outcome in ("skipped", "xfailed") and result.error is None
        if result.reason is None or (self._redacts and not is_quotable):
            return None
        return cut(result.reason, LONGEST_MESSAGE)

    def tree(self, value: Any) -> Any:
        """Apply the limits to each text in a nested value; return None with `redact`."""
        if self._redacts:
            return None
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return {name: self.tree(member) for name, member in value.items()}
        if isinstance(value, list | tuple):
            return [self.tree(item) for item in value]
        return value

    def trace(self, trace: Trace) -> Any:
        if not self._saves_traces:
            return None
        # In the form of the contract, so that a trace reads the same in a reply and in a record.
        written = answer_to_response(Answer(trace=trace))
        return self.tree(written["debug"]["trace"])


def error_record(problem: Problem | None, text: RecordTexts) -> dict[str, Any] | None:
    """Return an error as both a case and a judgement have it."""
    if problem is None:
        return None
    record: dict[str, Any] = {
        "kind": problem.kind,
        "message": text.message(problem.message),
        "raw": text(problem.raw),
    }
    if problem.turn is not None:
        record["turn"] = problem.turn
    return record
