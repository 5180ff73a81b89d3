"""Prompts with untrusted material: each text as JSON, between markers that nobody could foresee."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_rageval.model import PLACEHOLDER, Json

MARKER = "marker"
"""The placeholder for the random fence of a request: no variable, it is drawn."""

LONGEST_VARIABLE = 100_000
"""Characters of one variable, all its texts together, that are shown; what lies beyond is cut, with a note."""

MOST_TEXTS = 1_000
"""Entries of one list that are shown."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The whole message to the model. `flags` name the variables that were cut, one line each."""

    text: str
    flags: tuple[str, ...] = ()


def new_marker(variables: Mapping[str, Json]) -> str:
    """A fence of one request: 64 random bits in hexadecimal, occurring in none of the variables."""
    shown = json.dumps(dict(variables), ensure_ascii=False, default=str)
    while (marker := f"fence-{secrets.token_hex(8)}") in shown:
        pass
    return marker


def fenced_prompt(template: str, variables: Mapping[str, Json], marker: str) -> Prompt:
    """The template with marker and variables filled in, in one pass: what a variable holds is never expanded.

    Each variable is written as JSON in which `<`, `>`, `&`, line separators, control characters and lone surrogates are
    escapes. So no text holds a tag or an end of line, and `json.loads` gives back what the model was to be shown.
    Contexts are a list of {"id": str or None, "text": str}. A variable of more than LONGEST_VARIABLE characters or
    MOST_TEXTS entries is cut; a line after its JSON says so. Other braces stand for themselves.
    """
    written = {MARKER: marker}
    flags = []
    for name in sorted(variables):
        written[name], is_cut = _written(variables[name])
        if is_cut:
            flags.append(f"{name} shown in part")
    return Prompt(PLACEHOLDER.sub(lambda match: written.get(match[1], match[0]), template), tuple(flags))


# ── variables ─────────────────────────────────────────────────────────────────────────────────────────────────


def _written(value: Json) -> tuple[str, bool]:
    """The variable as JSON, with a note where it was cut, and whether it was."""
    budget = _Budget(LONGEST_VARIABLE)
    shown = budget.within(value)
    if isinstance(shown, list) and shown:
        lines = ",\n".join(_as_json(entry) for entry in shown)
        written = f"[\n{lines}\n]"
    else:
        written = _as_json(shown)
    if not budget.is_exceeded:
        return written, False
    return f"{written}\n(cut here because of its length: there is more, which is not shown)", True


class _Budget:
    """So many characters may still be shown of one variable."""

    def __init__(self, characters: int) -> None:
        self._left = characters
        self.is_exceeded = False

    def within(self, value: Json) -> Json:
        """The value with its texts cut, in order, where the budget ends."""
        if isinstance(value, str):
            return self._cut(value)
        if isinstance(value, Mapping):
            return {_KEYS.get(key, key): self.within(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return list(self._entries(value))
        return value

    def _entries(self, values: Sequence[Json]) -> Iterator[Json]:
        for number, value in enumerate(values):
            if number == MOST_TEXTS or self._left <= 0:
                self.is_exceeded = True
                return
            yield self.within(value)

    def _cut(self, text: str) -> str:
        self.is_exceeded |= len(text) > self._left
        shown = text[: self._left]
        self._left -= len(shown)
        return shown


_KEYS = {"chunk_id": "id"}


def _as_json(value: Json) -> str:
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


# Outside of strings JSON holds none of these; inside, each may be written as an escape.
_UNSAFE = re.compile("[<>&\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
