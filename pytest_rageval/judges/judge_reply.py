"""Replies of a model to a rubric: the one JSON object, its scores and its other fields, read without guessing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from pytest_rageval.io.strict_json import LONE_SURROGATE
from pytest_rageval.llm.json_exchange import (
    QUOTES_THE_MARKER,
    UnreadableReply,
    number_of,
    quoted_json,
    quotes_marker,
    value_in_words,
    value_of,
)
from pytest_rageval.llm.reply_object import reply_object
from pytest_rageval.llm.thoughts import CLOSING_TAG
from pytest_rageval.model import NOTHING, Json, Judgement, Rubric
from pytest_rageval.text import counted, cut

FACTS = "knowledge_retention"
"""The score that is a share of facts which the judge itself lists."""
VERDICT_FIELDS = ("score", "scores", "verdict", "rating", "reasoning")
"""Fields of verdicts, whatever the rubric: a draft may have other names than the reply."""
QUOTES_THE_MATERIAL = "its verdict stands word for word in the material"

LONGEST_TEXT = 4_000
"""Characters of the reasoning, of a claim and of any other text."""

MOST_ENTRIES = 200
"""Entries of a list."""


def read_reply(
    text: str,
    rubric: Rubric,
    marker: str,
    claims: int | None = None,
    *,
    is_joint: bool = False,
    material: Mapping[str, Json] = NOTHING,
) -> Judgement:
    """Read the one JSON object of a reply, alone or in a code fence, or the rubric's part of a joint one.

    Raise UnreadableReply if it is missing or damaged, or holds no score. Texts are cut and can be encoded; `flags` name
    doubts about the reply, `extra` holds the other fields.

    A score is a number on the rubric's schema and scale: 4, 4.5, "4" or "4/5", where the denominator is the top of the
    scale. For a boolean schema it is true or false; for an array, the share of true verdicts out of `claims`, which
    `extra` keeps in order as `verdicts`, or out of the facts that the judge itself lists, which `extra` keeps; of an
    empty list of these there is no score. Other fields of the schema may be missing or malformed, which is flagged,
    unless the rubric has no scores: then they are the judgement, and required ones must be there.
    Reasoning may be called an explanation. Fields outside the schema are dropped.

    A verdict that stands word for word in the `material` may be a quotation: it is flagged, and unreadable behind
    thoughts without an opening tag, which may be a reply that ends with a quotation.
    """
    properties = rubric.schema["properties"]
    reply = reply_object(text, [*VERDICT_FIELDS, rubric.name, *properties])
    is_quoted = stands_in(reply.text, material)
    if reply.has_thoughts and (is_quoted or plants_a_reply(material)):
        raise UnreadableReply("its object stands in the material, behind text that may be more than thoughts")
    stated = reply.members
    if is_joint:
        stated = _joint_part(reply.members, rubric.name)
        is_quoted = is_quoted or stands_in(json.dumps(stated, ensure_ascii=False), material)
    if "reasoning" in properties and "reasoning" not in stated and "explanation" in stated:
        stated = {**stated, "reasoning": stated["explanation"]}

    scores, listed = _scores(stated, rubric, claims)
    fields, flags = _other_fields(stated, rubric)
    fields |= listed
    if flags and not rubric.scores:
        raise UnreadableReply(cut("; ".join(flags), 300))
    if quotes_marker(text, reply.members, marker):
        flags.append(QUOTES_THE_MARKER)
    if is_quoted:
        flags.append(QUOTES_THE_MATERIAL)
    reasoning = str(fields.pop("reasoning", ""))
    has_lists = "supported_claims" in fields and "unsupported_claims" in fields
    supported = _claims(fields, "supported_claims")
    unsupported = _claims(fields, "unsupported_claims")
    contradiction = _contradiction(scores, rubric.scale, supported, unsupported) if has_lists else None
    if contradiction is not None:
        flags.append(contradiction)
    return Judgement(
        rubric=rubric.name,
        scores=scores,
        scale=rubric.scale,
        reasoning=reasoning,
        supported_claims=supported,
        unsupported_claims=unsupported,
        extra=fields,
        flags=tuple(flags),
    )


def _joint_part(stated: Mapping[str, Json], rubric: str) -> dict[str, Json]:
    """Return the object of one rubric in a joint reply."""
    part = value_of(stated, rubric)
    if not isinstance(part, dict):
        raise UnreadableReply(f'"{rubric}" is {value_in_words(part)}, expected an object')
    return part


def stands_in(written: str, material: Mapping[str, Json]) -> bool:
    """Return True if an object stands in one of the texts of the material, whatever its white space."""
    squeezed = "".join(written.split())
    texts = (text for text in _texts(list(material.values())) if "{" in text)
    return any(squeezed in "".join(text.split()) for text in texts)


def plants_a_reply(material: Mapping[str, Json]) -> bool:
    """Return True if a text of the material imitates the end of a judge's thoughts with a reply behind it."""
    return any(_PLANTED.search(text) for text in _texts(list(material.values())))


