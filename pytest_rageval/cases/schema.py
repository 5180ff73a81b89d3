"""JSON Schema of one line of a JSONL case file, for editors; derived from the types that read the line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from pytest_rageval.assertions.reading import assertion_schemas
from pytest_rageval.cases.keys import CONVERSATION, FILLED, KEYS, AnchorShape, Line
from pytest_rageval.model import Json


def case_schema() -> dict[str, Json]:
    """Return the JSON Schema (draft 2020-12) of one line. Rules across lines or fields are checked only by loading."""
    line = TypeAdapter(Line).json_schema()
    definitions = {_short(name): _tidy(schema) for name, schema in line.pop("$defs").items()}
    definitions["anchor"]["description"] = AnchorShape.__doc__
    gold = definitions.pop("ingold") | {"description": KEYS["gold"].about}
    definitions |= assertion_schemas()
    asked = [{"required": [name], "properties": {name: FILLED}} for name in ("question", "query")]
    assertions: dict[str, Json] = {"type": ["array", "null"], "description": KEYS["assert"].about}
    assertions["items"] = {"$ref": "#/$defs/assertion"}
    turn = definitions["askedturn"]
    turn["properties"] |= {"gold": _nullable(gold), "assert": assertions}
    turn["anyOf"] = asked
    del definitions["message"]["additionalProperties"]  # chat services put more there
    tidy = _tidy(line)
    turns = tidy["properties"]["turns"]
    turns["items"] = {"anyOf": [{"$ref": "#/$defs/askedturn"}, {"$ref": "#/$defs/message"}]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "RAG evaluation case",
        "description": "One question and all that is known to be right about it. null equals absent.",
        **tidy,
        "properties": tidy["properties"] | {"gold": _nullable(gold), "assert": assertions},
        "anyOf": [
            *asked,
            *({"required": [name], "properties": {name: {"type": "array"}}} for name in CONVERSATION),
        ],
        "$defs": definitions,
    }


def _tidy(schema: Any) -> Any:
    """Remove generated titles and defaults, allow null for optional keys, and forbid other keys."""
    if isinstance(schema, list):
        return [_tidy(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    tidy = {key: _tidy(inner) for key, inner in schema.items() if key not in ("title", "default", "properties")}
    if "$ref" in schema:
        return {**tidy, "$ref": _short(schema["$ref"])}
    if "properties" in schema:
        needed = schema.get("required", ())
        inner = {name: _tidy(each) for name, each in schema["properties"].items()}
        tidy["properties"] = {name: each if name in needed else _nullable(each) for name, each in inner.items()}
        tidy["additionalProperties"] = False
    elif tidy.get("additionalProperties") is True:
        del tidy["additionalProperties"]
    return tidy


def _short(name: str) -> str:
    """Shorten `#/$defs/AnchorShape` to `#/$defs/anchor`."""
    above, slash, last = name.rpartition("/")
    return f"{above}{slash}{last.removesuffix('Shape').lower()}"


def _nullable(schema: Mapping[str, Json]) -> dict[str, Json]:
    described = {key: schema[key] for key in ("description",) if key in schema}
    rest = {key: inner for key, inner in schema.items() if key != "description"}
    if "enum" in rest:
        return {**described, "enum": [*rest["enum"], None]}
    if isinstance(rest.get("type"), str):
        return {**described, **rest, "type": [rest["type"], "null"]}
    alternatives = [each for each in rest.get("anyOf", [rest]) if each != {"type": "null"}]
    if len(alternatives) == 1 and "type" in alternatives[0]:
        return _nullable({**alternatives[0], **described})
    return {**described, "anyOf": [*alternatives, {"type": "null"}]}
