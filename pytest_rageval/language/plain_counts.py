"""Spellings of counts that only the search for a gold answer reads: twice, zweimal, 열다섯 권, höchstens jedoch 10.

They are rewritten in the text of an answer or gold before it is normalised: "twice" becomes "2 times", "열다섯 권"
becomes "15 권", and "höchstens jedoch 10" becomes "höchstens 10".
"""

from __future__ import annotations

import re

from pytest_rageval.language.lazy_patterns import compiled_pattern
from pytest_rageval.language.names_within import has_any
from pytest_rageval.language.number_names import KOREAN_COUNTERS, NUMBERS
from pytest_rageval.language.quantity_names import COMPARISONS_BEFORE, SIGNS


def with_plain_counts(text: str, lowered: str) -> str:
    """Rewrite counts of times, Korean numbers before a counter, and limits with a particle; `lowered`: of the text."""
    if has_any(lowered, _NAMES_OF_MULTIPLES):
        text = compiled_pattern(_ENGLISH_MULTIPLE, re.IGNORECASE).sub(_times, text)
        text = compiled_pattern(_GERMAN_MULTIPLE, re.IGNORECASE).sub(_german_times, text)
    if has_any(lowered, _PARTICLES):
        text = compiled_pattern(_LIMIT_WITH_PARTICLE, re.IGNORECASE).sub(r"\1 ", text)
    if not text.isascii() and has_any(text, _KOREAN_TENS):
        text = compiled_pattern(_KOREAN_COUNT).sub(_korean_count, text)
    return text


def _times(match: re.Match[str]) -> str:
    return _ENGLISH_MULTIPLES[match[1].lower()]


def _german_times(match: re.Match[str]) -> str:
    return f"{_GERMAN_ONES[match[1].lower()]} mal"


def _korean_count(match: re.Match[str]) -> str:
    tens = _KOREAN_TENS[match["tens"]]
    ones = _KOREAN_ONES[match["ones"]] if match["ones"] else 0
    return f"{tens + ones} "


_NAMES_OF_MULTIPLES = ("once", "twice", "thrice", "mal")
_ENGLISH_MULTIPLES = {"once": "1 time", "twice": "2 times", "thrice": "3 times"}
# "Once" is a time only where nothing follows that it could introduce: "once you have paid" is a condition.
_ENGLISH_MULTIPLE = r"\b(twice|thrice|once(?=\s+(?:a|an|per|every|only|more)\b|\s*(?:[.,;!?)]|$)))\b"
_GERMAN_ONES = {"ein": 1, **{name: number for name, number in NUMBERS["de"].items() if number <= 20}}
_GERMAN_MULTIPLE = rf"\b({'|'.join(_GERMAN_ONES)})[ -]?mal\b"
_PARTICLES = ("jedoch", "aber", "nur", "only", "just", "toutefois", "cependant", "pero", "solo", "sólo")
_LIMITS = sorted(
    {name for language in ("en", "de", "fr", "es") for name in COMPARISONS_BEFORE[language]}, key=len, reverse=True
)
_LIMIT_WITH_PARTICLE = rf"\b({'|'.join(map(re.escape, _LIMITS))}),? (?:{'|'.join(_PARTICLES)}),? (?=[{SIGNS}]?[0-9])"
_KOREAN_TENS = {
    "열": 10,
    "스물": 20,
    "스무": 20,
    "서른": 30,
    "마흔": 40,
    "쉰": 50,
    "예순": 60,
    "일흔": 70,
    "여든": 80,
    "아흔": 90,
}
_KOREAN_ONES = {"한": 1, "두": 2, "세": 3, "네": 4, "다섯": 5, "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9}
_KOREAN_COUNT = (
    rf"(?<![가-힣])(?P<tens>{'|'.join(_KOREAN_TENS)})(?P<ones>{'|'.join(_KOREAN_ONES)})? ?"
    rf"(?=(?:{'|'.join(sorted(KOREAN_COUNTERS, key=len, reverse=True))}))"
)
