"""Shipped rubrics by name: the TOML files in this folder, which need no validation."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.model import Json, JudgeRequest, Rubric

_FOLDER = Path(__file__).parent


@cache
def rubric_names() -> tuple[str, ...]:
    """Return the names of all shipped rubrics, sorted."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def load_rubric(name: str) -> Rubric:
    """Return the shipped rubric of that name; raise SettingsError with the nearest name for an unknown one."""
    if name not in rubric_names():
        known = ", ".join(rubric_names())
        raise SettingsError(f"unknown rubric {name!r}{did_you_mean(name, rubric_names(), f'; known: {known}')}")
    return shipped_rubric(name)


def rubric_of(request: JudgeRequest) -> Rubric:
    """Return the rubric of a request: the one that it brings, else the shipped one of its name."""
    return request.wording or load_rubric(request.rubric)


@cache
def shipped_rubric(name: str) -> Rubric:
    """Read a shipped rubric unchecked: the tests check its table, which would cost 15 ms at each start."""
    content = (_FOLDER / f"{name}.toml").read_bytes()
    return rubric_of_table(name, content, tomllib.loads(content.decode()))


def rubric_of_table(name: str, content: bytes, table: Mapping[str, Any]) -> Rubric:
    """Build the rubric from a file's content and its valid table."""
    low, high = table["scale"]
    return Rubric(
        name=name,
        version=table["version"],
        prompt_version=f"{table['version']}+{hashlib.sha256(content).hexdigest()[:12]}",
        scale=(float(low), float(high)),
        scores=table["scores"],
        prompt=table["prompt"].strip() + "\n",
        schema=table["schema"],
        step=None if table.get("step") is None else float(table["step"]),
    )


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
