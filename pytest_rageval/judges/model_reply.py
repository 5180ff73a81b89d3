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
from pytest_rageval.text import counted, cut

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


def read_reply(text: str, rubric: Rubric, marker: str, claims: int | None = None) -> JudgeReply:
    """Read the one JSON object that a reply is, alone or in a code fence; else raise an UnreadableReply.

    A score is a number of the rubric's schema and scale: 4, 4.5, "4" or "4/5", where the denominator is the top of the
    scale; true or false where the schema says boolean; where it says array, the share of `claims` verdicts that are
    true, which `extra` keeps in order as `verdicts`. The schema's other fields may be missing or malformed
    (that is flagged) unless the rubric has no scores: then they are the judgement, and what is required must be there.
    Reasoning may be called an explanation. Fields that the schema does not name are dropped.
    """
    stated = stated_object(text)
    if "reasoning" in rubric.schema["properties"] and "reasoning" not in stated and "explanation" in stated:
        stated["reasoning"] = stated["explanation"]
    verdicts = {
        name: _verdicts(name, value_of(stated, name), claims)
        for name in rubric.scores.values()
        if rubric.schema["properties"][name]["type"] == "array"
    }
    scores = {
        metric: sum(verdicts[name]) / len(verdicts[name]) if name in verdicts else _score(stated, name, rubric)
        for metric, name in rubric.scores.items()
    }
    kept, misfits = _other_fields(stated, rubric)
    kept |= verdicts
    if misfits and not rubric.scores:
        raise UnreadableReply(cut("; ".join(misfits), 300))
    if quotes_marker(text, stated, marker):
        misfits.append(QUOTES_THE_MARKER)
    reasoning = str(kept.pop("reasoning", ""))
    has_lists = "supported_claims" in kept and "unsupported_claims" in kept
    supported, unsupported = (_claims(kept, name) for name in ("supported_claims", "unsupported_claims"))
    if has_lists and (contradiction := _contradiction(scores, rubric.scale, supported, unsupported)) is not None:
        misfits.append(contradiction)
    return JudgeReply(scores, reasoning, supported, unsupported, kept, tuple(misfits))


FULL, HIGH, LOW = 1.0, 0.8, 0.4
"""Shares of a scale: full marks leave no claim unsupported, high ones not most claims, low ones not none."""


def _contradiction(
    scores: Mapping[str, float], scale: tuple[float, float], supported: tuple[str, ...], unsupported: tuple[str, ...]
) -> str | None:
    """How the lists of claims contradict the one score of a reply, in a line, or None."""
    if len(scores) != 1 or not (supported or unsupported):
        return None
    (score,) = scores.values()
    share = (score - scale[0]) / (scale[1] - scale[0])
    is_too_high = (share >= FULL and unsupported) or (share >= HIGH and len(unsupported) > len(supported))
    is_too_low = share <= LOW and not unsupported
    if not (is_too_high or is_too_low):
        return None
    return (
        f"its lists contradict its score: {score:g} of {scale[1]:g}, with {counted(len(supported), 'claim')} supported "
        f"and {len(unsupported)} unsupported"
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
    if rubric.step is not None and not _is_whole((number - rubric.scale[0]) / rubric.step):
        expected = "a whole number" if rubric.step == 1 else f"a multiple of {rubric.step:g}"
        raise UnreadableReply(f'"{name}" is {quoted_json(value)}, expected {expected}')
    if schema["type"] == "integer" and number != int(number):
        raise UnreadableReply(f'"{name}" is {quoted_json(value)}, expected a whole number')
    if "enum" in schema and number not in schema["enum"]:
        allowed = ", ".join(f"{choice:g}" for choice in schema["enum"])
        raise UnreadableReply(f'"{name}" is {quoted_json(value)}, expected one of {allowed}')
    return float(number) or 0.0  # never -0.0


def _is_whole(steps: float) -> bool:
    return abs(steps - round(steps)) < 1e-9


def _verdicts(name: str, value: Json, claims: int | None) -> list[bool]:
    """Whether each claim is supported, in the order of their numbers, which go from 1 to `claims` without a gap."""
    if not isinstance(value, list) or not value:
        raise UnreadableReply(f'"{name}" is {value_in_words(value)}, expected a list with a verdict on each claim')
    verdicts: dict[Json, bool] = {}
    for entry in value:
        if not isinstance(entry, Mapping):
            raise UnreadableReply(f'"{name}" holds {value_in_words(entry)}, expected an object for each claim')
        number = int(number_of("number", value_of(entry, "number"), 1, claims or len(value)))
        if number in verdicts:
            raise UnreadableReply(f'"{name}" has two verdicts on claim {number}')
        verdicts[number] = _boolean("supported", value_of(entry, "supported"))
    if len(verdicts) != (claims or len(value)):
        raise UnreadableReply(f'"{name}" holds {len(verdicts)} verdicts, expected {claims}, one on each claim')
    return [verdicts[number] for number in sorted(verdicts)]


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