_PLANTED = re.compile(rf"{CLOSING_TAG.pattern}[\s`~a-z]{{0,40}}\{{")


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _texts(entry)


FULL, HIGH, LOW = 1.0, 0.8, 0.4
"""Shares of a scale: full marks allow no unsupported claim, high marks no majority, low marks require one."""


def _contradiction(
    scores: Mapping[str, float], scale: tuple[float, float], supported: tuple[str, ...], unsupported: tuple[str, ...]
) -> str | None:
    """Return in a line how the lists of claims contradict the reply's one score, or None."""
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


def _scores(stated: Mapping[str, Json], rubric: Rubric, claims: int | None) -> tuple[dict[str, float], dict[str, Json]]:
    """Return the rubric's scores by metric, and by field the lists that some of them are shares of."""
    listed: dict[str, Json] = {}
    scores: dict[str, float] = {}
    for metric, name in rubric.scores.items():
        if rubric.schema["properties"][name]["type"] != "array":
            scores[metric] = _score(stated, name, rubric)
        elif metric == FACTS:
            facts = _facts(name, value_of(stated, name))
            listed[name] = facts
            if facts:
                scores[metric] = sum(fact["kept"] for fact in facts) / len(facts)
        else:
            verdicts = _verdicts(name, value_of(stated, name), claims)
            listed[name] = verdicts
            scores[metric] = sum(verdicts) / len(verdicts)
    return scores, listed


def _score(stated: Mapping[str, Json], name: str, rubric: Rubric) -> float:
    """Return the score in a field as a number on the rubric's scale."""
    value = value_of(stated, name)
    schema = rubric.schema["properties"][name]
    if schema["type"] == "boolean":
        return float(_boolean(name, value))
    lowest, highest = rubric.scale
    low = schema.get("minimum", lowest)
    high = schema.get("maximum", highest)
    number = number_of(name, value, low, high)
    if not lowest <= number <= highest:
        raise UnreadableReply(f'"{name}" is {quoted_json(value)}, expected {low:g} to {high:g}')
    if rubric.step is not None:
        steps = (number - lowest) / rubric.step
        # Within rounding: 0.3 / 0.1 is not exactly 3.
        if abs(steps - round(steps)) >= 1e-9:
            expected = "a whole number" if rubric.step == 1 else f"a multiple of {rubric.step:g}"
            raise UnreadableReply(f'"{name}" is {quoted_json(value)}, expected {expected}')
    if schema["type"] == "integer" and number != int(number):
        raise UnreadableReply(f'"{name}" is {quoted_json(value)}, expected a whole number')
    if "enum" in schema and number not in schema["enum"]:
        allowed = ", ".join(f"{choice:g}" for choice in schema["enum"])
        raise UnreadableReply(f'"{name}" is {quoted_json(value)}, expected one of {allowed}')
    return float(number) or 0.0  # never -0.0


def _verdicts(name: str, value: Json, claims: int | None) -> list[bool]:
    """Return whether each claim is supported, in the order of their numbers, which must run from 1 to `claims`."""
    if not isinstance(value, list) or not value:
        raise UnreadableReply(f'"{name}" is {value_in_words(value)}, expected a list with a verdict on each claim')
    expected = claims or len(value)
    verdicts: dict[Json, bool] = {}
    for entry in value:
        if not isinstance(entry, Mapping):
            raise UnreadableReply(f'"{name}" holds {value_in_words(entry)}, expected an object for each claim')
        # By number, not by place: a model may answer in another order.
        number = int(number_of("number", value_of(entry, "number"), 1, expected))
        # Of two verdicts on one claim none can be trusted.
        if number in verdicts:
            raise UnreadableReply(f'"{name}" has two verdicts on claim {number}')
        verdicts[number] = _boolean("supported", value_of(entry, "supported"))
    if len(verdicts) != expected:
        raise UnreadableReply(f'"{name}" holds {len(verdicts)} verdicts, expected {expected}, one on each claim')
    return [verdicts[number] for number in sorted(verdicts)]


