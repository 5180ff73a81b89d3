"""Prompts of judge models: the rubric's, with the material fenced, and the one that asks for a reply again."""

from __future__ import annotations

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.rubrics.reply_form import reply_fields
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
    fields = ", ".join(reply_fields(rubric.schema))
    return (
        f"Your reply could not be read: {wrong}.\n"
        "Judge as you did; only the form was wrong. Reply once more with one JSON object and nothing else: no code "
        f"fence, no text around it. Its fields: {fields}."
    )
