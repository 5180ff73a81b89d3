"""What does a rubric file say, and what is wrong with it? Every problem in one line, with its place in the file."""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.llm.fencing import MARKER
from pytest_rageval.model import PLACEHOLDER, VARIABLES, Rubric

KEYS = ("version", "scale", "prompt", "scores", "schema")
TYPES = ("string", "boolean", "integer", "number", "array", "object")
SCORED = ("boolean", "integer", "number")
"""Types of a field that holds a score."""


def read_rubric(name: str, content: bytes, shown: str) -> Rubric:
    """The rubric that a file holds; a SettingsError with all problems, each `FILE:LINE: …`, `shown` being the file."""
    try:
        text = content.decode()
        held = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise SettingsError(f"{shown}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
    except RecursionError:
        raise SettingsError(f"{shown}: nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{shown}:{_not_toml(str(error))}") from None
    problems = [f"{shown}:{_line_of(text, place)}: {problem}" for place, problem in _problems(held)]
    if problems:
        raise SettingsError(*problems)
    low, high = held["scale"]
    return Rubric(
        name=name,
        version=held["version"],
        prompt_version=f"{held['version']}+{hashlib.sha256(content).hexdigest()[:12]}",
        scale=(float(low), float(high)),
        scores=held["scores"],
        prompt=held["prompt"].strip() + "\n",
        schema=held["schema"],
    )


Problem = tuple[str, str]
"""Dotted key, or text to look for, and what is wrong there."""


def _problems(held: Mapping[str, Any]) -> Iterator[Problem]:
    for key in sorted(held.keys() - set(KEYS)):
        yield key, f"{key} is not a known key{_nearest(key, KEYS)}"
    for key in KEYS:
        if key not in held:
            yield "", f"{key} is missing"
    checks = {"version": _of_version, "scale": _of_scale, "prompt": _of_prompt, "scores": _of_scores}
    for key, check in checks.items():
        if key in held:
            yield from check(held[key])
    if "schema" in held:
        scores = held.get("scores")
        yield from _of_schema(held["schema"], scores if isinstance(scores, dict) else {}, held.get("scale"))


def _of_version(version: Any) -> Iterator[Problem]:
    if not isinstance(version, str) or not re.fullmatch(r"[\w.-]{1,40}", version):
        yield "version", f'version is {_short(version)}, expected a short text, as in "1"'


def _of_scale(scale: Any) -> Iterator[Problem]:
    if not _is_scale(scale):
        yield "scale", f"scale is {_short(scale)}, expected lowest and highest score, as in [0, 5]"


def _is_scale(scale: Any) -> bool:
    return isinstance(scale, list) and len(scale) == 2 and all(map(_is_number, scale)) and scale[0] < scale[1]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_OF_FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "minimum": (_is_number, "a number"),
    "maximum": (_is_number, "a number"),
    "enum": (lambda value: isinstance(value, list) and bool(value), "a list of values"),
    "items": (lambda value: isinstance(value, dict), 'a table, as in { type = "string" }'),
}


def _of_prompt(prompt: Any) -> Iterator[Problem]:
    if not isinstance(prompt, str):
        yield "prompt", f"prompt is {_short(prompt)}, expected text"
        return
    known = [*sorted(VARIABLES), MARKER]
    placeholders = dict.fromkeys(PLACEHOLDER.findall(prompt))
    for name in placeholders:
        if name not in known:
            yield f"{{{name}}}", f"prompt has an unknown placeholder {{{name}}}{_nearest(name, known)}"
    if MARKER not in placeholders:
        yield "prompt", f"prompt has no {{{MARKER}}}: without it, what is judged cannot be told from instructions"


def _of_scores(scores: Any) -> Iterator[Problem]:
    if not isinstance(scores, dict) or not all(isinstance(field, str) for field in scores.values()):
        yield "scores", f"scores is {_short(scores)}, expected a table of metric = field of the reply"


def _of_schema(schema: Any, scores: Mapping[str, Any], scale: Any) -> Iterator[Problem]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or not all(isinstance(one, dict) for one in properties.values()):
        yield "schema", "schema is not the JSON Schema of an object with a table of properties"
        return
    if schema.get("type") != "object":
        yield "schema.type", f'schema.type is {_short(schema.get("type"))}, expected "object": replies are JSON objects'
    required = schema.get("required")
    if not isinstance(required, list) or not all(isinstance(field, str) and field in properties for field in required):
        yield "schema.required", f"schema.required is {_short(required)}, expected a list of the reply's fields"
        required = list(properties)
    try:
        json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError) as error:
        yield "schema", f"schema cannot be written as JSON: {error}"
    for name, described in properties.items():
        yield from _of_field(f"schema.properties.{name}", described)
    for score, field in scores.items():
        if isinstance(field, str):
            yield from _of_score(score, field, properties, required, scale)


def _of_field(place: str, described: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with the description of one field of the reply."""
    if described.get("type") not in TYPES:
        yield f"{place}.type", f"{place}.type is {_short(described.get('type'))}, expected one of {', '.join(TYPES)}"
    for key, (is_sound, expected) in _OF_FIELDS.items():
        if key in described and not is_sound(described[key]):
            yield f"{place}.{key}", f"{place}.{key} is {_short(described[key])}, expected {expected}"


def _of_score(
    score: str, field: str, properties: Mapping[str, Mapping[str, Any]], required: list[Any], scale: Any
) -> Iterator[Problem]:
    """What is wrong with the field of the reply that holds a score."""
    described, place = properties.get(field), f"schema.properties.{field}"
    if described is None:
        yield f"scores.{score}", f"scores.{score} is {field!r}, no field of the schema{_nearest(field, properties)}"
        return
    if field not in required:
        yield "schema.required", f"schema.required lacks {field!r}, which holds the score of {score}"
    if described.get("type") in TYPES and described["type"] not in SCORED:
        yield f"{place}.type", f"{place}.type is {described['type']!r}, expected {', '.join(SCORED)} for a score"
    elif _is_scale(scale):
        for bound in ("minimum", "maximum"):
            value = described.get(bound, scale[0])
            if _is_number(value) and not scale[0] <= value <= scale[1]:
                yield f"{place}.{bound}", f"{place}.{bound} is {_short(value)}, beyond the scale {_short(scale)}"


def _line_of(text: str, place: str) -> int:
    """The line of a key, of a placeholder, else of the table that should hold it, else 1."""
    if place.startswith("{"):
        return text[: text.find(place)].count("\n") + 1
    table, _, key = place.rpartition(".")
    start = 0
    if table:
        header = re.search(rf"^\s*\[\s*{re.escape(table)}\s*\]", text, re.MULTILINE)
        start = header.start() if header else 0
    for pattern in (rf'^\s*"?{re.escape(key)}"?\s*=', rf"^\s*\[\s*{re.escape(place)}[\].]"):
        found = re.compile(pattern, re.MULTILINE).search(text, start) if key else None
        if found:
            start = found.end() - 1
            break
    return text.count("\n", 0, start) + 1


def _not_toml(message: str) -> str:
    """`Expected '=' (at line 3, column 5)` → `3:5: not TOML: Expected '='`."""
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message, re.DOTALL)
    if found is None:
        return f" not TOML: {message}"
    return f"{found[2]}:{found[3]}: not TOML: {found[1]}" if found[2] else f" not TOML at its end: {found[1]}"


def _nearest(name: str, known: Any) -> str:
    return did_you_mean(name, known, f"; known: {', '.join(known)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
