"""Records of an answers file, and what another process of the same machine needs to read answers from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from pytest_rageval.model import EvalCase


class AnswerRecord(NamedTuple):
    """One line. `name` is its id as written, a case's id or its full key; without an id it is `asking(question)`."""

    name: str
    line: int
    question: str | None
    text: str | tuple[int, int]
    """The answer as JSON; without a key `extra` in it the place of its line in the file: offset and length in bytes."""


class CheckedAnswers(NamedTuple):
    """An answers file that a process has read and checked, for another that is told its records.

    name    of the target
    file    the path as messages show it
    state   size and time of the last change
    """

    name: str
    path: str
    file: str
    system: str | None
    state: tuple[int, int]
    notes: tuple[str, ...]


@runtime_checkable
class SharesAnswers(Protocol):
    """A target whose answers another process can read, once it is told where they are."""

    def checked(self) -> CheckedAnswers:
        """Describe the file for another process."""

    def records_of(self, cases: Sequence[EvalCase]) -> list[AnswerRecord]:
        """Return the records with the answers to these cases."""

    def take(self, records: Iterable[AnswerRecord]) -> None:
        """Answer by these records from now on."""
