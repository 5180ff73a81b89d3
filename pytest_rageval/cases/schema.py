"""What may stand on a line of a JSONL case file, as JSON Schema, so that editors complete and check it?"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_rageval.cases.fields import Field
from pytest_rageval.cases.spellings.layers import GOLD
from pytest_rageval.cases.spellings.spelling import FIELDS
from pytest_rageval.model import Json


def case_schema() -> dict[str, Json]:
    """JSON Schema (draft 2020-12) of one line. What ties lines or fields together is checked by loading alone."""
    properties = _properties(FIELDS)
    properties["gold"] = _nullable(
        {"type": "object", "additionalProperties": False, "properties": _properties(GOLD)}, FIELDS["gold"].about
    )
    named = {"type": "string", "pattern": r"\S"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "RAG evaluation case",
        "description": "One question and all that is known to be right about it. null equals absent.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "anyOf": [
            {"required": ["question"], "properties": {"question": named}},
            {"required": ["query"], "properties": {"query": named}},
        ],
        "$defs": _definitions(),
    }


def _properties(fields: Mapping[str, Field]) -> dict[str, Json]:
    return {key: _nullable(one.shape.schema, one.about) for key, one in fields.items()}


def _nullable(schema: Mapping[str, Json], about: str) -> dict[str, Json]:
    if isinstance(schema.get("type"), str):
        return {"description": about, **schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        return {"description": about, "enum": [*schema["enum"], None]}
    return {"description": about, "anyOf": [*schema.get("anyOf", [schema]), {"type": "null"}]}


def _definitions() -> dict[str, Json]:
    text, filled = {"type": "string"}, {"type": "string", "pattern": r"\S"}
    return {
        "anchor": {
            "type": "object",
            "description": "A place in a document.",
            "additionalProperties": False,
            "required": ["rel_path"],
            "properties": {
                "rel_path": {**filled, "description": "Path of the document, as the system reports it."},
                "heading_path": {
                    "type": ["string", "null"],
                    "description": "Headings from the top, '# Setup > ## Linux'; what lies below matches too.",
                },
                "snippets": {
                    "type": ["array", "null"],
                    "items": filled,
                    "description": "Passages, one of which the chunk must hold.",
                },
                "date": {
                    "type": ["string", "null"],
                    "description": "ISO date of what the place says: 2024, 2024-05, 2024-05-31.",
                },
            },
        },
        "edge": {
            "description": "'subject -predicate-> object', 'subject|predicate|object', or an object.",
            "anyOf": [
                text,
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["subject", "predicate", "object"],
                    "properties": dict.fromkeys(("subject", "predicate", "object"), filled),
                },
            ],
        },
        "turn": {
            "type": "object",
            "description": "One earlier turn of the conversation.",
            "additionalProperties": False,
            "required": ["role", "text"],
            "properties": {"role": {**filled, "description": "user, assistant, …"}, "text": text},
        },
    }
