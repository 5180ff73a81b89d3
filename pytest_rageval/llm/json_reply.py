"""The one JSON object that a model's reply states, and its numbers. Read strictly: what is not plain is not guessed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import NoReturn

from pytest_rageval.model import Json
from pytest_rageval.text import cut, excerpt

LONGEST_REPLY = 100_000
"""Characters; a longer reply is not read."""

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


def stated_object(text: str) -> dict[str, Json]:
    """The one object that the reply holds, however often."""
    if len(text) > LONGEST_REPLY:
        raise UnreadableReply(f"it is {len(text):,} characters long, more than {LONGEST_REPLY:,}")
    if SURROGATE.search(text):
        raise UnreadableReply("it holds a lone surrogate, which is no character")
    objects: dict[str, dict[str, Json]] = {}
    for span in _spans(text):
        stated = _parsed(span)
        if stated is not None:
            objects[json.dumps(stated, sort_keys=True)] = stated
    if not objects:
        plain = text.strip(INVISIBLE)
        raise UnreadableReply(f"it holds no JSON object: {quoted_json(plain)}" if plain else "it is empty")
    if len(objects) > 1:
        raise UnreadableReply(f"it holds {len(objects)} different JSON objects")
    (stated,) = objects.values()
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
            raise UnreadableReply(f"it holds a list, expected one object: {quoted_json(span)}")
        return None
    try:
        stated = _DECODER.decode(span)
    except UnreadableReply:
        raise
    except json.JSONDecodeError as error:
        if _OF_DATA.search(span) is None:
            return None
        raise UnreadableReply(f"it holds an object that is not valid JSON ({error.msg}): {quoted_json(span)}") from None
    assert isinstance(stated, dict), "what begins with a brace and is JSON is an object"
    return stated


def _without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    stated: dict[str, Json] = {}
    for name, value in pairs:
        if name in stated:
            raise UnreadableReply(f"{quoted_json(name)} is stated twice in one object")
        stated[name] = value
    return stated


def _no_number(constant: str) -> NoReturn:
    raise UnreadableReply(f"{constant} is no number of JSON")


def _whole(written: str) -> int:
    if len(written) > MOST_DIGITS:
        raise UnreadableReply(f"{quoted_json(written)} is too large a number")
    return int(written)


def _finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise UnreadableReply(f"{quoted_json(written)} is too large a number")
    return number


# One for all: made anew for each stretch, it would be most of the time that a hostile reply takes.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_duplicates, parse_constant=_no_number, parse_float=_finite, parse_int=_whole
)
_TOKEN = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}
SURROGATE = re.compile("[\ud800-\udfff]")
# A brace with a quotation mark or a colon behind it was meant as data, whatever else is wrong with it.
_OF_DATA = re.compile("[\"'“”:]")


def quotes_marker(text: str, stated: Mapping[str, Json], marker: str) -> bool:
    """Whether a reply repeats the marker of its request, in its text or, spelt with escapes, in what it states."""
    return marker in text or marker in json.dumps(stated, ensure_ascii=False)


# ── its numbers ───────────────────────────────────────────────────────────────────────────────────────────────


def value_of(stated: Mapping[str, Json], name: str) -> Json:
    """The value of a field, which must be stated, and once."""
    if name not in stated:
        raise UnreadableReply(f'"{name}" is missing')
    alike = [key for key in stated if key != name and key.strip(INVISIBLE).casefold() == name.casefold()]
    if alike:
        raise UnreadableReply(f'"{name}" is stated twice, once as {quoted_json(alike[0])}')
    return scalar(stated[name])


def scalar(value: Json) -> Json:
    return value.strip(INVISIBLE) if isinstance(value, str) else value


def number_of(name: str, value: Json, low: float, high: float) -> float:
    """The number within its range that a value states, alone or as a fraction of the top: 4, 4.0, "4" or "4/5"."""
    number = _number(name, value, high)
    if not low <= number <= high:
        raise UnreadableReply(f'"{name}" is {quoted_json(value)}, expected {low:g} to {high:g}')
    return number


def _number(name: str, value: Json, top: float) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    written = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
    if written is None:
        raise UnreadableReply(f'"{name}" is {value_in_words(value)}, expected a number')
    if written["of"] is not None and float(written["of"]) != top:
        raise UnreadableReply(f'"{name}" is {value_in_words(value)}, expected a number or a fraction of {top:g}')
    return float(written["number"])


_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,20})?"
_WRITTEN = re.compile(rf"(?P<number>[+-]?{_NUMBER})(?: ?/ ?(?P<of>{_NUMBER}))?")
# White space, and what takes no room on a screen: zero-width characters, joiners, soft hyphen, byte order mark.
INVISIBLE = " \t\r\n\f\v\x1c\x1d\x1e\x1f\x85\xa0\xad\u1680\u180e\u2028\u2029\u202f\u205f\u2060\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x2010))
)


# ── saying what came ──────────────────────────────────────────────────────────────────────────────────────────


def value_in_words(value: Json) -> str:
    """The value, or what kind of thing it is where it is no scalar."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return quoted_json(value)


def quoted_json(value: Json) -> str:
    """The beginning of what came, as JSON, on one line that a terminal survives."""
    return excerpt(json.dumps(cut(value, 60) if isinstance(value, str) else value, ensure_ascii=False), 80)
