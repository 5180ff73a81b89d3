"""Rubric files: their format and validation, with one line per problem and its place."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, with_config

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.expected import Expects
from pytest_rageval.io.messages import Unsound
from pytest_rageval.io.records import RecordReader
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.judges.rubrics.prompt_text import LABELS, single_prompt
from pytest_rageval.llm.json_exchange import MARKER
from pytest_rageval.model import PLACEHOLDER, VARIABLES, Json, Rubric


def rubric_of_table(name: str, content: bytes, table: Mapping[str, Any]) -> Rubric:
    """Build the rubric from a file's content and its valid table."""
    low, high = table["scale"]
    rubric = Rubric(
        name=name,
        version=table["version"],
        prompt_version="",
        scale=(float(low), float(high)),
        scores=table["scores"],
        prompt=table["prompt"].strip() + "\n",
        schema=table["schema"],
        step=None if table.get("step") is None else float(table["step"]),
    )
    material = tuple(table.get("material") or ())
    return _prompted(rubric, content, rubric.prompt, table.get("reply"), material)


def _prompted(rubric: Rubric, content: bytes, task: str, reply: str | None, material: tuple[str, ...]) -> Rubric:
    """Return the rubric with the prompt of its parts, unless it brings its own, and the version of both."""
    if material:
        task = task.strip()
        reply = (reply or ", ".join(reply_fields(rubric.schema))).strip()
        prompt = single_prompt(task, reply, material)
        rubric = replace(rubric, prompt=prompt, task=task, reply=reply, material=material)
    digest = hashlib.sha256(content + rubric.prompt.encode()).hexdigest()
    return replace(rubric, prompt_version=f"{rubric.version}+{digest[:12]}")


def reply_fields(schema: Mapping[str, Json]) -> Iterator[str]:
    """Yield each field of the reply with type and range, in the schema's order: `"score" (a number from 0 to 5)`."""
    for name, field in schema["properties"].items():
        expected = _KINDS.get(str(field.get("type")), "a value")
        if "enum" in field:
            expected = "one of " + ", ".join(json.dumps(choice) for choice in field["enum"])
        elif "minimum" in field and "maximum" in field:
            expected += f" from {field['minimum']:g} to {field['maximum']:g}"
        yield f'"{name}" ({expected})'


_KINDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}


def read_rubric(name: str, content: bytes, shown: str) -> Rubric:
    """Read a rubric file, named `shown` in messages; raise SettingsError with all problems, each as `FILE:LINE: …`."""
    text = _decoded(content, shown)
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise SettingsError(f"{shown}: nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{shown}:{_place_first(error)}") from None
    problems = [f"{shown}:{_line_of(text, place)}: {problem}" for place, problem in _problems(table)]
    if problems:
        raise SettingsError(*problems)
    return rubric_of_table(name, content, table)


def _place_first(error: tomllib.TOMLDecodeError) -> str:
    """Return `3:5: not TOML: Expected '='` for `Expected '=' (at line 3, column 5)`."""
    message, place = str(error).removesuffix(")").rsplit(" (at ", 1)
    numbers = re.findall("[0-9]+", place)
    if not numbers:  # "at end of document"
        return f" not TOML at its end: {message}"
    line, column = numbers
    return f"{line}:{column}: not TOML: {message}"


def _decoded(content: bytes, shown: str, encoding: str = "utf-8") -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise SettingsError(f"{shown}: not UTF-8 at byte {error.start}; save it as UTF-8") from None


def _rising(scale: tuple[float, ...]) -> tuple[float, ...]:
    if len(scale) != 2 or scale[0] >= scale[1]:
        ends = ", ".join(f"{end:g}" for end in scale)
        raise ValueError(f"is [{ends}], expected {_SCALE}")
    return scale


def _known(material: tuple[str, ...]) -> tuple[str, ...]:
    for name in material:
        if name not in LABELS:
            raise ValueError(f"holds {name!r}, no variable{nearest_of(name, list(LABELS))}")
    return material


_SCALE = "lowest and highest score, as in [0, 5]"
_MATERIAL = 'a list of variables, as in ["question", "answer"]'
_STEP = "a number above 0, as in 1 for whole points"
_Number = Annotated[float, Expects("a number")]
_Table = Mapping[str, Json]
_OPEN = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)
_AN_OBJECT = Expects("an object")
_VALUES = Expects("a list of values", broken="is empty, expected a list of values")


