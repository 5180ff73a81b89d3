"""Numbers in words from a hundred on, dozens, shares and quarters: three hundred, zweihundert, 삼백 명, half of it.

Only the search for a gold answer reads them: they are rewritten in the text of an answer or gold before it is
normalised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pytest_rageval.language.lazy_patterns import compiled_pattern
from pytest_rageval.language.names_within import has_any
from pytest_rageval.language.number_names import HAN_COUNTERS, KOREAN_COUNTERS, NUMBERS


def with_large_numbers(text: str, lowered: str) -> str:
    """Rewrite large numbers in words, shares and quarters of a text as figures; `lowered`: of the text."""
    # Looking for a name first is several times faster than a pattern.
    if has_any(lowered, _NAMES_OF_POWERS):
        for names in _LANGUAGES:
            if compiled_pattern(names.clue).search(lowered) is not None:
                text = compiled_pattern(names.number, re.IGNORECASE).sub(names.as_figure, text)
    if not text.isascii():
        text = compiled_pattern(_KOREAN_NUMBER).sub(_sino_figure, text)
        text = compiled_pattern(_HAN_NUMBER).sub(_sino_figure, text)
    if has_any(lowered, _NAMES_OF_SHARES):
        for name, share, plain in _SHARES:
            if name in lowered:
                text = compiled_pattern(share, re.IGNORECASE).sub(plain, text)
    if has_any(lowered, _NAMES_OF_QUARTERS):
        for number, quarter in enumerate(_QUARTERS, start=1):
            text = compiled_pattern(quarter, re.IGNORECASE).sub(f"Q{number}", text)
    if "century" in lowered:
        text = compiled_pattern(_CENTURY, re.IGNORECASE).sub(_ordinal, text)
    if "minus " in lowered:
        text = compiled_pattern(_MINUS, re.IGNORECASE).sub("-", text)
    return text


class _Names(NamedTuple):
    """The number words of a language.

    clue    what a text must have, before all its words are looked at
    number  number words in a row
    word    one of them
    """

    clue: str
    number: str
    word: str
    values: Mapping[str, int]

    def as_figure(self, match: re.Match[str]) -> str:
        """Return the number that words in a row name."""
        written = match[0]
        words = compiled_pattern(self.word).findall(written.lower())
        values = [int(word) if word.isdigit() else self.values[word] for word in words]
        if _are_coins(words, values) or max(values) < _LEAST:
            return written
        return str(_total(values))


def _are_coins(words: Sequence[str], values: Sequence[int]) -> bool:
    """Check for cents: the French word is a hundred only behind a number word below ten."""
    if words[-1] not in _COINS:
        return False
    return len(words) == 1 or words[0].isdigit() or values[0] >= _TEN


def _total(values: Iterable[int]) -> int:
    """Return the sum of number words in a row: a power of ten multiplies what stands before it."""
    thousands = 0
    rest = 0
    for value in values:
        if value == _THOUSAND:
            thousands = max(1, rest) * _THOUSAND
            rest = 0
        elif value == _HUNDRED:
            rest = max(1, rest) * _HUNDRED
        elif value == _DOZEN:
            rest = max(1, rest) * 12
        else:
            rest += value
    return thousands + rest


def _names(clue: str, joint: str, values: Mapping[str, int]) -> _Names:
    words = "|".join(sorted(values, key=len, reverse=True))
    are_written_together = "" in joint.split("|")
    edge = "" if are_written_together else r"\b"
    first = rf"(?<![\w.,-])(?:{words}|[0-9]{{1,3}}(?=[ -]))"
    following = rf"(?:(?:{joint})(?:{words})){{0,8}}(?!\w)"
    return _Names(clue=clue, number=first + following, word=rf"{edge}(?:{words}|[0-9]+){edge}", values=values)


def _ordinal(match: re.Match[str]) -> str:
    """Return the figure of a century that a word names: 19th."""
    number = _CENTURIES[match[1].lower()]
    return f"{number}th"


def _sino_figure(match: re.Match[str]) -> str:
    """Return the number that Han or Sino-Korean digits name: 二百五十, 삼백."""
    total = 0
    digit = 0
    for character in match[0]:
        value = _SINO[character]
        if value >= _TEN:
            total += max(1, digit) * value
            digit = 0
        else:
            digit = value
    return str(total + digit)


def _french_below_hundred() -> dict[str, int]:
    teens = ["dix", "onze", "douze", "treize", "quatorze", "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf"]
    ones = ["un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf"]
    numbers = {**{one: number for number, one in enumerate(ones, start=1)}, "une": 1}
    numbers.update({name: number for number, name in enumerate(teens, start=10)})
    tens = {"vingt": 20, "trente": 30, "quarante": 40, "cinquante": 50, "soixante": 60, "quatre-vingt": 80}
    for name, ten in tens.items():
        numbers[name] = ten
        numbers[f"{name} et un"] = ten + 1
        numbers.update({f"{name}-{one}": ten + number for number, one in enumerate(ones, start=1)})
    for ten, name in ((70, "soixante"), (90, "quatre-vingt")):
        numbers.update({f"{name}-{teen}": ten + number for number, teen in enumerate(teens)})
    return {**numbers, "quatre-vingts": 80, "soixante et onze": 71}


def _spanish_hundreds() -> dict[str, int]:
    stems = ["doscient", "trescient", "cuatrocient", "quinient", "seiscient", "setecient", "ochocient", "novecient"]
    numbers = {"cien": 100, "ciento": 100}
    for number, stem in enumerate(stems, start=2):
        numbers.update({f"{stem}os": 100 * number, f"{stem}as": 100 * number})
    return numbers


_TEN = 10
_HUNDRED = 100
_THOUSAND = 1_000
_DOZEN = 144
"""Stands for twelve, which multiplies what stands before it."""
_COINS = ("cent", "cents")
"""Hundreds in French behind a number below ten; fifty cents are coins."""
_LEAST = 70
"""Smaller numbers are read wherever they stand; from seventy on French reckons, and other languages from a hundred."""
_ENGLISH = {
    **{name: number for name, number in NUMBERS["en"].items() if name.isalpha()},
    "a": 1,
    "one": 1,
    "hundred": _HUNDRED,
    "thousand": _THOUSAND,
    "dozen": _DOZEN,
}
_GERMAN = {
    "ein": 1,
    "eine": 1,
    "elf": 11,
    **NUMBERS["de"],
    "dreißig": 30,
    "hundert": _HUNDRED,
    "tausend": _THOUSAND,
    "dutzend": _DOZEN,
}
_FRENCH = {**_french_below_hundred(), "cent": _HUNDRED, "cents": _HUNDRED, "mille": _THOUSAND}
_SPANISH = {
    **{name: number for name, number in NUMBERS["es"].items() if name.isalpha()},
    "un": 1,
    "uno": 1,
    "una": 1,
    "dos": 2,
    "once": 11,
    "mil": _THOUSAND,
    **_spanish_hundreds(),
}
_LANGUAGES = (
    _names(r"hundred|thousand|dozen", " and |[ -]", _ENGLISH),
    _names("hundert|tausend|dutzend", "und| |", _GERMAN),
    _names(r" cents?\b|\bmille\b|quatre-vingt|soixante", "[ -]", _FRENCH),
    _names(r"cient[oa]s?\b|quinient|\bcien\b|\bmil\b", " y | ", _SPANISH),
)
_SINO = {
    **{name: number for number, name in enumerate("一二三四五六七八九", start=1)},
    **{name: number for number, name in enumerate("일이삼사오육칠팔구", start=1)},
    "两": 2,
    "兩": 2,
    "十": 10,
    "百": 100,
    "千": 1_000,
    "십": 10,
    "백": 100,
    "천": 1_000,
}
_KOREAN_NUMBER = (
    r"(?<![가-힣0-9])(?=[일이삼사오육칠팔구십]*[백천])[일이삼사오육칠팔구십백천]{2,9}"
    rf"(?= ?(?:{'|'.join((*KOREAN_COUNTERS, '원', '유로', '달러', '일', '석', '점'))}))"
)
_HAN_NUMBER = (
    r"(?<![一-鿿0-9])(?=[一二三四五六七八九两兩十]*[百千])[一二三四五六七八九两兩十百千]{2,9}"
    rf"(?={'|'.join(HAN_COUNTERS)}|$)"
)
_NAMES_OF_POWERS = (
    *(
        "hund",
        "thous",
        "dozen",
        "tausend",
        "dutzend",
        " cent",
        "mille",
        "vingt",
        "soixante",
        "cien",
        "mil ",
        "iento",
        "ienta",
    ),
)
_OF = r"(?= (?:of|the|all|its|our|their)\b|[.!]?\s*$)"
_NOT_A_PART = r"(?<!first )(?<!second )(?<!other )(?<!a )(?<!better )"
_SHARES = (
    ("half", rf"{_NOT_A_PART}\b(?:one |exactly )?half{_OF}(?! an?\b)", "50 %"),
    ("quarter", r"\b(?:a|one) quarter(?= of (?!an hour|a century))", "25 %"),
    ("quarters", r"\bthree[ -]quarters(?= of (?!an hour))", "75 %"),
    ("third", r"\b(?:a|one) third(?= of\b|[.!]?\s*$)", "33 %"),
    ("hälfte", r"\bdie Hälfte\b", "50 %"),
    ("viertel", r"\bein Viertel\b", "25 %"),
    ("viertel", r"\bdrei Viertel\b", "75 %"),
    ("drittel", r"\bein Drittel\b", "33 %"),
    ("moitié", r"\bla moitié\b", "50 %"),
    ("quart", r"\bun quart\b(?! d)", "25 %"),
    ("quarts", r"\btrois quarts\b(?! d['’]heure)", "75 %"),
    ("tiers", r"\bun tiers\b", "33 %"),
    ("mitad", r"\bla mitad\b", "50 %"),
    ("tercio", r"\bun tercio\b", "33 %"),
    ("cuartos", r"\btres cuartos\b(?! de hora)", "75 %"),
    ("절반", r"(?<![가-힣])절반", "50 %"),
    ("半分", "半分", "50 %"),
    ("一半", "一半", "50 %"),
    ("分", "[4四] ?分[の之] ?[1一]", "25 %"),
    ("分", "[3三] ?分[の之] ?[1一]", "33 %"),
    ("分", "[2二] ?分[の之] ?[1一]", "50 %"),
    ("분의", "[4사] ?분의 ?[1일]", "25 %"),
    ("분의", "[3삼] ?분의 ?[1일]", "33 %"),
    ("분의", "[2이] ?분의 ?[1일]", "50 %"),
)
"""What a text must have, before it is searched; the pattern of a share; and the share in figures."""
_NAMES_OF_SHARES = (
    *(
        "half",
        "quart",
        "third",
        "viertel",
        "drittel",
        "tiers",
        "mitad",
        "tercio",
        "cuartos",
        "hälfte",
        "moitié",
        "절반",
    ),
    *("분의", "半", "分"),
)
_NAMES_OF_QUARTERS = ("quarter", "quartal", "trimest", "분기", "四半期", "季度")
_QUARTERS = tuple(
    (
        rf"\b(?:the )?(?:{english}) quarter\b(?! of an| hour| final)|\b(?:{german})(?:e[snrm]?)?\.? Quartal\w*"
        rf"|\b(?:{french}) trimestre\b|\b(?:{spanish}) trimestre\b"
        rf"|(?<![0-9]){number} ?분기|第 ?[{number}{'一二三四'[number - 1]}] ?(?:四半期|季度)"
    )
    for number, english, german, french, spanish in (
        (1, "first|1st", "erst|1", "premier|1er", "primer"),
        (2, "second|2nd", "zweit|2", "deuxième|2e", "segundo"),
        (3, "third|3rd", "dritt|3", "troisième|3e", "tercer"),
        (4, "fourth|last|4th", "viert|4", "quatrième|4e", "cuarto"),
    )
)
_NAMES_OF_CENTURIES = (
    *("thirteenth", "fourteenth", "fifteenth", "sixteenth"),
    *("seventeenth", "eighteenth", "nineteenth", "twentieth"),
)
_CENTURIES = {name: number for number, name in enumerate(_NAMES_OF_CENTURIES, start=13)}
_CENTURY = rf"\b({'|'.join(_CENTURIES)})(?=[ -]century)"
_MINUS = r"\bminus (?=[0-9])"
