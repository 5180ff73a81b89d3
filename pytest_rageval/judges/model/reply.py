"""Scores and other fields that a judge model's reply states, by its rubric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_rageval.llm.json_reply import (
    QUOTES_THE_MARKER,
    SURROGATE,
    UnreadableReply,
    number_of,
    quoted_json,
    quotes_marker,
    stated_object,
    value_in_words,
    value_of,
)
from pytest_rageval.model import NOTHING, Json, Rubric
from pytest_rageval.text import cut

LONGEST_TEXT = 4_000
"""Characters kept of the reasoning, of a claim and of any other text."""

MOST_ENTRIES = 200
"""Entries kept of a list."""


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """What a reply states. `scores` by metric name; `extra` holds the other fields of the rubric's schema.

    Texts can be encoded and are cut, lists too. `flags` say what makes the reply doubtful, one line each.
    """

    scores: Mapping[str, float]
    reasoning: str = ""
    supported_claims: tuple[str, ...] = ()
    unsupported_claims: tuple[str, ...] = ()
    extra: Mapping[str, Json] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


def read_reply(text: str, rubric: Rubric, marker: str) -> JudgeReply:
    """The one JSON object in a reply, alone, in a code fence or with prose around it; else an UnreadableReply.

    A score is a number of the rubric's schema and scale: 4, 4.0, "4" or "4/5", where the denominator is the top of the
    scale; true or false where the schema says boolean. Several objects count as one if they are equal. The schema's
    other fields may be missing or malformed (that is flagged) unless the rubric has no scores: then they are the
    judgement, and what is required must be there. Fields that the schema does not name are dropped.
    """
    stated = stated_object(text)
    scores = {metric: _score(stated, name, rubric) for metric, name in rubric.scores.items()}
    kept, misfits = _other_fields(stated, rubric)
    if misfits and not rubric.scores:
        raise UnreadableReply(cut("; ".join(misfits), 300))
    if quotes_marker(text, stated, marker):
        misfits.append(QUOTES_THE_MARKER)
    return JudgeReply(
        scores=scores,
        reasoning=str(kept.pop("reasoning", "")),
        supported_claims=_claims(kept, "supported_claims"),
        unsupported_claims=_claims(kept, "unsupported_claims"),
        extra=kept,
        flags=tuple(misfits),
    )


# ── its scores ────────────────────────────────────────────────────────────────────────────────────────────────


def _score(stated: Mapping[str, Json], name: str, rubric: Rubric) -> float:
    """The score in a field, as a number of the rubric's scale."""
    value = value_of(stated, name)
    schema = rubric.schema["properties"][name]
    if schema["type"] == "boolean":
        return float(_boolean(name, value))
    low, high = schema.get("minimum", rubric.scale[0]), schema.get("maximum", rubric.scale[1])
    number = number_of(name, value, low, high)
    if not rubric.scale[0] <= number <= rubric.scale[1]:
        raise UnreadableReply(f'"{name}" is {quoted_json(value)}, expected {low:g} to {high:g}')
    if schema["type"] == "integer" and number != int(number):
        raise UnreadableReply(f'"{name}" is {quoted_json(value)}, expected a whole number')
    if "enum" in schema and number not in schema["enum"]:
        allowed = ", ".join(f"{choice:g}" for choice in schema["enum"])
        raise UnreadableReply(f'"{name}" is {quoted_json(value)}, expected one of {allowed}')
    return float(number) or 0.0  # never -0.0


def _boolean(name: str, value: Json) -> bool:
    if value is True or value == "true":
        return True
    if value is False or value == "false":
        return False
    raise UnreadableReply(f'"{name}" is {value_in_words(value)}, expected true or false')


# ── its other fields ──────────────────────────────────────────────────────────────────────────────────────────


def _other_fields(stated: Mapping[str, Json], rubric: Rubric) -> tuple[dict[str, Json], list[str]]:
    """What the schema names beside the scores, cut to size; and what is missing or not as the schema says."""
    kept: dict[str, Json] = {}
    misfits = []
    required = rubric.schema.get("required", ())
    for name, schema in rubric.schema["properties"].items():
        if name in rubric.scores.values():
            continue
        if name not in stated:
            if name in required:
                misfits.append(f'"{name}" is missing')
        elif _fits(stated[name], schema):
            kept[name] = _bounded(stated[name])
        else:
            misfits.append(f'"{name}" is {value_in_words(stated[name])}, expected {schema.get("type")}')
    return kept, misfits


def _claims(kept: dict[str, Json], name: str) -> tuple[str, ...]:
    claims = kept.pop(name, ())
    return tuple(claim for claim in claims if isinstance(claim, str) and claim.strip())


def _fits(value: Json, schema: Mapping[str, Json]) -> bool:
    """Whether a value is of the schema's type, within its range and choice; lists entry by entry."""
    if "enum" in schema and value not in schema["enum"]:
        return False
    match schema.get("type"):
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer" | "number" as kind:
            is_number = isinstance(value, int if kind == "integer" else int | float) and not isinstance(value, bool)
            return is_number and schema.get("minimum", value) <= value <= schema.get("maximum", value)
        case "array":
            return isinstance(value, list) and all(_fits(entry, schema.get("items", NOTHING)) for entry in value)
        case "object":
            properties = schema.get("properties", NOTHING)
            return isinstance(value, dict) and all(
                _fits(value[name], properties[name]) if name in value else name not in schema.get("required", ())
                for name in properties
            )
        case _:
            return True


def _bounded(value: Json) -> Json:
    """A value that can be written: texts cut and encodable, lists and objects cut."""
    if isinstance(value, str):
        return SURROGATE.sub("\ufffd", cut(value, LONGEST_TEXT))
    if isinstance(value, list):
        return [_bounded(entry) for entry in value[:MOST_ENTRIES]]
    if isinstance(value, dict):
        return {_bounded(name): _bounded(entry) for name, entry in list(value.items())[:MOST_ENTRIES]}
    return value
