"""Texts of a record in the form that the settings allow: whole, cut, or left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_rageval.config.settings import Settings
from pytest_rageval.model import Answer, CaseResult
from pytest_rageval.targets.native_contract import answer_to_response
from pytest_rageval.text import cut

CUT = 200
"""The length in characters of a text in results.jsonl."""
LONGEST_MESSAGE = 2_000
"""In characters; messages of this package are shorter."""


@dataclass(frozen=True, slots=True)
class RecordTexts:
    """Texts of a record in the form that the settings allow: whole, cut, or left out."""

    settings: Settings

    def __call__(self, text: str | None) -> str | None:
        if text is None or self.settings.redact:
            return None
        return text if len(text) <= CUT or self.settings.store_full_text else text[:CUT] + "…"

    def all(self, texts: Iterable[str] | None) -> list[str] | None:
        """Return each of several texts; None without texts or with `redact`."""
        return None if texts is None or self.settings.redact else [self(text) or "" for text in texts]

    def detail(self, detail: Mapping[str, Any]) -> dict[str, Any]:
        """Return the details of a score; with `redact` only its numbers and booleans."""
        return {
            name: self.tree(value) if not self.settings.redact else value
            for name, value in detail.items()
            if not self.settings.redact or isinstance(value, bool | int | float)
        }

    def message(self, message: str) -> str | None:
        """Return an error's message, which may quote what the system sent; None with `redact`."""
        return None if self.settings.redact else cut(message, LONGEST_MESSAGE)

    def reason(self, result: CaseResult) -> str | None:
        """Return the reason for the outcome; with `redact` only if skipped or xfailed, which quote no exception."""
        is_quotable = result.outcome in ("skipped", "xfailed") and result.error is None
        if result.reason is None or (self.settings.redact and not is_quotable):
            return None
        return cut(result.reason, LONGEST_MESSAGE)

    def tree(self, value: Any) -> Any:
        """Apply the limits to each text in a nested value; return None with `redact`."""
        if self.settings.redact:
            return None
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return {name: self.tree(member) for name, member in value.items()}
        return [self.tree(item) for item in value] if isinstance(value, list | tuple) else value

    def trace(self, answer: Answer) -> dict[str, Any] | None:
        if answer.trace is None or self.settings.redact or not self.settings.save_traces:
            return None
        trace: dict[str, Any] = self.tree(answer_to_response(Answer(trace=answer.trace))["debug"]["trace"])
        return trace
