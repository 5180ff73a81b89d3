"""Which scores does a judge model's reply state? Read strictly: what is not plain is not guessed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from pytest_rageval.model import NOTHING, Json, Rubric
from pytest_rageval.text import printable

LONGEST_REPLY = 100_000
"""Characters; a longer reply is not read."""

LONGEST_TEXT = 4_000
"""Characters kept of the reasoning, of a claim and of any other text."""

MOST_ENTRIES = 200
"""Entries kept of a list."""

DEEPEST = 8
"""Levels of brackets; a reply that nests deeper is not read."""

MOST_DIGITS = 18
"""Of a whole number: no more can be told apart once it is a float."""

QUOTES_THE_MARKER = "quotes the marker"


class UnreadableReply(ValueError):
    """No score can be read from a reply. `reason` says why, in one bounded line without a full stop."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


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


def read_reply(text: str, rubric: Rubric, marker: str, *, is_truncated: bool = False) -> JudgeReply:
    """The one JSON object in a reply, alone, in a code fence or with prose around it; else an UnreadableReply.

    A score is a number of the rubric's schema and scale: 4, 4.0, "4" or "4/5", where the denominator is the top of the
    scale; true or false where the schema says boolean. Several objects count as one if they are equal. The schema's
    other fields may be missing or malformed (that is flagged) unless the rubric has no scores: then they are the
    judgement, and what is required must be there. Fields that the schema does not name are dropped.
    """
    if is_truncated:
        raise UnreadableReply("it was cut off before its end")
    stated = _the_object(text)
    scores = {metric: _score(stated, name, rubric) for metric, name in rubric.scores.items()}
    kept, misfits = _other_fields(stated, rubric)
    if misfits and not rubric.scores:
        raise UnreadableReply("; ".join(misfits)[:300])
    if marker in text or marker in json.dumps(stated, ensure_ascii=False):
        misfits.append(QUOTES_THE_MARKER)
    return JudgeReply(
        scores=scores,
        reasoning=str(kept.pop("reasoning", "")),
        supported_claims=_claims(kept, "supported_claims"),
        unsupported_claims=_claims(kept, "unsupported_claims"),
        extra=kept,
        flags=tuple(misfits),
    )


# ── the object ────────────────────────────────────────────────────────────────────────────────────────────────


def _the_object(text: str) -> dict[str, Json]:
    """The one object that the reply holds, however often."""
    if len(text) > LONGEST_REPLY:
        raise UnreadableReply(f"it is {len(text):,} characters long, more than {LONGEST_REPLY:,}")
    if _SURROGATE.search(text):
        raise UnreadableReply("it holds a lone surrogate, which is no character")
    found: dict[str, dict[str, Json]] = {}
    for span in _spans(text):
        stated = _parsed(span)
        if stated is not None:
            found[json.dumps(stated, sort_keys=True)] = stated
    if not found:
        plain = text.strip(_INVISIBLE)
        raise UnreadableReply(f"it holds no JSON object: {_quoted(plain)}" if plain else "it is empty")
    if len(found) > 1:
        raise UnreadableReply(f"it holds {len(found)} different JSON objects")
    (stated,) = found.values()
    return stated


def _spans(text: str) -> Iterator[str]:
    """Each stretch from an opening bracket to the one that closes it, none inside another; in one pass.

    Brackets inside the quotation marks of a stretch are text. Brackets that do not match are not guessed at.
    """
    expected: list[str] = []
    start, is_quoted = 0, False
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark[0] == "\\" or (is_quoted and mark != '"'):
            continue
        if mark == '"':
            # Outside of brackets a quotation mark is prose and need not have a partner.
            is_quoted = bool(expected) and not is_quoted
        elif mark in _CLOSING:
            start = start if expected else token.start()
            expected.append(_CLOSING[mark])
            if len(expected) > DEEPEST:
                raise UnreadableReply(f"its brackets nest deeper than {DEEPEST} levels")
        elif not expected or expected.pop() != mark:
            raise UnreadableReply("its brackets do not match")
        elif not expected:
            yield text[start : token.end()]
    if expected:
        raise UnreadableReply("it holds an object or a list that does not end")


def _parsed(span: str) -> dict[str, Json] | None:
    """The object of a stretch; None where the brackets are those of prose, as in `{a, b}` and `[1]`."""
    if span[0] == "[":
        if "{" in span or '"' in span:
            raise UnreadableReply(f"it holds a list, expected one object: {_quoted(span)}")
        return None
    try:
        stated = _DECODER.decode(span)
    except UnreadableReply:
        raise
    except json.JSONDecodeError as error:
        if _OF_DATA.search(span) is None:
            return None
        raise UnreadableReply(f"it holds an object that is not valid JSON ({error.msg}): {_quoted(span)}") from None
    assert isinstance(stated, dict), "what begins with a brace and is JSON is an object"
    return stated


