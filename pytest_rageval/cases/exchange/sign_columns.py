"""Which columns of a foreign file say whether there is an answer, and what is asked about those that look like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pytest_rageval.cases.answerability import Sign, behaviour_of, is_negative, sign_of
from pytest_rageval.cases.exchange.column_values import Column, is_weak
from pytest_rageval.cases.exchange.flag_marks import answerable_of, marks_in
from pytest_rageval.cases.exchange.map_hints import differs_from, equal_to, map_option
from pytest_rageval.cases.names import ANSWER, ANSWERABLE, field_of, name_words
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import Json

Marks = Mapping[str, bool | None]
"""What marks and blank cells of a column say about an answer."""


class FoundSigns:
    """The columns that say whether there is an answer.

    signs      what each says
    marks      what the ticks and blank cells of a column say
    questions  what nobody but the user can decide, a line each
    no_gold    the names of those that are never proposed as gold
    """

    def __init__(self) -> None:
        self.signs: dict[str, Sign] = {}
        self.marks: dict[str, Marks] = {}
        self.questions: list[str] = []
        self.no_gold: set[str] = set()


def find_signs(columns: Mapping[str, Column], rows: int, named: str | None = None) -> FoundSigns:
    """Find the columns that say whether there is an answer; ask about those that look like it.

    named  the only column that says so, whatever its name is
    """
    found = FoundSigns()
    answered: set[int] = set()
    for column in columns.values():
        if field_of(column.name) == ANSWER:
            answered |= column.values.keys()
    for path, column in columns.items():
        if named is not None and path != named:
            continue
        sign = sign_of(column.name) or _sign_of_values(column)
        if sign is None and named is not None:
            sign = "answerable"
        if sign is None or not column.values:
            continue
        if sign != "kind":
            found.no_gold.add(column.name)
        is_flag = sign in ("answerable", "unanswerable")
        marks = marks_in(column, sign, rows, answered) if is_flag else {}
        reading = _read(column, sign, marks)
        if not reading.is_sign:
            continue
        if reading.question:
            found.questions.append(reading.question)
        found.signs[path] = sign
        if marks:
            found.marks[path] = marks
    return found


class _Reading(NamedTuple):
    is_sign: bool
    question: str = ""


def _read(column: Column, sign: Sign, marks: Marks) -> _Reading:
    """Return whether a column says whether there is an answer, and the question about values that cannot be read."""
    read = {row: answerable_of(marks, sign, value) for row, value in column.values.items()}
    if sign == "kind":
        says_no = False in read.values() or any(map(is_negative, column.values.values()))
        return _Reading(says_no)
    # Behaviour that never refuses tells no case apart from another.
    if sign == "behaviour" and False not in read.values():
        return _Reading(is_sign=False)
    unread = [column.values[row] for row, flag in read.items() if flag is None]
    if not unread:
        return _Reading(is_sign=True)
    if sign == "behaviour" and not any(map(_is_label, unread)):
        return _Reading(is_sign=False)
    if _LOOSE_FLAGS & {*name_words(column.name).split()} and len(unread) == len(column.values):
        return _Reading(is_sign=False)
    return _Reading(is_sign=True, question=_unread_sign(column, read))


_LOOSE_FLAGS = frozenset(["negative", "refusal", "supported", "covered", "scope", "context", "domain"])
"""Words of flags that other columns have, too: those are asked about only if some of their values are flags."""


def _sign_of_values(column: Column) -> Sign | None:
    """Return `behaviour` for a column of expected answers that only says `answer` and `refuse`."""
    if field_of(column.name) != ANSWER or is_weak(column.path) or not column.values:
        return None
    are_verbs = all(isinstance(value, str) and behaviour_of(value) is not None for value in column.values.values())
    return "behaviour" if are_verbs else None


def _is_label(value: Json) -> bool:
    return isinstance(value, str) and len(value) <= 40 and not value.rstrip().endswith((".", "!", "?", "。"))


def _unread_sign(column: Column, read: Mapping[int, bool | None]) -> str:
    """Return the question about a column that seems to say whether there is an answer, with the lines to write."""
    unread = _different(column, read, None)
    several = listed([shown_value(value, 40) for value in unread], 3)
    expression, outcome = _proposed(column, read, unread)
    return (
        f"{column.path} seems to say whether there is an answer, but cannot be read: {several}; say when there is one: "
        f"{map_option(ANSWERABLE, expression)} {outcome}; {map_option(ANSWERABLE, '')} if it says no such thing"
    )


def _proposed(column: Column, read: Mapping[int, bool | None], unread: Sequence[Json]) -> tuple[str, str]:
    """Return an expression that keeps what was read, and what it makes of the values that were not."""
    unanswerable = _different(column, read, False)
    if unanswerable:
        expression = differs_from(column.expression, unanswerable)
        return expression, f"takes {'it' if len(unread) == 1 else 'them'} as answerable"
    example = unread[0]
    if True in read.values():
        return differs_from(column.expression, [example]), f"takes {shown_value(example, 40)} as unanswerable"
    return equal_to(column.expression, example), f"takes {shown_value(example, 40)} alone as answerable"


def _different(column: Column, read: Mapping[int, bool | None], flag: bool | None) -> list[Json]:
    """Return the different values of a column that were read as this."""
    values: dict[str, Json] = {}
    for row, value in column.values.items():
        if read[row] is flag:
            values.setdefault(repr(value), value)
    return list(values.values())