@with_config(_OPEN)
@dataclass(frozen=True, slots=True)
class _Field:
    """One field of the reply as JSON Schema; keys not listed here are passed to the model unread."""

    type: Literal["string", "boolean", "integer", "number", "array", "object"]
    minimum: _Number | None = None
    maximum: _Number | None = None
    enum: Annotated[tuple[Json, ...], Field(min_length=1), _VALUES] | None = None
    items: Annotated[_Table, Expects('a table, as in { type = "string" }')] | None = None


@with_config(_OPEN)
@dataclass(frozen=True, slots=True)
class _Schema:
    """The reply as a whole."""

    type: Annotated[Literal["object"], Expects('"object": replies are JSON objects')]
    properties: Mapping[str, Annotated[_Field, _AN_OBJECT]]
    required: Annotated[tuple[str, ...], Expects("a list of the reply's fields")]


@dataclass(frozen=True, slots=True)
class _RubricTable:
    """The whole file."""

    version: Annotated[str, Field(pattern=r"^[\w.-]{1,40}$"), Expects('a short text, as in "1"')]
    scale: Annotated[tuple[float, ...], AfterValidator(_rising), Expects(_SCALE)]
    prompt: Annotated[str, Expects("text")]
    scores: Annotated[Mapping[str, str], Expects("a table of metric = field of the reply")]
    schema: Annotated[_Schema, _AN_OBJECT]
    material: Annotated[tuple[str, ...], AfterValidator(_known), Expects(_MATERIAL)] = ()
    reply: Annotated[str, Expects("text")] | None = None
    step: Annotated[float, Field(gt=0), Expects(_STEP)] | None = None


_RUBRICS: RecordReader[_RubricTable] = RecordReader(_RubricTable)
SCORED = ("boolean", "integer", "number")
"""Types of a field that holds a score."""
LISTED = ("claim_support", "knowledge_retention")
"""The scores that may be a list, of verdicts on claims or facts: the share with `supported` or `kept` true."""


Problem = tuple[str, str]
"""Dotted key, or text to search for, and the problem there."""


