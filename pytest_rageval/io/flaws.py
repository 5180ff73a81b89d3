"""What pydantic says of a record, in our words: one flaw a problem, in the order of the record."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from pytest_rageval.io.expected import choices, expects, inner_type, known_keys, type_in_words
from pytest_rageval.io.messages import MOST_OF_A_RECORD, Path, found
from pytest_rageval.io.suggestions import KEY_CUTOFF, suggestion
from pytest_rageval.model import Json


class Flaw(NamedTuple):
    """One thing that is wrong with a record, where it stands, and what may stand there."""

    path: Path
    message: str = ""
    known: Sequence[str] = ()
    is_unknown: bool = False
    is_missing: bool = False
    is_branch: bool = False
    """One of several types that the value might have had."""
    breaks_rule: bool = False
    """The value is of the right kind."""


Shown = Callable[[Path, Json], str]
"""How messages show the value at a path."""


def flaws_of(error: ValidationError, record: Json, of: Any, shown: Shown = lambda _, value: found(value)) -> list[Flaw]:
    """What pydantic says of a record that is no `of`, in our words and in the order of the record."""
    flaws = [_flaw(details, record, of, shown) for details in error.errors(include_url=False, include_input=False)]
    flaws = sorted(_without_branches(flaws), key=_Order(record))
    mistyped = {
        (*flaw.path[:-1], suggestion(str(flaw.path[-1]), flaw.known, cutoff=KEY_CUTOFF))
        for flaw in [flaw for flaw in flaws if flaw.is_unknown][:MOST_OF_A_RECORD]
    }
    return [flaw for flaw in flaws if not (flaw.is_missing and flaw.path in mistyped)]


def mended(error: ValidationError, record: Json, of: Any, *, takes_whole_floats: bool) -> Json:
    """The refused record without the nulls that stand where a key may be absent, and with 3.0 as 3 if that is asked."""
    for details in error.errors(include_url=False, include_context=False, include_input=False):
        place = _follow(details["loc"], record, of)
        above = _follow(place.path[:-1], record, of)
        is_float = details["type"] == "int_type" and isinstance(place.value, float)
        if place.value is None and place.path and place.path[-1] in known_keys(above.of):
            record = _replaced(record, place.path, ...)
        elif is_float and takes_whole_floats and place.value.is_integer():
            record = _replaced(record, place.path, int(place.value))
    return record


def _replaced(record: Any, path: Path, value: Any) -> Json:
    """The record with another value at a path; without that key where the value is `...`."""
    key, *inner = path
    value = _replaced(record[key], tuple(inner), value) if inner else value
    if isinstance(record, Mapping):
        return {name: value if name == key else old for name, old in record.items() if value is not ... or name != key}
    return [value if position == key else item for position, item in enumerate(record)]


_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
_MISSING = frozenset({"missing", "missing_argument", "missing_keyword_only_argument"})


def _flaw(details: Mapping[str, Any], record: Json, of: Any, shown: Shown) -> Flaw:
    kind, steps = details["type"], details["loc"]
    if kind in _UNKNOWN or kind in _MISSING:
        parent = _follow(steps[:-1], record, of)
        path = (*parent.path, steps[-1])
        if kind in _UNKNOWN:
            return Flaw(path, known=known_keys(parent.of), is_unknown=True, is_branch=parent.is_branch)
        return Flaw(path, is_missing=True, is_branch=parent.is_branch)
    place = _follow(steps, record, of)
    return Flaw(
        place.path, _message(details, place, shown), is_branch=place.is_branch, breaks_rule=_is_of_kind(details["type"])
    )


class _Place(NamedTuple):
    path: Path
    value: Json
    of: Any
    is_branch: bool


def _follow(steps: Sequence[str | int], value: Json, of: Any) -> _Place:
    """The place that pydantic's steps lead to; those that name a type of several lead nowhere in the record."""
    path: list[str | int] = []
    is_branch = False
    for step in steps:
        is_key = isinstance(value, Mapping) and step in value
        is_position = isinstance(value, Sequence) and isinstance(step, int) and step < len(value)
        if is_key or is_position:
            path.append(step)
            value, of = value[step], inner_type(of, step)
        else:
            is_branch = True
    return _Place(tuple(path), value, of, is_branch)


def _message(details: Mapping[str, Any], place: _Place, shown: Shown) -> str:
    kind, of = details["type"], place.of
    if kind == "value_error":
        return str(details["ctx"]["error"])
    if _is_of_kind(kind) and expects(of).broken:
        return expects(of).broken
    value = "an empty list" if kind == "too_short" and not place.value else shown(place.path, place.value)
    if kind == "finite_number" and not isinstance(place.value, int):
        return f"is {value}, expected a finite number"
    names = [choice for choice in choices(of) if isinstance(choice, str)]
    is_name = isinstance(place.value, str) and bool(names)
    close = suggestion(place.value, names, cutoff=KEY_CUTOFF) if is_name else None
    return f"is {value}, expected {type_in_words(of)}" + (f"; did you mean {close!r}?" if close else "")


def _is_of_kind(problem: str) -> bool:
    return not (problem.endswith(("_type", "_parsing", "_from_float")) or problem == "literal_error")


def _without_branches(flaws: Collection[Flaw]) -> list[Flaw]:
    """Of a value that might have had several types, what is wrong with it inside one of them, else with it as such.

    A rule that it breaks as one of them goes before its not being another.
    """
    kept: dict[tuple[Path, str], Flaw] = {(flaw.path, flaw.message): flaw for flaw in flaws}
    around = {flaw.path[:length] for flaw in flaws for length in range(len(flaw.path)) if flaw.is_branch}
    around |= {flaw.path for flaw in flaws if flaw.breaks_rule}
    return [flaw for flaw in kept.values() if flaw.breaks_rule or not (flaw.is_branch and flaw.path in around)]


class _Order:
    """Where paths stand in one record; what is missing stands at the end of its object."""

    def __init__(self, record: Json) -> None:
        self._record = record
        self._positions: dict[Path, Mapping[str | int, int]] = {}

    def __call__(self, flaw: Flaw) -> list[float]:
        record, order = self._record, list[float]()
        for depth, step in enumerate(flaw.path):
            is_object = isinstance(record, Mapping)
            if flaw.is_missing and depth == len(flaw.path) - 1:
                order.append(math.inf)
            elif is_object:
                above = flaw.path[:depth]
                if above not in self._positions:
                    self._positions[above] = {key: position for position, key in enumerate(record)}
                order.append(self._positions[above][step])
            else:
                order.append(int(step))
            if is_object:
                record = record.get(step)
            else:
                position = int(step)
                record = record[position] if isinstance(record, Sequence) and position < len(record) else None
        return order
