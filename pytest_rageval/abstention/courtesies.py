"""Courtesies around an answer: greetings, thanks, offers of help, announcements, sign-offs.

They say nothing about whether the answer declines, and they stand around answers and refusals alike. A sentence counts
as a courtesy only as a whole and only if it denies nothing: "I'd be happy to help, but the notes do not say." stays.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

MOST_TAKEN = 8
"""Courtesies that are taken off at either end."""
LONGEST_COURTESY = 240
"""Characters of a sentence that may be a courtesy."""


class PlainAnswer(NamedTuple):
    """An answer without its courtesies. `is_announcement`: nothing is left, and it said what the system will do."""

    text: str
    is_announcement: bool = False


@lru_cache(maxsize=64)  # the features, several metrics and the judge ask for the same answer in turn
def without_courtesies(answer: str) -> PlainAnswer:
    """Take courtesies off both ends of an answer; one of nothing but courtesies stays as it is.

    >>> without_courtesies("Great question! The plan costs 59 euros. I hope this helps!").text
    'The plan costs 59 euros.'
    >>> without_courtesies("One moment please, let me look that up.").is_announcement
    True
    """
    rest = answer.strip()
    kinds: list[str] = []
    for _ in range(MOST_TAKEN):
        taken = _opener(rest)
        if taken is None:
            break
        kind, end = taken
        kinds.append(kind)
        rest = rest[end:].lstrip()
    for _ in range(MOST_TAKEN):
        taken = _closer(rest)
        if taken is None:
            break
        kind, start = taken
        kinds.append(kind)
        rest = rest[:start].rstrip()
    if _LETTER.search(rest):
        return PlainAnswer(rest)
    return PlainAnswer(answer, is_announcement="announcement" in kinds)


def _opener(text: str) -> tuple[str, int] | None:
    """Return the kind of the courtesy that opens a text, and where it ends."""
    end = _first_sentence_end(text)
    if kind := _kind(text[:end]):
        return kind, end
    lead_in = _patterns()["lead-in"].match(_folded(text[:LONGEST_COURTESY]))
    if lead_in is None or _patterns()["denial"].search(lead_in[0]) or not _LETTER.search(text[lead_in.end() : end]):
        return None
    return "lead-in", lead_in.end()


def _closer(text: str) -> tuple[str, int] | None:
    """Return the kind of the courtesy that closes a text, and where it begins."""
    start = _last_sentence_start(text)
    kind = _kind(text[start:])
    return (kind, start) if kind else None


def _first_sentence_end(text: str) -> int:
    border = _BORDER.search(text[: 2 * LONGEST_COURTESY])
    return border.end() if border else len(text)


def _last_sentence_start(text: str) -> int:
    offset = max(0, len(text) - 2 * LONGEST_COURTESY)
    start = offset
    for border in _BORDER.finditer(text, offset):
        if border.end() < len(text):
            start = border.end()
    return start if offset == 0 or start > offset else len(text)


@lru_cache(maxsize=4096)  # a bot's courtesies are few, and come again in each answer
def _kind(sentence: str) -> str:
    """Return the kind of courtesy that a sentence is, `announcement` or `courtesy`; empty if it is none."""
    if len(sentence) > LONGEST_COURTESY:
        return ""
    folded = _AROUND.sub("", _folded(sentence))
    if not folded:
        return "courtesy" if sentence.strip() and not _LETTER.search(sentence) else ""
    patterns = _patterns()
    if patterns["denial"].search(patterns["idiom"].sub("", folded)):
        return ""
    if patterns["announcement"].fullmatch(folded):
        return "announcement"
    # A figure is content: "Take it back within 14 days" only sounds like a farewell.
    if not _FIGURE.search(folded) and patterns["courtesy"].fullmatch(folded):
        return "courtesy"
    return ""


def _folded(text: str) -> str:
    """Return the text in lower case, character by character, so that places stay the same."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text
    return lowered.replace("’", "'").replace("，", ",").replace("：", ":")


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """Read the patterns of all languages, once: a heading `[kind]`, then a pattern a line."""
    lines: dict[str, list[str]] = {}
    kind = ""
    for line in (files(__package__) / "courtesies.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            kind = line[1:].partition("]")[0]
        elif line and not line.startswith("#"):
            lines.setdefault(kind, []).append(line.replace("…", _ANYTHING).replace("‥", _LITTLE))
    return {kind: re.compile("|".join(f"(?:{line})" for line in of_kind)) for kind, of_kind in lines.items()}


_ANYTHING = r"[^.!?。！？\n:]{0,120}?"
_LITTLE = r"[^.!?。！？\n:]{0,20}?"
"""What `…` and `‥` stand for in a pattern."""
_AROUND = re.compile(r"^[^\w{}]+|[^\w{}]+$")
"""Punctuation, marks and emoji around a sentence; the braces of a tool call stay."""
_LETTER = re.compile(r"\w")
_FIGURE = re.compile(r"\d")
_BORDER = re.compile(
    # Chinese and Japanese need no blank after a mark.
    r"(?:[.!?…]+[\"')\]*]*(?=\s|$)|[!?]+(?=[\u3040-\u9fff])|[。！？]+[」』）]*|\n)[\s\U0001F300-\U0001FAFF\u2600-\u27bf\ufe0f\u200d]*"
)
