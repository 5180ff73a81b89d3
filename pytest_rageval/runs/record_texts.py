"""Texts of a record as the settings let them be written: whole, cut, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_rageval.config.settings import Settings
from pytest_rageval.model import Answer, CaseResult
from pytest_rageval.targets.native_contract import answer_to_response
from pytest_rageval.text import cut

CUT = 200
"""Characters of a text that results.jsonl keeps."""
LONGEST_MESSAGE = 2_000
"""Characters of an error's message; those made here are shorter."""


@dataclass(frozen=True, slots=True)
class RecordTexts:
    """What of a text may be written: all of it, its beginning, or nothing."""

    settings: Settings

    def __call__(self, text: str | None) -> str | None:
        if text is None or self.settings.redact:
            return None
        if self.settings.store_full_text or len(text) <= CUT:
            return text
        return text[:CUT] + "…"

    def all(self, texts: Iterable[str] | None) -> list[str] | None:
        """Each of several texts; None where there are none, or none may be written."""
        return None if texts is None or self.settings.redact else [self(text) or "" for text in texts]

    def detail(self, detail: Mapping[str, Any]) -> dict[str, Any]:
        """What a metric says of its score; where no text may be written, its counts and claims only."""
        return {
            name: self.tree(value) if not self.settings.redact else value
            for name, value in detail.items()
            if not self.settings.redact or isinstance(value, bool | int | float)
        }

    def message(self, message: str) -> str | None:
        """An error's message: it may quote what the system sent."""
        return None if self.settings.redact else cut(message, LONGEST_MESSAGE)

    def reason(self, result: CaseResult) -> str | None:
        """Why a case was skipped, is known to fail, failed or broke: the last two may quote what an exception said."""
        is_quotable = result.outcome in ("skipped", "xfailed") and result.error is None
        if result.reason is None or (self.settings.redact and not is_quotable):
            return None
        return cut(result.reason, LONGEST_MESSAGE)

    def tree(self, value: Any) -> Any:
        """A value of any shape with each text in it as it may be written; None where none may."""
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
