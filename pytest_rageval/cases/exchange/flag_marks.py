"""Ticks and other marks in a column of flags: what each means is seen only beside the column's other values."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pytest_rageval.cases.answerability import Sign, answerable_by
from pytest_rageval.cases.exchange.column_values import Column
from pytest_rageval.cases.exchange.printed import is_nothing
from pytest_rageval.model import Json

_TICKS = frozenset("x v o ✓ ✔ ✔️ ✅ ☑ ☑️ 🗹 ☒ 🗷 √ ● • ■ * + ○ 〇 ◯ [x]".split())  # noqa: SIM905 read as a row
"""Marks that say yes where a blank cell, or an empty box, is the only other value."""
_EMPTY = frozenset("☐ □ ◻ ⬜ - – — ―".split())  # noqa: SIM905 read as a row
"""Marks that say no beside a tick."""
_CROSSES = frozenset({"x", "☒", "🗷", "[x]"})
"""Ticks that say no beside another tick, and yes alone."""


def mark_of(value: Json) -> str:
    """Return the mark of a cell; empty for a blank one, and for what is no mark."""
    if is_nothing(value):
        return ""
    return value.strip().casefold() if isinstance(value, str) and len(value) < 20 else "\0"


def marks_in(column: Column, sign: Sign, rows: int, answered: Collection[int]) -> dict[str, bool | None]:
    """Return what the marks of a column of flags say about an answer, blank cells with "" among them.

    rows      number of rows
    answered  the rows with a right answer

    A blank cell says no only where the others are ticked, and most are, or no blank row has an answer. A cross that
    stands everywhere may mean either: None.
    """
    marks = {mark_of(value) for value in column.values.values()}
    ticks = marks & _TICKS
    others = marks - ticks
    if not ticks and not marks & _EMPTY:
        return {}
    blank = [row for row in range(rows) if row not in column.values]
    flags: dict[str, bool | None] = dict.fromkeys(marks & _EMPTY, False)
    says_yes = {mark for mark in others if answerable_by("answerable", mark) is True}
    says_no = {mark for mark in others if mark in _EMPTY or answerable_by("answerable", mark) is False}
    is_alone = not says_yes and not ticks - _CROSSES
    # The letter o is among the words for yes, whatever stands beside it.
    for tick in ticks - {"o"}:
        flags[tick] = True if tick not in _CROSSES else is_alone
    if is_alone and ticks and not blank and not says_no:
        flags |= dict.fromkeys(ticks, None)
    if ticks == marks and len(ticks) == 1 and blank:
        flags |= dict.fromkeys(ticks, True)
        is_most = len(column.values) >= len(blank)
        if is_most or sign == "unanswerable" or not set(blank) & set(answered):
            flags[""] = False
    return {mark: _signed(flag, sign) for mark, flag in flags.items()}


def _signed(flag: bool | None, sign: Sign) -> bool | None:
    return flag if flag is None or sign == "answerable" else not flag


def answerable_of(marks: Mapping[str, bool | None], sign: Sign, value: Json) -> bool | None:
    """Return whether a cell says that there is an answer: by the column's marks, else by its own words."""
    if marks and (mark := mark_of(value)) in marks:
        return marks[mark]
    return None if is_nothing(value) else answerable_by(sign, value)
