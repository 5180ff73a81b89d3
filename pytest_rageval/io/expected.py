"""Descriptions of types for the end of "is 3 (a number), expected …": from annotations, else from the type."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import chain
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

_MOST_KEYS = 6
"""Objects with more keys are described as "an object"."""
EXTRA = "extra"
"""The field for members of an object that its type does not declare; such an object may have any keys."""


FLAG = "true or false (or yes, no, 1, 0)"
_YES = "true yes t y 1 1.0 on wahr ja vrai oui verdadero sí vero verdadeiro waar 예 참"
_NO = "false no f n 0 0.0 off falsch nein faux non falso onwaar 아니오 아니요 거짓"
"""What people type into tables, and what spreadsheets write in languages with their own words for true and false."""
_FLAG_WORDS: Mapping[str, bool] = {**dict.fromkeys(_YES.split(), True), **dict.fromkeys(_NO.split(), False)}


def flag_of(cell: str) -> bool | None:
    """Parse a flag in a table's cell, ignoring case; None if it is neither true nor false."""
    return _FLAG_WORDS.get(cell.strip().casefold())


class Expects(NamedTuple):
    """A mark in `Annotated`: how messages describe the type.

    what    the end of "is 3 (a number), expected …"; if empty, derived from the type
    broken  the whole message for a value of the right type that breaks a rule: "is blank"
    """

    what: str = ""
    broken: str = ""


def expects(of: Any) -> Expects:
    """Return the outermost description of a type."""
    while get_origin(of) in (Annotated, Required, NotRequired):
        # The last mark is the outermost; a mark of pydantic's Field holds marks of its own.
        for mark in reversed(getattr(of, "__metadata__", ())):
            for inner in reversed((mark, *getattr(mark, "metadata", ()))):
                if isinstance(inner, Expects):
                    return inner
        of = get_args(of)[0]
    alternatives = [member for member in _alternatives(of) if member is not of]
    return expects(alternatives[0]) if len(alternatives) == 1 else Expects()


def type_in_words(of: Any) -> str:
    """Describe a type: `a string`, `a list of strings`, `{role, text}`, `one of a, b`."""
    if what := expects(of).what:
        return what
    alternatives = _alternatives(of)
    if len(alternatives) > 1:
        return " or ".join(map(type_in_words, alternatives))
    limits = _limits_in_words(of, alternatives[0])
    length = _length(of, alternatives[0])
    of = _bare(alternatives[0])
    if choices(of):
        return f"one of {', '.join(map(str, choices(of)))}"
    items = _items(of)
    if items is Any:
        return f"a list{length}"
    if items:
        return f"a list of {_plural(type_in_words(items))}{length}"
    if get_origin(of) in (dict, Mapping):
        word = type_in_words(get_args(of)[1])
        if word in _PLAIN - {"an object"}:
            return f"an object of {_plural(word)}"
    keys = known_keys(of)
    is_listed = 0 < len(keys) <= _MOST_KEYS and EXTRA not in keys
    if is_listed:
        return f"{{{', '.join(keys)}}}"
    return f"{_WORDS.get(get_origin(of) or of, 'an object')} {limits}".rstrip()


def inner_type(of: Any, step: str | int) -> Any:
    """Return the type of the value at a key or position in a value of this type; Any if it is not declared."""
    for alternative in map(_bare, _alternatives(of)):
        if isinstance(step, int):
            if items := _items(alternative):
                return items
        elif step in (fields := _fields(alternative)):
            return fields[step]
        elif get_origin(alternative) in (dict, Mapping):
            return get_args(alternative)[1]
    return Any


def known_keys(of: Any) -> tuple[str, ...]:
    """Return the keys that an object of this type may have; empty if it may have any."""
    for alternative in _alternatives(of):
        declared = _fields(_bare(alternative))
        if declared:
            return tuple(declared)
    return ()


def is_object(of: Any) -> bool:
    """Return True for types of objects, with declared or arbitrary keys."""
    if known_keys(of):
        return True
    return any(get_origin(_bare(alternative)) in (dict, Mapping) for alternative in _alternatives(of))


def choices(of: Any) -> tuple[Any, ...]:
    """Return the values of a Literal, even if wrapped or optional; empty for any other type."""
    for alternative in map(_bare, _alternatives(of)):
        if get_origin(alternative) is Literal:
            return get_args(alternative)
    return ()