def _facts(name: str, value: Json) -> list[dict[str, Json]]:
    """Return the facts that the judge lists, each once, with whether each is kept."""
    if not isinstance(value, list):
        raise UnreadableReply(f'"{name}" is {value_in_words(value)}, expected a list of facts')
    if len(value) > MOST_ENTRIES:
        raise UnreadableReply(f'"{name}" holds {len(value)} facts, expected at most {MOST_ENTRIES}')
    facts: dict[str, dict[str, Json]] = {}
    for entry in value:
        if not isinstance(entry, Mapping):
            raise UnreadableReply(f'"{name}" holds {value_in_words(entry)}, expected an object for each fact')
        fact = value_of(entry, "fact")
        if not isinstance(fact, str) or not fact.strip():
            raise UnreadableReply(f'"fact" is {value_in_words(fact)}, expected text')
        reasoning = entry.get("reasoning")
        said = {
            "fact": _bounded(" ".join(fact.split())),
            "reasoning": _bounded(reasoning) if isinstance(reasoning, str) else "",
            "kept": _boolean("kept", value_of(entry, "kept")),
        }
        known = facts.setdefault(said["fact"], said)
        if known["kept"] != said["kept"]:
            raise UnreadableReply(f'"{name}" has two verdicts on one fact: {quoted_json(said["fact"][:80])}')
    return list(facts.values())


def _boolean(name: str, value: Json) -> bool:
    if value is True or value == "true":
        return True
    if value is False or value == "false":
        return False
    raise UnreadableReply(f'"{name}" is {value_in_words(value)}, expected true or false')


# ── its other fields ──────────────────────────────────────────────────────────────────────────────────────────


def _other_fields(stated: Mapping[str, Json], rubric: Rubric) -> tuple[dict[str, Json], list[str]]:
    """Return the schema's fields other than scores, cut to size, and notes on missing or malformed ones."""
    fields: dict[str, Json] = {}
    misfits = []
    required = rubric.schema.get("required", ())
    for name, schema in rubric.schema["properties"].items():
        if name in rubric.scores.values():
            continue
        if name not in stated:
            if name in required:
                misfits.append(f'"{name}" is missing')
        elif _fits(stated[name], schema):
            fields[name] = _bounded(stated[name])
        else:
            misfits.append(f'"{name}" is {value_in_words(stated[name])}, expected {schema.get("type")}')
    return fields, misfits


def _claims(fields: dict[str, Json], name: str) -> tuple[str, ...]:
    claims = fields.pop(name, ())
    return tuple(claim for claim in claims if isinstance(claim, str) and claim.strip())


def _fits(value: Json, schema: Mapping[str, Json]) -> bool:
    """Return True if a value has the schema's type, range and choice; lists are checked entry by entry."""
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
            return isinstance(value, dict) and _has_fitting_members(value, schema)
        case _:
            return True


def _has_fitting_members(value: Mapping[str, Json], schema: Mapping[str, Json]) -> bool:
    """Return True if the schema's properties fit where they are present, and are missing only where they may be."""
    required = schema.get("required", ())
    for name, property_schema in schema.get("properties", NOTHING).items():
        if name in value:
            if not _fits(value[name], property_schema):
                return False
        elif name in required:
            return False
    return True


def _bounded(value: Json) -> Json:
    """Return the value with its texts cut and encodable, and its lists and objects cut."""
    if isinstance(value, str):
        return LONE_SURROGATE.sub("\ufffd", cut(value, LONGEST_TEXT))
    if isinstance(value, list):
        return [_bounded(entry) for entry in value[:MOST_ENTRIES]]
    if isinstance(value, dict):
        return {_bounded(name): _bounded(entry) for name, entry in list(value.items())[:MOST_ENTRIES]}
    return value
