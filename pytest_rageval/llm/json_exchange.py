"""Prompts with untrusted material, fenced by markers that nobody can predict, and the values in the replies.

Replies are read strictly, without guessing.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from pytest_rageval.model import PLACEHOLDER, Json
from pytest_rageval.text import cut, excerpt

MARKER = "marker"
"""The placeholder for the fence of a request; not a variable."""

LONGEST_VARIABLE = 100_000
"""Characters shown of one variable, all its texts together; the rest is cut, with a note."""

MOST_TEXTS = 1_000
"""Entries shown of one list."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The whole message to the model. `flags` name the cut variables, one line each."""

    text: str
    flags: tuple[str, ...] = ()


def new_marker(variables: Mapping[str, Json], secret: str | None = None) -> str:
    """Return the fence of one request: 64 bits in hexadecimal that occur in none of the variables.

    They are derived from the material and a secret, random by default: with the same secret, a request has the same
    fence again, which no text can predict.
    """
    shown = json.dumps(dict(variables), ensure_ascii=False, default=str)
    key = (secret or secrets.token_hex(16)).encode()
    for attempt in count():
        derived = hmac.new(key, f"{attempt} {shown}".encode("utf-8", "surrogatepass"), "sha256")
        marker = f"fence-{derived.hexdigest()[:16]}"
        if marker not in shown:
            return marker
    raise AssertionError("unreachable: no text holds all fences")


def fenced_prompt(template: str, variables: Mapping[str, Json], marker: str) -> Prompt:
    """Fill marker and variables into the template in one pass: placeholders inside a variable are not expanded.

    Each variable is written as JSON in which `<`, `>`, `&`, line separators, control characters and lone surrogates are
    escaped, so that no text can hold a tag or end a line. A variable of more than LONGEST_VARIABLE characters or
    MOST_TEXTS entries is cut, and a line after its JSON says so. Other braces stay as they are.
    """
    written = {MARKER: marker}
    flags = []
    for name in sorted(variables):
        written[name], is_cut = _written(variables[name])
        if is_cut:
            flags.append(f"{name} shown in part")
    text = PLACEHOLDER.sub(lambda match: written.get(match[1], match[0]), template)
    return Prompt(text, tuple(flags))


# ── variables ─────────────────────────────────────────────────────────────────────────────────────────────────


def _written(value: Json) -> tuple[str, bool]:
    """Return the variable as JSON, with a note if it was cut, and whether it was cut."""
    left = LONGEST_VARIABLE
    is_cut = False

    def within(value: Json) -> Json:
        """Return the value with its texts cut, in order, where the room ends."""
        nonlocal left, is_cut
        if isinstance(value, str):
            is_cut |= len(value) > left
            shown = value[:left]
            left -= len(shown)
            return shown
        if isinstance(value, Mapping):
            return {"id" if key == "chunk_id" else key: within(entry) for key, entry in value.items()}
        if not isinstance(value, list | tuple):
            return value
        entries: list[Json] = []
        for entry in value:
            if len(entries) == MOST_TEXTS or left <= 0:
                is_cut = True
                break
            entries.append(within(entry))
        return entries

    shown = within(value)
    if isinstance(shown, list) and shown:
        lines = ",\n".join(_as_json(entry) for entry in shown)
        written = f"[\n{lines}\n]"
    else:
        written = _as_json(shown)
    if is_cut:
        written += "\n(cut here because of its length: there is more, which is not shown)"
    return written, is_cut


def _as_json(value: Json) -> str:
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


# JSON has none of these outside strings; inside, each may be escaped.
_UNSAFE = re.compile("[<>&\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


# ── its reply ─────────────────────────────────────────────────────────────────────────────────────────────────

QUOTES_THE_MARKER = "quotes the marker"


class UnreadableReply(ValueError):
    """A reply without a readable score. `reason` says why, in one bounded line without a full stop."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def quotes_marker(text: str, stated: Mapping[str, Json], marker: str) -> bool:
    """Return True if a reply repeats the marker of its request, as text or written with JSON escapes."""
    return marker in text or marker in json.dumps(stated, ensure_ascii=False)


# ── its numbers ───────────────────────────────────────────────────────────────────────────────────────────────


def value_of(stated: Mapping[str, Json], name: str) -> Json:
    """Return the value of a field; raise UnreadableReply if it is missing or stated twice."""
    if name not in stated:
        raise UnreadableReply(f'"{name}" is missing')
    for key in stated:
        if key != name and key.strip(INVISIBLE).casefold() == name.casefold():
            raise UnreadableReply(f'"{name}" is stated twice, once as {quoted_json(key)}')
    value = stated[name]
    return value.strip(INVISIBLE) if isinstance(value, str) else value


def number_of(name: str, value: Json, low: float, high: float) -> float:
    """Return the number that a value states, alone or as a fraction of `high`: 4, 4.0, "4" or "4/5"."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        number: float = value
    else:
        written = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
        if written is None:
            raise UnreadableReply(f'"{name}" is {value_in_words(value)}, expected a number')
        denominator = written["of"]
        if denominator is not None and float(denominator) != high:
            raise UnreadableReply(f'"{name}" is {value_in_words(value)}, expected a number or a fraction of {high:g}')
        number = float(written["number"])
    if not low <= number <= high:
        raise UnreadableReply(f'"{name}" is {quoted_json(value)}, expected {low:g} to {high:g}')
    return number


_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,20})?"
_WRITTEN = re.compile(rf"(?P<number>[+-]?{_NUMBER})(?: ?/ ?(?P<of>{_NUMBER}))?")
# White space and invisible characters: zero-width characters, joiners, soft hyphen, byte order mark.
INVISIBLE = " \t\r\n\f\v\x1c\x1d\x1e\x1f\x85\xa0\xad\u1680\u180e\u2028\u2029\u202f\u205f\u2060\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x2010))
)


# ── values in messages ──────────────────────────────────────────────────────────────────────────────────────────


def value_in_words(value: Json) -> str:
    """Return the value as JSON, or its kind if it is a list or an object."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return quoted_json(value)


def quoted_json(value: Json) -> str:
    """Return the beginning of a value as JSON, on one line that is safe for a terminal."""
    if isinstance(value, str):
        value = cut(value, 60)
    return excerpt(json.dumps(value, ensure_ascii=False), 80)
