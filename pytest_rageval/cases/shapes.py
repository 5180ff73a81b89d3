"""What may a value be? Strict readers: a JSON value in; out what the model keeps, or Findings of what is wrong with it.

A reader never sees null. It converts nothing silently: a number is not a string, a string is not a list of one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pytest_rageval.cases.problems import Findings, bad, closest, wrong
from pytest_rageval.model import Anchor, Edge, Json, Turn

Reader = Callable[[Json], Any]
"""From a JSON value to what the model keeps, to None where the value says nothing, or to Findings."""


class Shape(NamedTuple):
    """One kind of value: how it is read, what JSON Schema says of it, and how it is written in a CSV cell."""

    read: Reader
    schema: Mapping[str, Json]
    in_cell: Literal["text", "flag", "json"] = "json"


# ── one value ─────────────────────────────────────────────────────────────────────────────────────────────────


def read_text(value: Json) -> str | Findings:
    """Any string."""
    return value if isinstance(value, str) else wrong(value, "a string")


def read_name(value: Json) -> str | Findings:
    """A string that is not blank."""
    if not isinstance(value, str):
        return wrong(value, "a string")
    return value if value and not value.isspace() else bad("is blank")


def read_label(value: Json) -> str | Findings | None:
    """A string, or None: a blank one says nothing, like an empty cell."""
    if not isinstance(value, str):
        return wrong(value, "a string")
    return value if value and not value.isspace() else None


def read_flag(value: Json) -> bool | Findings:
    """true or false."""
    return value if isinstance(value, bool) else wrong(value, "true or false")


def read_object(value: Json) -> dict[str, Json] | Findings:
    """Any object, taken as it is."""
    return value if isinstance(value, dict) else wrong(value, "an object")


def read_rule(value: Json) -> str | Findings:
    """One of the recency rules."""
    if isinstance(value, str) and value in RULES:
        return value
    close = closest(value, RULES) if isinstance(value, str) else None
    return wrong(value, f"one of {', '.join(RULES)}" + (f"; did you mean {close!r}?" if close else ""))


RULES = ("cite_newer", "acknowledge_both", "cite_both")


def read_date(value: Json) -> str | Findings:
    """Dates are compared as written, so they must be ISO 8601: a year, a month, a day, or an instant."""
    if isinstance(value, str) and _ISO_DATE.fullmatch(value):
        return value
    return wrong(value, "an ISO date such as '2024-05-31'")


_ISO_DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01])([T ]\d\d:\d\d\S{0,30})?)?)?", re.ASCII)


# ── lists ─────────────────────────────────────────────────────────────────────────────────────────────────────


def read_list(value: Json, read_item: Reader, expected: str) -> tuple[Any, ...] | Findings:
    """A list, each item of it read."""
    if not isinstance(value, list):
        return wrong(value, expected)
    items = tuple(map(read_item, value))
    if Findings not in map(type, items):
        return items
    findings = Findings()
    for position, item in enumerate(items):
        if isinstance(item, Findings):
            findings.include((position,), item)
    return findings


def read_texts(value: Json) -> tuple[str, ...] | Findings:
    """A list of any strings."""
    return read_list(value, read_text, "a list of strings")


def read_names(value: Json) -> tuple[str, ...] | Findings:
    """A list of strings, none of them blank."""
    if isinstance(value, list) and _are_names(value):
        return tuple(value)
    return read_list(value, read_name, "a list of strings")


def _are_names(items: list[Json]) -> bool:
    # Without a call of ours for each item: `str.strip` refuses what is no string, and leaves nothing of a blank one.
    try:
        return all(map(str.strip, items))
    except TypeError:
        return False


def read_ids(value: Json) -> tuple[str, ...] | Findings:
    """A list of names, as a set that keeps its order: an id named twice is one gold."""
    names = read_names(value)
    return names if isinstance(names, Findings) else tuple(dict.fromkeys(names))


def read_one_answer(value: Json) -> tuple[str] | Findings | None:
    """One answer; a blank one says nothing, like an empty cell."""
    label = read_label(value)
    return (label,) if isinstance(label, str) else label


def read_answers(value: Json) -> tuple[str, ...] | Findings | None:
    """One answer, or a list of answers any of which is right."""
    if isinstance(value, str):
        return read_one_answer(value)
    return read_list(value, read_name, "a string or a list of strings")


def read_groups(value: Json) -> tuple[tuple[int, ...], ...] | Findings:
    """A list of lists of 0-based positions in the supports; no group may be empty."""
    return read_list(value, _read_group, "a list of lists of positions, such as [[0, 1], [2]]")


def _read_group(value: Json) -> tuple[int, ...] | Findings:
    if value == []:
        return bad("is empty; leave the group out, or name what it needs")
    return read_list(value, read_whole_number, "a list of positions, such as [0, 1]")


def read_whole_number(value: Json) -> int | Findings:
    """An integer; true is none."""
    return value if type(value) is int else wrong(value, "a whole number")


# ── objects ───────────────────────────────────────────────────────────────────────────────────────────────────


def read_parts(value: Json, readers: Mapping[str, Reader], needed: Sequence[str]) -> dict[str, Any] | Findings:
    """An object: its keys that are not null, each read. Unknown keys, and missing ones that are needed, are wrong."""
    if not isinstance(value, dict):
        return wrong(value, f"{{{', '.join(readers)}}}")
    parts = {key: readers[key](inner) for key, inner in value.items() if inner is not None and key in readers}
    if Findings not in map(type, parts.values()) and (len(parts) == len(value) or value.keys() <= readers.keys()):
        for key in needed:
            if key not in parts:
                break
        else:
            return parts
    return _wrong_parts(value, parts, readers, needed)


def _wrong_parts(
    value: Mapping[str, Json], parts: Mapping[str, Any], readers: Mapping[str, Reader], needed: Sequence[str]
) -> Findings:
    findings = Findings()
    for key in value:
        if key not in readers:
            findings.unknown((key,), readers)
        elif isinstance(parts.get(key), Findings):
            findings.include((key,), parts[key])
    mistyped = {closest(key, readers) for key in value if key not in readers}
    for key in needed:
        if key not in parts and key not in mistyped:
            findings.add((), f"has no {key}")
    return findings


def read_anchors(value: Json) -> tuple[Anchor, ...] | Findings:
    """A list of anchors."""
    return read_list(value, _read_anchor, "a list of {rel_path, heading_path}")


_ANCHOR: Mapping[str, Reader] = {
    "rel_path": read_name,
    "heading_path": read_text,
    "snippets": read_names,
    "date": read_date,
}


def _read_anchor(value: Json) -> Anchor | Findings:
    parts = read_parts(value, _ANCHOR, ("rel_path",))
    return parts if isinstance(parts, Findings) else Anchor(**parts)


def read_edges(value: Json) -> tuple[Edge, ...] | Findings:
    """A list of edges: `s -p-> o`, `s|p|o` or {subject, predicate, object}."""
    return read_list(value, _read_edge, "a list of edges such as 'laneige -hasProduct-> B08XYZ'")


_EDGE: Mapping[str, Reader] = dict.fromkeys(Edge._fields, read_name)


def _read_edge(value: Json) -> Edge | Findings:
    parts = read_parts(value, _EDGE, Edge._fields) if isinstance(value, dict) else value
    if isinstance(parts, Findings):
        return parts
    try:
        return Edge.parse(parts)
    except ValueError:
        return wrong(value, "an edge: 's -p-> o', 's|p|o' or {subject, predicate, object}")


def read_turns(value: Json) -> tuple[Turn, ...] | Findings:
    """A list of {role, text}."""
    return read_list(value, _read_turn, "a list of {role, text}")


_TURN: Mapping[str, Reader] = {"role": read_name, "text": read_text}


def _read_turn(value: Json) -> Turn | Findings:
    parts = read_parts(value, _TURN, Turn._fields)
    return parts if isinstance(parts, Findings) else Turn(**parts)


def read_grades(value: Json) -> dict[str, float] | Findings:
    """An object of numbers by chunk id."""
    if not isinstance(value, dict):
        return wrong(value, "an object of grades by chunk id")
    findings = Findings()
    for name, grade in value.items():
        if type(grade) not in (int, float) or abs(grade) > _LARGEST_GRADE:
            findings.include((name,), wrong(grade, "a number up to a million"))
    return findings or {name: float(grade) for name, grade in value.items()}


_LARGEST_GRADE = 1e6


def read_free(value: Json) -> dict[str, Json] | Findings:
    """Any object, kept as it is, at most `DEEPEST` levels deep."""
    if not isinstance(value, dict):
        return wrong(value, "an object")
    level: list[Json] = [one for one in value.values() if isinstance(one, (dict, list))]
    for _ in range(DEEPEST):
        if not level:
            return value
        inner = [one for outer in level for one in (outer.values() if isinstance(outer, dict) else outer)]
        level = [one for one in inner if isinstance(one, (dict, list))]
    return bad(f"is nested deeper than {DEEPEST} levels")


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
