"""Prompts of judge models: the rubric's, with the material fenced, and the one that asks for a reply again."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pytest_rageval.errors import JudgeError
from pytest_rageval.llm.fencing import Prompt, fenced_prompt
from pytest_rageval.model import JudgeRequest, Rubric
from pytest_rageval.text import printable

LONGEST_REASON = 500


def render(rubric: Rubric, request: JudgeRequest, marker: str) -> Prompt:
    """The rubric's prompt with marker and variables filled in, as `fenced_prompt` does it.

    A variable that the request lacks is a JudgeError of kind invalid_request.
    """
    lacking = sorted(rubric.variables - set(request.variables))
    if lacking:
        raise JudgeError("invalid_request", f"rubric {rubric.name!r} reads {', '.join(lacking)}: not in the request")
    return fenced_prompt(rubric.prompt, {name: request.variables[name] for name in rubric.variables}, marker)


def repair_prompt(rubric: Rubric, reason: str) -> str:
    """The one message that follows an unreadable reply: what was wrong with it, and what is asked for once more."""
    wrong = printable(" ".join(reason.split()))[:LONGEST_REASON]
    fields = ", ".join(_asked_for(rubric))
    return (
        f"Your reply could not be read: {wrong}.\n"
        "Judge as you did; only the form was wrong. Reply once more with one JSON object and nothing else: no code "
        f"fence, no text around it. Its fields: {fields}."
    )


def _asked_for(rubric: Rubric) -> Iterator[str]:
    """Each field of the reply with its type and range, in the order of the schema."""
    for name, field in rubric.schema["properties"].items():
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