def _without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    stated: dict[str, Json] = {}
    for name, value in pairs:
        if name in stated:
            raise UnreadableReply(f"{_quoted(name)} is stated twice in one object")
        stated[name] = value
    return stated


def _no_number(constant: str) -> NoReturn:
    raise UnreadableReply(f"{constant} is no number of JSON")


def _whole(written: str) -> int:
    if len(written) > MOST_DIGITS:
        raise UnreadableReply(f"{_quoted(written)} is too large a number")
    return int(written)


def _finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise UnreadableReply(f"{_quoted(written)} is too large a number")
    return number


# One for all: made anew for each stretch, it would be most of the time that a hostile reply takes.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_duplicates, parse_constant=_no_number, parse_float=_finite, parse_int=_whole
)
_TOKEN = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}
_SURROGATE = re.compile("[\ud800-\udfff]")
# A brace with a quotation mark or a colon behind it was meant as data, whatever else is wrong with it.
_OF_DATA = re.compile("[\"'“”:]")


# ── its scores ────────────────────────────────────────────────────────────────────────────────────────────────


def _score(stated: Mapping[str, Json], name: str, rubric: Rubric) -> float:
    """The score in a field, as a number of the rubric's scale."""
    if name not in stated:
        raise UnreadableReply(f'"{name}" is missing')
    alike = [key for key in stated if key != name and key.strip(_INVISIBLE).casefold() == name.casefold()]
    if alike:
        raise UnreadableReply(f'"{name}" is stated twice, once as {_quoted(alike[0])}')
    schema = rubric.schema["properties"][name]
    value = _scalar(stated[name])
    if schema["type"] == "boolean":
        return float(_boolean(name, value))
    low, high = schema.get("minimum", rubric.scale[0]), schema.get("maximum", rubric.scale[1])
    number = _number(name, value, high)
    if not (low <= number <= high and rubric.scale[0] <= number <= rubric.scale[1]):
        raise UnreadableReply(f'"{name}" is {_quoted(value)}, expected {low:g} to {high:g}')
    if schema["type"] == "integer" and number != int(number):
        raise UnreadableReply(f'"{name}" is {_quoted(value)}, expected a whole number')
    if "enum" in schema and number not in schema["enum"]:
        allowed = ", ".join(f"{one:g}" for one in schema["enum"])
        raise UnreadableReply(f'"{name}" is {_quoted(value)}, expected one of {allowed}')
    return float(number) or 0.0  # never -0.0


def _scalar(value: Json) -> Json:
    return value.strip(_INVISIBLE) if isinstance(value, str) else value


def _boolean(name: str, value: Json) -> bool:
    if value is True or value == "true":
        return True
    if value is False or value == "false":
        return False
    raise UnreadableReply(f'"{name}" is {_shown(value)}, expected true or false')


def _number(name: str, value: Json, top: float) -> float:
    """The number that a value states, alone or as a fraction of the top of its scale."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    written = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
    if written is None:
        raise UnreadableReply(f'"{name}" is {_shown(value)}, expected a number')
    if written["of"] is not None and float(written["of"]) != top:
        raise UnreadableReply(f'"{name}" is {_shown(value)}, expected a number or a fraction of {top:g}')
    return float(written["number"])


_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,20})?"
_WRITTEN = re.compile(rf"(?P<number>[+-]?{_NUMBER})(?: ?/ ?(?P<of>{_NUMBER}))?")
# White space, and what takes no room on a screen: zero-width characters, joiners, soft hyphen, byte order mark.
_INVISIBLE = " \t\r\n\f\v\x1c\x1d\x1e\x1f\x85\xa0\xad\u1680\u180e\u2028\u2029\u202f\u205f\u2060\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x2010))
)


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
            misfits.append(f'"{name}" is {_shown(stated[name])}, expected {schema.get("type")}')
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
        return _SURROGATE.sub("\ufffd", value[:LONGEST_TEXT])
    if isinstance(value, list):
        return [_bounded(entry) for entry in value[:MOST_ENTRIES]]
    if isinstance(value, dict):
        return {_bounded(name): _bounded(entry) for name, entry in list(value.items())[:MOST_ENTRIES]}
    return value


# ── saying what came ──────────────────────────────────────────────────────────────────────────────────────────


def _shown(value: Json) -> str:
    """The value, or what kind of thing it is where it is no scalar."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return _quoted(value)


def _quoted(value: Json) -> str:
    """The beginning of what came, as JSON, on one line that a terminal survives."""
    written = json.dumps(value[:60] if isinstance(value, str) else value, ensure_ascii=False)
    return printable(" ".join(written.split()))[:80]
