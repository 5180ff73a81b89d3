"""Courtesies around an answer: greetings, thanks, offers of help, announcements, sign-offs.

They say nothing about whether the answer declines, and they stand around answers and refusals alike. A sentence counts
as a courtesy only as a whole and only if it denies nothing: "I'd be happy to help, but the notes do not say." stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from pytest_rageval.abstention.pattern_needs import READ, PatternNeeds, needs_of

MOST_TAKEN = 8
"""Courtesies that are taken off at either end."""
LONGEST_COURTESY = 240
"""Characters of a sentence that may be a courtesy."""


class PlainAnswer(NamedTuple):
    """An answer without its courtesies.

    is_announcement  nothing is left, and it said what the system will do
    is_offer         nothing is left, and it asked what the system can do: "Hi! What would you like to know?"
    """

    text: str
    is_announcement: bool = False
    is_offer: bool = False


@lru_cache(maxsize=64)  # the features, several metrics and the judge ask for the same answer in turn
def without_courtesies(answer: str) -> PlainAnswer:
    """Take courtesies off both ends of an answer; one of nothing but courtesies stays as it is.

    >>> without_courtesies("Great question! The plan costs 59 euros. I hope this helps!").text
    'The plan costs 59 euros.'
    >>> without_courtesies("One moment please, let me look that up.").is_announcement
    True
    """
    rest, openers = _without(_opener, answer.strip())
    rest, closers = _without(_closer, rest)
    if _LETTER.search(rest):
        return PlainAnswer(rest)
    kinds = {*openers, *closers}
    return PlainAnswer(answer, is_announcement="announcement" in kinds, is_offer="offer" in kinds)


def is_greeting(question: str) -> bool:
    """Return True if a question only greets or thanks: it asks nothing that an answer could decline.

    >>> is_greeting("Hello there!")
    True
    >>> is_greeting("Hello, what does it cost?")
    False
    """
    return len(question) <= LONGEST_COURTESY and _GREETING.fullmatch(question) is not None


class _Courtesy(NamedTuple):
    """A courtesy at one end of a text, and the text without it."""

    kind: str
    rest: str


def _without(courtesy_of: Callable[[str], _Courtesy | None], text: str) -> tuple[str, list[str]]:
    """Return the text without the courtesies at one end, and their kinds."""
    kinds: list[str] = []
    for _ in range(MOST_TAKEN):
        courtesy = courtesy_of(text)
        if courtesy is None:
            break
        kinds.append(courtesy.kind)
        text = courtesy.rest
    return text, kinds


def _opener(text: str) -> _Courtesy | None:
    """Return the courtesy that opens a text: its first sentence, or a lead-in to it."""
    end = _first_sentence_end(text)
    kind = _kind(text[:end])
    if kind:
        return _Courtesy(kind, text[end:].lstrip())
    lead_in = _pattern("lead-in").match(_folded(text[:LONGEST_COURTESY]))
    if lead_in is None or _pattern("denial").search(lead_in[0]):
        return None
    says_more = _LETTER.search(text[lead_in.end() : end]) is not None
    # "Unfortunately," alone would leave nothing to judge.
    if not says_more:
        return None
    return _Courtesy("lead-in", text[lead_in.end() :].lstrip())


def _closer(text: str) -> _Courtesy | None:
    """Return the courtesy that closes a text: its last sentence."""
    start = _last_sentence_start(text)
    kind = _kind(text[start:])
    if not kind:
        return None
    return _Courtesy(kind, text[:start].rstrip())


def _first_sentence_end(text: str) -> int:
    border = _BORDER.search(text[: 2 * LONGEST_COURTESY])
    return border.end() if border else len(text)


def _last_sentence_start(text: str) -> int:
    offset = max(0, len(text) - 2 * LONGEST_COURTESY)
    start = offset
    for border in _BORDER.finditer(text, offset):
        if border.end() < len(text):
            start = border.end()
    if offset > 0 and start == offset:
        return len(text)  # the last sentence begins before what was looked at: too long for a courtesy
    return start


@lru_cache(maxsize=4096)  # a bot's courtesies are few, and come again in each answer
def _kind(sentence: str) -> str:
    """Return the kind of courtesy that a sentence is: `announcement`, `offer` or `courtesy`; empty if it is none."""
    if len(sentence) > LONGEST_COURTESY:
        return ""
    folded = _AROUND.sub("", _folded(sentence))
    if not folded:
        return "courtesy" if sentence.strip() and not _LETTER.search(sentence) else ""
    kind = ""
    if _is_sentence_of("announcement", folded):
        kind = "announcement"
    elif _is_sentence_of("offer", folded):
        kind = "offer"
    # A figure is content: "Take it back within 14 days" only sounds like a farewell.
    elif not _FIGURE.search(folded) and _is_sentence_of("courtesy", folded):
        kind = "courtesy"
    # "No problem" denies nothing, so idioms are taken out first.
    if kind and _pattern("denial").search(_pattern("idiom").sub("", folded)):
        return ""
    return kind


def _folded(text: str) -> str:
    """Return the text in lower case, character by character, so that places stay the same."""
    lowered = text.lower()
    if len(lowered) != len(text):  # "İ" becomes two characters
        lowered = text
    return lowered.replace("’", "'").replace("，", ",").replace("：", ":")


def _is_sentence_of(kind: str, sentence: str) -> bool:
    """Return True if a pattern of the kind matches the whole sentence.

    Of some hundred patterns only those are tried that may match: to try all took 62 µs of each sentence that is no
    courtesy.
    """
    patterns = _patterns_for(kind, sentence[:READ], is_ascii=sentence.isascii())
    return any(pattern.fullmatch(sentence) for pattern in patterns)


@lru_cache(maxsize=4096)
def _patterns_for(kind: str, beginning: str, *, is_ascii: bool) -> list[re.Pattern[str]]:
    # Each is compiled apart: one pattern for each beginning would have most of them compiled many times.
    needed = _needs(kind)
    return [_compiled(pattern) for pattern, needs in needed if needs.are_met(beginning, is_ascii=is_ascii)]


@cache
def _needs(kind: str) -> list[tuple[str, PatternNeeds]]:
    return [(pattern, needs_of(pattern)) for pattern in patterns_by_kind()[kind]]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _any_of(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


@cache
def _pattern(kind: str) -> re.Pattern[str]:
    return _any_of(patterns_by_kind()[kind])


@cache
def patterns_by_kind() -> dict[str, list[str]]:
    """Read the patterns of all languages, once: a heading `[kind]`, then a pattern a line."""
    patterns: dict[str, list[str]] = {}
    kind = ""
    content = (files(__package__) / "courtesies.txt").read_text(encoding="utf-8")
    for line in content.splitlines():
        if line.startswith("["):
            kind = line[1:].partition("]")[0]
        elif line and not line.startswith("#"):
            pattern = line.replace("…", _ANYTHING).replace("‥", _LITTLE)
            patterns.setdefault(kind, []).append(pattern)
    return patterns


_ANYTHING = r"[^.!?。！？\n:]{0,120}?"
_LITTLE = r"[^.!?。！？\n:]{0,20}?"
"""What `…` and `‥` stand for in a pattern."""
_AROUND = re.compile(r"^[^\w{}]+|[^\w{}]+$")
"""Punctuation, marks and emoji around a sentence; the braces of a tool call stay."""
_GREETING = re.compile(
    r"\W*(?:hi|hello|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day)|thanks|thank you|thx|bye|goodbye"
    r"|hallo|moin|guten (?:tag|morgen|abend)|danke(?: schön)?|vielen dank|tschüss|bonjour|bonsoir|salut|merci|au revoir"
    r"|hola|buenos días|buenas (?:tardes|noches)|gracias|adiós|olá|bom dia|boa (?:tarde|noite)|obrigad[oa]"
    r"|안녕(?:하세요|하십니까)?|감사합니다|고마워요?|고맙습니다|こんにちは|こんばんは|おはよう(?:ございます)?|ありがとう(?:ございます)?|你好|您好|谢谢)"
    r"(?:\W+(?:there|all|everyone|you|so much|very much|a lot|again|beaucoup|sehr|muchas|bot|assistant))*\W*",
    re.IGNORECASE,
)
_LETTER = re.compile(r"\w")
_FIGURE = re.compile(r"\d")
_BORDER = re.compile(
    # Chinese and Japanese need no blank after a mark.
    r"(?:[.!?…]+[\"')\]*]*(?=\s|$)|[!?]+(?=[\u3040-\u9fff])|[。！？]+[」』）]*|\n)[\s\U0001F300-\U0001FAFF\u2600-\u27bf\ufe0f\u200d]*"
)
