"""Is a text strict JSON? Parsed at full speed; equal keys, NaN and lone surrogates are refused."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from pytest_rageval.model import Json


def reworded(error: json.JSONDecodeError) -> str:
    """What the parser says, as the end of a sentence of ours."""
    said = error.msg.removesuffix(" starting at").removesuffix(" at")
    return said[:1].lower() + said[1:]


class Refused(Exception):
    """Valid for `json`, not for us; a second pass says what and where."""


def parse(text: str) -> Json:
    """The value of a JSON text.

    Raises json.JSONDecodeError where the syntax is wrong, RecursionError where it is nested too deep for the parser,
    ValueError where a number has thousands of digits, Refused for the rest.
    """
    if text.startswith("{"):  # nearly always: what `decode` does about white space around costs a tenth of it all
        value, end = _DECODER.raw_decode(text)
        if end < len(text):
            value = _DECODER.decode(text)
    else:
        value = _DECODER.decode(text)
    if "\\" in text and _MAY_BE_LONE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise Refused from None
    return value


_MAY_BE_LONE = re.compile(r"\\u[dD][89a-fA-F]")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Refused
    return members


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise Refused
    return number


def _refuse(_: str) -> Any:
    raise Refused


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse)
