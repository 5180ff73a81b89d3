"""What may a value be? Strict readers: a JSON value in; out what the model keeps, or Unsound with all that is wrong.

A reader never sees null. It converts nothing silently: a number is not a string, a string is not a list of one.
Nearly all values are sound, so a reader tries that first, and looks for what is wrong only when it is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from pytest_rageval.io.messages import Findings, Unsound, bad, closest, wrong
from pytest_rageval.model import Anchor, Edge, Json, Turn

Reader = Callable[[Json], Any]
"""From a JSON value to what the model keeps, or to None where the value says nothing; raises Unsound."""

T = TypeVar("T")


class Shape(NamedTuple):
    """One kind of value: how it is read, what JSON Schema says of it, and how it is written in a CSV cell."""

    read: Reader
    schema: Mapping[str, Json]
    in_cell: Literal["text", "flag", "json"] = "json"


# ── one value ─────────────────────────────────────────────────────────────────────────────────────────────────


def read_text(value: Json) -> str:
    """Any string."""
    if isinstance(value, str):
        return value
    raise wrong(value, "a string")


def read_name(value: Json) -> str:
    """A string that is not blank."""
    if not isinstance(value, str):
        raise wrong(value, "a string")
    if not value or value.isspace():
        raise bad("is blank")
    return value


def read_label(value: Json) -> str | None:
    """A string, or None: a blank one says nothing, like an empty cell."""
    if not isinstance(value, str):
        raise wrong(value, "a string")
    return value if value and not value.isspace() else None


def read_flag(value: Json) -> bool:
    """true or false."""
    if type(value) is bool:
        return value
    raise wrong(value, "true or false")


def read_object(value: Json) -> dict[str, Json]:
    """Any object, taken as it is."""
    if isinstance(value, dict):
        return value
    raise wrong(value, "an object")


def read_rule(value: Json) -> str:
    """One of the recency rules."""
    if isinstance(value, str) and value in RULES:
        return value
    close = closest(value, RULES) if isinstance(value, str) else None
    raise wrong(value, f"one of {', '.join(RULES)}" + (f"; did you mean {close!r}?" if close else ""))


RULES = ("cite_newer", "acknowledge_both", "cite_both")


def read_date(value: Json) -> str:
    """Dates are compared as written, so they must be ISO 8601: a year, a month, a day, or an instant."""
    if isinstance(value, str) and _ISO_DATE.fullmatch(value):
        return value
    raise wrong(value, "an ISO date such as '2024-05-31'")


_ISO_DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01])([T ]\d\d:\d\d\S{0,30})?)?)?", re.ASCII)


# ── lists ─────────────────────────────────────────────────────────────────────────────────────────────────────


def read_list(value: Json, read_item: Callable[[Json], T], expected: str) -> tuple[T, ...]:
    """A list, each item of it read."""
    if not isinstance(value, list):
        raise wrong(value, expected)
    try:
        return tuple(map(read_item, value))
    except Unsound:
        findings = Findings()
        for position, item in enumerate(value):
            findings.include_from(position, item, read_item)
        raise Unsound(findings) from None


def read_texts(value: Json) -> tuple[str, ...]:
    """A list of any strings."""
    return read_list(value, read_text, "a list of strings")


def read_names(value: Json) -> tuple[str, ...]:
    """A list of strings, none of them blank."""
    try:
        # Without a call of ours for each item: `str.strip` refuses what is no string, leaves nothing of a blank one.
        if isinstance(value, list) and all(map(str.strip, value)):
            return tuple(value)
    except TypeError:
        pass
    return read_list(value, read_name, "a list of strings")


def read_ids(value: Json) -> tuple[str, ...]:
    """A list of names, as a set that keeps its order: an id named twice is one gold."""
    return tuple(dict.fromkeys(read_names(value)))


def _some(read: Reader) -> Reader:
    """The same lists, but an empty one says nothing: *unlabelled*, not *nothing is expected*."""
    return lambda value: read(value) or None


def read_one_answer(value: Json) -> tuple[str] | None:
    """One answer; a blank one says nothing, like an empty cell."""
    label = read_label(value)
    return None if label is None else (label,)


def read_answers(value: Json) -> tuple[str, ...] | None:
    """One answer, or a list of answers any of which is right."""
    if isinstance(value, str):
        return read_one_answer(value)
    return read_list(value, read_name, "a string or a list of strings") or None


def read_groups(value: Json) -> tuple[tuple[int, ...], ...] | None:
    """A list of lists of 0-based positions in the supports; no group may be empty. An empty list says nothing."""
    return read_list(value, _read_group, "a list of lists of positions, such as [[0, 1], [2]]") or None


def _read_group(value: Json) -> tuple[int, ...]:
    if value == []:
        raise bad("is empty; leave the group out, or name what it needs")
    return read_list(value, read_whole_number, "a list of positions, such as [0, 1]")


def read_whole_number(value: Json) -> int:
    """An integer; true is none."""
    if type(value) is int:
        return value
    raise wrong(value, "a whole number")


# ── objects ───────────────────────────────────────────────────────────────────────────────────────────────────


def read_parts(value: Json, readers: Mapping[str, Reader], needed: Sequence[str]) -> dict[str, Any]:
    """An object: its keys that are not null, each read. Unknown keys, and missing ones that are needed, are wrong."""
    if not isinstance(value, dict):
        raise wrong(value, f"{{{', '.join(readers)}}}")
    try:
        parts = {key: readers[key](inner) for key, inner in value.items() if inner is not None or key not in readers}
        for key in needed:
            parts[key]
    except (KeyError, Unsound):  # a key that is not known, one that is missing, or a value
        raise _wrong_parts(value, readers, needed) from None
    return parts


def _wrong_parts(value: Mapping[str, Json], readers: Mapping[str, Reader], needed: Sequence[str]) -> Unsound:
    findings = Findings()
    for key, inner in value.items():
        if key not in readers:
            findings.unknown((key,), readers)
        elif inner is not None:
            findings.include_from(key, inner, readers[key])
    mistyped = {closest(key, readers) for key in value if key not in readers}
    for key in needed:
        if value.get(key) is None and key not in mistyped:
            findings.add((), f"has no {key}")
    return Unsound(findings)


def read_anchors(value: Json) -> tuple[Anchor, ...] | None:
    """A list of anchors; an empty one says nothing."""
    return read_list(value, _read_anchor, "a list of {rel_path, heading_path}") or None


_ANCHOR: Mapping[str, Reader] = {
    "rel_path": read_name,
    "heading_path": read_text,
    "snippets": read_names,
    "date": read_date,
}


def _read_anchor(value: Json) -> Anchor:
    return Anchor(**read_parts(value, _ANCHOR, ("rel_path",)))


def read_edges(value: Json) -> tuple[Edge, ...]:
    """A list of edges: `s -p-> o`, `s|p|o` or {subject, predicate, object}."""
    return read_list(value, _read_edge, "a list of edges such as 'laneige -hasProduct-> B08XYZ'")


_EDGE: Mapping[str, Reader] = dict.fromkeys(Edge._fields, read_name)
_PLAIN_EDGE = re.compile(r"(\S+) -(\w+)-> (\S+)")


def _read_edge(value: Json) -> Edge:
    if isinstance(value, str) and (plain := _PLAIN_EDGE.fullmatch(value)):
        return Edge(*plain.groups())  # what `Edge.parse` makes of it, in a third of the time
    try:
        return Edge.parse(read_parts(value, _EDGE, Edge._fields) if isinstance(value, dict) else value)
    except ValueError:
        raise wrong(value, "an edge: 's -p-> o', 's|p|o' or {subject, predicate, object}") from None


def read_turns(value: Json) -> tuple[Turn, ...]:
    """A list of {role, text}."""
    return read_list(value, _read_turn, "a list of {role, text}")


_TURN: Mapping[str, Reader] = {"role": read_name, "text": read_text}


def _read_turn(value: Json) -> Turn:
    return Turn(**read_parts(value, _TURN, Turn._fields))


def read_grades(value: Json) -> dict[str, float] | None:
    """An object of numbers by chunk id; an empty one says nothing."""
    if not isinstance(value, dict):
        raise wrong(value, "an object of grades by chunk id")
    try:
        return {name: _read_grade(grade) for name, grade in value.items()} or None
    except Unsound:
        findings = Findings()
        for name, grade in value.items():
            findings.include_from(name, grade, _read_grade)
        raise Unsound(findings) from None


def _read_grade(value: Json) -> float:
    if type(value) in (int, float) and abs(value) <= _LARGEST_GRADE:
        return float(value)
    raise wrong(value, "a number up to a million")


_LARGEST_GRADE = 1e6


def read_free(value: Json) -> dict[str, Json]:
    """Any object, kept as it is, at most `DEEPEST` levels deep."""
    if not isinstance(value, dict):
        raise wrong(value, "an object")
    level: list[Json] = [*value.values()]
    for _ in range(DEEPEST):
        if _NESTS.isdisjoint(map(type, level)):
            return value
        nests = [one for one in level if isinstance(one, (dict, list))]
        level = [inner for one in nests for inner in (one.values() if isinstance(one, dict) else one)]
    raise bad(f"is nested deeper than {DEEPEST} levels")


_NESTS = frozenset({dict, list})
DEEPEST = 64
"""How deep lists and objects may lie in one another: whoever shows the data later must not run out of stack."""


# ── the shapes by name ────────────────────────────────────────────────────────────────────────────────────────

_STRING = {"type": "string"}
_FILLED = {"type": "string", "pattern": r"\S"}
TEXT = Shape(read_text, _STRING, "text")
NAME = Shape(read_name, _FILLED, "text")
LABEL = Shape(read_label, _STRING, "text")
FLAG = Shape(read_flag, {"type": "boolean"}, "flag")
TEXTS = Shape(read_texts, {"type": "array", "items": _STRING})
NAMES = Shape(read_names, {"type": "array", "items": _FILLED})
IDS = Shape(read_ids, {"type": "array", "items": _FILLED})
SOME_NAMES = Shape(_some(read_names), NAMES.schema)
SOME_IDS = Shape(_some(read_ids), IDS.schema)
ANSWER = Shape(read_one_answer, _STRING, "text")
ANSWERS = Shape(read_answers, {"anyOf": [_STRING, {"type": "array", "items": _FILLED}]})
ANCHORS = Shape(read_anchors, {"type": "array", "items": {"$ref": "#/$defs/anchor"}})
GROUPS = Shape(
    read_groups,
    {"type": "array", "items": {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}}},
)
RULE = Shape(read_rule, {"enum": [*RULES]}, "text")
GRADES = Shape(read_grades, {"type": "object", "additionalProperties": {"type": "number"}})
EDGES = Shape(read_edges, {"type": "array", "items": {"$ref": "#/$defs/edge"}})
TURNS = Shape(read_turns, {"type": "array", "items": {"$ref": "#/$defs/turn"}})
OBJECT = Shape(read_object, {"type": "object"})
FREE = Shape(read_free, {"type": "object"})