# ── of types ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _limits_in_words(*types: Any) -> str:
    """Describe limits set by annotations: `from 0 to 4`, `of 1 or more`, `above 0`, `of 1 to 200 characters`."""
    limits = dict(chain.from_iterable(map(_limits, types)))
    shortest = limits.get("min_length")
    longest = limits.get("max_length")
    if shortest is not None and longest is not None:
        return f"of {shortest:,} to {longest:,} characters"
    if shortest is not None:
        return f"of {shortest:,} characters or more"
    least = limits.get("ge")
    most = limits.get("le")
    if least is not None and most is not None:
        return f"from {_number(least)} to {_number(most)}"
    if least is not None:
        return f"of {_number(least)} or more"
    bounds = (("above", limits.get("gt")), ("up to", most))
    return ", ".join(f"{word} {_number(limit)}" for word, limit in bounds if limit is not None)


def _length(*types: Any) -> str:
    """Describe the limits of a list's length: `, 1 to 8 of them`."""
    limits = dict(chain.from_iterable(map(_limits, types)))
    shortest = limits.get("min_length")
    longest = limits.get("max_length")
    if shortest is not None and longest is not None:
        return f", {shortest:,} to {longest:,} of them"
    if shortest is not None:
        return f", at least {shortest:,}"
    return "" if longest is None else f", at most {longest:,}"


_LIMITS = ("ge", "gt", "le", "min_length", "max_length")


def _limits(of: Any) -> Iterator[tuple[str, Any]]:
    """Yield the limits in `Annotated`, from pydantic's Field or separate marks."""
    while get_origin(of) in (Annotated, Required, NotRequired):
        marks = of.__metadata__ if get_origin(of) is Annotated else ()
        for mark in marks:
            for limit in getattr(mark, "metadata", None) or (mark,):
                yield from _limits_of_mark(limit)
        of = get_args(of)[0]


def _limits_of_mark(mark: Any) -> Iterator[tuple[str, Any]]:
    for name in _LIMITS:
        value = getattr(mark, name, None)
        if value is not None:
            yield name, value


def _number(limit: float) -> str:
    return f"{limit:,}" if isinstance(limit, int) else f"{limit:g}"


_WORDS = {str: "a string", bool: "true or false", int: "a whole number", float: "a number"}


_PLAIN = frozenset({"a string", "a number", "a whole number", "an object"})


def _plural(word: str) -> str:
    return f"{word.removeprefix('an ').removeprefix('a ')}s" if word in _PLAIN else word


def _bare(of: Any) -> Any:
    while get_origin(of) in (Annotated, Required, NotRequired):
        of = get_args(of)[0]
    return of


def _alternatives(of: Any) -> list[Any]:
    """Return the members of a union without None, which equals absent; for other types the type itself."""
    bare = _bare(of)
    if get_origin(bare) not in (Union, types.UnionType):
        return [of]
    members = [member for member in get_args(bare) if member is not type(None)]
    return list(chain.from_iterable(map(_alternatives, members)))


def _items(of: Any) -> Any:
    """Return the type of the items of a list or a tuple of any length; None for other types."""
    if get_origin(of) in (list, tuple, Sequence):
        return get_args(of)[0]
    return Any if of in (list, tuple) else None


@cache
def _hints(of: type) -> Mapping[str, Any]:
    hints = get_type_hints(of, include_extras=True)
    # Nobody can write these fields into a file.
    derived = {member.name for member in fields(of) if not member.init} if is_dataclass(of) else ()
    return {name: hint for name, hint in hints.items() if name not in derived}


def _fields(of: Any) -> Mapping[str, Any]:
    if isinstance(of, type) and (members := getattr(of, "model_fields", None)):  # of pydantic's own objects
        return {name: Annotated[(member.annotation, member)] for name, member in members.items()}
    is_object = isinstance(of, type) and any(hasattr(of, mark) for mark in _MARKS_OF_OBJECTS)
    return _hints(of) if is_object else {}


_MARKS_OF_OBJECTS = ("__dataclass_fields__", "_fields", "__total__")
"""Types by field, of dataclasses, named tuples and typed dictionaries."""
