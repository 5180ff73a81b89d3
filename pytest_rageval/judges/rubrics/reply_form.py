"""Fields of a judge's reply in words, by the schema of its rubric."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from pytest_rageval.model import Json


def reply_fields(schema: Mapping[str, Json]) -> Iterator[str]:
    """Each field of the reply with its type and range, in the order of the schema: `"score" (a number from 0 to 5)`."""
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
