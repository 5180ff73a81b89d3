"""Which number does a spelling stand for? One form for digits, number words and Korean numerals."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_rageval.judges.lexical.wordlist import words


def plain_figure(figure: str) -> str:
    """A figure without needless zeros: 3.50 is 3.5, 007 is 7, -0.0 is 0; what has several readings stays: 1.000."""
    if _GROUPED.fullmatch(figure):
        return figure
    sign = "-" if figure.startswith("-") else ""
    whole, _, part = figure.lstrip("-").partition(".")
    number = ".".join(filter(None, (whole.lstrip("0") or "0", part.rstrip("0"))))
    return number if number == "0" else sign + number


def readings(figure: str) -> tuple[str, ...]:
    """The numbers that a figure may mean: 1.000 is 1 or, in German, 1000."""
    if not _GROUPED.fullmatch(figure):
        return (plain_figure(figure),)
    whole, _, part = figure.rpartition(".")
    return figure.replace(".", ""), plain_figure(f"{whole}.{part.rstrip('0')}" if part.strip("0") else whole)


def is_figure(word: str) -> bool:
    """Is the word written in digits? The first one (after a sign) tells."""
    return word[-1:].isdigit() and word.lstrip("-")[:1].isdigit()


def with_korean_numbers(said: Sequence[str]) -> list[str]:
    """Korean numerals as figures: 세 대 is 3 대, 3 만 is 30000; 세 alone may be a tax and stays."""
    found: list[str] = []
    for at, word in enumerate(said):
        following = said[at + 1] if at + 1 < len(said) else ""
        if word in _KOREAN_DIGITS and following.startswith(_KOREAN_COUNTERS):
            found.append(_KOREAN_DIGITS[word])
        elif word in _KOREAN_SCALES and found and _SHORT_WHOLE.fullmatch(found[-1]):
            found[-1] += _KOREAN_SCALES[word]
        else:
            found.append(word)
    return found


_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
DIGITS = {word: str(value) for value, word in enumerate(_NUMBER_WORDS.split())} | {
    "twenty": "20",
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
}
"""English number words by their figure."""

_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:\.[0-9]{3})+")
_SHORT_WHOLE = re.compile(r"[1-9][0-9]{0,3}")
_KOREAN_DIGITS = {
    **dict.fromkeys(("한", "하나"), "1"), **dict.fromkeys(("두", "둘"), "2"), **dict.fromkeys(("세", "셋"), "3"),
    **dict.fromkeys(("네", "넷"), "4"), "다섯": "5", "여섯": "6", "일곱": "7", "여덟": "8", "아홉": "9", "열": "10",
}  # fmt: skip
_KOREAN_COUNTERS = tuple(words("대 개 명 번 마리 시간 주 달 권 곳 가지 살 장 층 차례 분 배"))
_KOREAN_SCALES = {"백": "00", "천": "000", "만": "0000", "억": "00000000"}