def _problems(table: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        rubric = _RUBRICS.read(table)
    except Unsound as unsound:
        for finding in unsound.findings.first:
            keys = takewhile(lambda step: isinstance(step, str), finding.path)
            yield ".".join(map(str, keys)), str(finding)
        rubric = None
    if isinstance(table.get("prompt"), str):
        yield from _prompt_problems(table["prompt"], is_fenced=not table.get("material"))
    if isinstance(table.get("schema"), dict):
        try:
            json.dumps(table["schema"], allow_nan=False)
        except (TypeError, ValueError) as error:
            yield "schema", f"schema cannot be written as JSON: {error}"
    if rubric is not None:
        fields = list(rubric.schema.properties)
        for name in rubric.schema.required:
            if name not in fields:
                near = nearest_of(name, fields)
                yield "schema.required", f"schema.required names {name!r}, no field of the reply{near}"
        for score, name in rubric.scores.items():
            yield from _score_problems(score, name, rubric)


def _prompt_problems(prompt: str, *, is_fenced: bool) -> Iterator[Problem]:
    names = [*sorted(VARIABLES), MARKER]
    placeholders = dict.fromkeys(PLACEHOLDER.findall(prompt))
    for name in placeholders:
        if not is_fenced:
            yield f"{{{name}}}", f"prompt has the placeholder {{{name}}}; beside material, name the variable there"
        elif name not in names:
            yield f"{{{name}}}", f"prompt has an unknown placeholder {{{name}}}{nearest_of(name, names)}"
    if is_fenced and MARKER not in placeholders:
        lacking = "without it, what is judged cannot be told from instructions"
        remedy = "or name the variables in material, which is fenced by itself"
        yield "prompt", f"prompt has no {{{MARKER}}}: {lacking}; {remedy}"


def _score_problems(score: str, name: str, rubric: _RubricTable) -> Iterator[Problem]:
    """Yield the problems of the reply's field that holds a score."""
    field = rubric.schema.properties.get(name)
    place = f"schema.properties.{name}"
    if field is None:
        near = nearest_of(name, list(rubric.schema.properties))
        yield f"scores.{score}", f"scores.{score} is {name!r}, no field of the schema{near}"
        return
    if name not in rubric.schema.required:
        yield "schema.required", f"schema.required lacks {name!r}, which holds the score of {score}"
    if field.type == "array" and score in LISTED:
        return
    if field.type not in SCORED:
        yield f"{place}.type", f"{place}.type is {field.type!r}, expected {', '.join(SCORED)} for a score"
        return
    low, high = rubric.scale
    beyond = f"beyond the scale [{low:g}, {high:g}]; change one of them"
    for bound, value in (("minimum", field.minimum), ("maximum", field.maximum)):
        if value is not None and not low <= value <= high:
            yield f"{place}.{bound}", f"{place}.{bound} is {value:g}, {beyond}"
    if field.type == "boolean":  # its choices are true and false, no points of the scale
        return
    for choice in field.enum or ():
        if isinstance(choice, bool) or not isinstance(choice, int | float):
            yield f"{place}.enum", f"{place}.enum holds {choice!r}, expected numbers of the scale [{low:g}, {high:g}]"
        elif not low <= choice <= high:
            yield f"{place}.enum", f"{place}.enum holds {choice:g}, {beyond}"


def _line_of(text: str, place: str) -> int:
    """Return the line of a key or placeholder, else of the table that should hold it, else 1."""
    if place.startswith("{"):
        return text.count("\n", 0, text.find(place)) + 1
    table, _, key = place.rpartition(".")
    start = 0
    if table:
        header = re.search(rf"^\s*\[\s*{re.escape(table)}\s*\]", text, re.MULTILINE)
        start = header.start() if header else 0
    if key:
        assignment = re.compile(rf'^\s*"?{re.escape(key)}"?\s*=', re.MULTILINE)
        own_table = re.compile(rf"^\s*\[\s*{re.escape(place)}[\].]", re.MULTILINE)
        match = assignment.search(text, start) or own_table.search(text, start)
        if match:
            start = match.end() - 1
    return text.count("\n", 0, start) + 1


def nearest_of(name: str, names: Sequence[str]) -> str:
    """Return a suggestion of a similar name, or all of the names."""
    return did_you_mean(name, names, f"; known: {', '.join(names)}")


# ── a prompt in plain text ──────────────────────────────────────────────────────────────────────────────────────


def read_text_rubric(name: str, content: bytes, shown: str, shipped: Rubric | None) -> Rubric:
    """Read a rubric from a prompt in plain text; raise SettingsError with all problems, each as `FILE:LINE: …`.

    Each placeholder becomes the name of its material, which follows in fences at the end. Scale and fields of the reply
    are those of the `shipped` rubric that it replaces; otherwise it scores from 0 to 1, with a reason.
    """
    text = _decoded(content, shown, "utf-8-sig").strip()
    problems = list(_unknown_placeholders(text, shown))
    if problems:
        raise SettingsError(*problems)
    form = replace(shipped or _scored_from_0_to_1(name), version="text", step=None)
    material = tuple(dict.fromkeys(_PLACEHOLDER.findall(text)))
    task = _PLACEHOLDER.sub(lambda match: f"(the {LABELS[match[1]]}, given below)", text)
    prompt = single_prompt(task, ", ".join(reply_fields(form.schema)), material)
    return _prompted(replace(form, prompt=prompt), content, task, None, material)


def _unknown_placeholders(text: str, shown: str) -> Iterator[str]:
    allowed = ", ".join(f"{{{variable}}}" for variable in sorted(VARIABLES))
    for line, written in enumerate(text.split("\n"), start=1):
        for name in dict.fromkeys(_PLACEHOLDER.findall(written)):
            if name not in VARIABLES:
                meant = did_you_mean(name, VARIABLES) or ";"
                yield f"{shown}:{line}: unknown placeholder {{{name}}}{meant} allowed: {allowed}"


def _scored_from_0_to_1(name: str) -> Rubric:
    properties = {
        "reasoning": {"type": "string"},
        "score": {"type": "number", "minimum": 0, "maximum": 1},
    }
    schema = {"type": "object", "additionalProperties": False, "required": [*properties], "properties": properties}
    return Rubric(
        name=name,
        version="",
        prompt_version="",
        scale=(0.0, 1.0),
        scores={name: "score"},
        prompt="",
        schema=schema,
    )


# JSON in a prompt, such as {"score": 4}, is not a placeholder.
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
