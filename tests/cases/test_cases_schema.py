"""The JSON Schema for editors: it knows the same keys as the loader and calls the same lines right."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from case_files import loaded

from pytest_rageval.cases.schema import case_schema

MALFORMED = Path(__file__).parent.parent / "data" / "cases" / "malformed.txt"


def allows(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> bool:
    """The few keywords that our schema uses, and a refusal of any other."""
    known = {"$schema", "title", "description", "$defs", "type", "properties", "additionalProperties", "required"}
    assert schema.keys() <= known | {"anyOf", "$ref", "items", "enum", "pattern", "minimum", "maximum", "minItems"}
    if "$ref" in schema:
        return allows(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, root)
    checks = [
        "type" not in schema or any(is_of(value, one) for one in listed(schema["type"])),
        "enum" not in schema or value in schema["enum"],
        "anyOf" not in schema or any(allows(one, value, root) for one in schema["anyOf"]),
    ]
    if isinstance(value, str):
        checks.append(re.search(schema.get("pattern", ""), value) is not None)
    elif isinstance(value, list):
        checks.append(len(value) >= schema.get("minItems", 0))
        checks += [allows(schema.get("items", {}), item, root) for item in value]
    elif isinstance(value, dict):
        checks.append(set(schema.get("required", ())) <= value.keys())
        rest = schema.get("additionalProperties", True)
        for key, inner in value.items():
            rule = schema.get("properties", {}).get(key, rest)
            checks.append(allows(rule, inner, root) if isinstance(rule, dict) else rule)
    elif isinstance(value, int | float):
        checks.append(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    return all(checks)


def listed(one_or_more: Any) -> list[Any]:
    return one_or_more if isinstance(one_or_more, list) else [one_or_more]


def is_of(value: Any, name: str) -> bool:
    kinds = {"string": str, "object": dict, "array": list, "boolean": bool, "null": type(None)}
    if name in ("integer", "number"):
        return type(value) is int or (name == "number" and type(value) is float)
    return isinstance(value, kinds[name])


SOUND: list[dict[str, Any]] = [
    {"question": "Why?"},
    {"query": "Why?", "relevant_ids": [], "irrelevant_ids": None, "category": "negative"},
    {"question": "Why?", "gold": {"answer": ["a", "b"], "relevance": {"a": 1.5}, "kg_edges": ["a|b|c"]}},
    {"question": "Why?", "gold": {"kg_edges": [{"subject": "a", "predicate": "b", "object": "c"}], "concepts": []}},
    {"question": "Why?", "gold_supports": [{"rel_path": "a.md", "snippets": None}], "required_support_groups": [[0]]},
    {
        "question": "Why?",
        "recency_conflict_rule": None,
        "history": [{"role": "user", "text": ""}],
        "metadata": {"a": 1},
    },
    {"question": "Why?", "reference": "a", "tag": "t", "contexts": [""], "answerable": False, "requires_kg": True},
]


@pytest.mark.parametrize("line", SOUND)
def test_what_loads_is_allowed(tmp_path: Path, line: dict[str, Any]):
    assert loaded(tmp_path, json.dumps(line)).problems == ()
    assert allows(case_schema(), line, case_schema())


def wrongly_shaped_lines() -> list[Any]:
    """Lines of which loading says an unknown key, a missing one, or a value of the wrong type."""
    rows = []
    for block in MALFORMED.read_text(encoding="utf-8").split("\n\n")[1:]:
        name, line, problem, *_ = block.strip("\n").split("\n")
        if "not a known key" in problem or "expected a" in problem or "question is" in problem:
            rows.append((name, line))
    return [pytest.param(line, id=name) for name, line in rows if "date" not in line and "kg_edges" not in line]


@pytest.mark.parametrize("line", wrongly_shaped_lines())
def test_what_is_wrongly_shaped_is_not_allowed(line: str):
    assert not allows(case_schema(), json.loads(line), case_schema())


def test_every_key_has_a_description():
    schema = case_schema()
    described = [*schema["properties"].values(), *schema["properties"]["gold"]["properties"].values()]
    assert all(one["description"] for one in described)
