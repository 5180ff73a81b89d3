"""Spellings that only the search for a gold answer reads: halves, money with a point before thousands, versions.

They are rewritten in the text of an answer or gold before it is normalised: "an hour and a half" becomes "1.5 hour",
"1.500 Euro" becomes "1500 Euro", "v4.2.1" becomes "4.2.1", and "plutôt que" becomes one word that denies.
"""

from __future__ import annotations

import re

from pytest_rageval.language.large_numbers import with_large_numbers
from pytest_rageval.language.lazy_patterns import compiled_pattern
from pytest_rageval.language.markup import without_markup
from pytest_rageval.language.names_within import has_any
from pytest_rageval.language.plain_counts import with_plain_counts

_SMALL_NUMBERS = {
    name: str(number)
    for number, names in enumerate(
        (
            "a an one ein eine un une uno una 한 一",
            "two zwei deux dos 두 两 兩 二",
            "three drei trois tres 세 三",
            "four vier quatre cuatro 네 四",
            "five fünf cinq cinco 다섯 五",
            "six sechs seis 여섯 六",
        ),
        start=1,
    )
    for name in names.split()
}


def with_plain_spellings(text: str) -> str:
    """Rewrite spellings of quantities and phrases of denial to those that `normalise` and the tables know."""
    text = without_markup(text)
    lowered = text.lower()
    if has_any(lowered, _NAMES_OF_PARTS):
        for halves in _HALVES:
            text = compiled_pattern(halves, re.IGNORECASE).sub(_with_half, text)
        for pattern, plain in _PARTS_OF_A_UNIT:
            text = compiled_pattern(pattern, re.IGNORECASE).sub(plain, text)
    if _THREE_DIGITS.search(text) is not None:
        text = compiled_pattern(_MONEY_BEHIND, re.IGNORECASE).sub(_without_point, text)
        text = compiled_pattern(_MONEY_BEFORE, re.IGNORECASE).sub(_without_point, text)
    # A pattern without regard to case reads a few letters of other scripts as ASCII ones.
    if not text.isascii() or _ARTICLE_AND_UNIT.search(lowered) is not None:
        text = compiled_pattern(_ARTICLE_OF_ONE, re.IGNORECASE).sub(r"\1 1 ", text)
    if "v" in lowered and _DIGIT.search(text) is not None:
        text = compiled_pattern(_VERSION_LETTER).sub("", text)
    if has_any(lowered, _NAMES_OF_INSTEAD):
        text = compiled_pattern(_INSTEAD, re.IGNORECASE).sub(" statt ", text)
    return with_large_numbers(with_plain_counts(text, lowered), lowered)


def _with_half(match: re.Match[str]) -> str:
    number = match["number"].casefold()
    return f"{_SMALL_NUMBERS.get(number, number)}.5 {match['unit']}"


def _without_point(match: re.Match[str]) -> str:
    return match[0].replace(".", "", 1)


_NUMBER = "(?P<number>[0-9]{1,3}|" + "|".join(sorted(_SMALL_NUMBERS, key=len, reverse=True)) + ")"
# Looking for a name first is five times faster than a pattern without regard to case.
_NAMES_OF_PARTS = ("half", "halb", "demi", "media", "medio", "viertel", "quart", "cuarto", "반", "半")
_NAMES_OF_INSTEAD = ("plutôt", "au lieu", "la place", "en lugar", "en vez")
_ENGLISH_UNIT = (
    "hours?|days?|weeks?|months?|years?|minutes?|miles?|kilomet(?:re|er)s?|kilograms?|kilos?|lit(?:re|er)s?|tons?"
)
_HALVES = (
    rf"\b{_NUMBER} (?P<unit>{_ENGLISH_UNIT}) and a half\b",
    rf"\b{_NUMBER} and a half[ -](?P<unit>{_ENGLISH_UNIT})\b",
    rf"\b{_NUMBER} and a half (?P<unit>thousand|million|billion)\b",
    rf"\b{_NUMBER}(?:und)?einhalb[ -]?(?P<unit>[^\W\d_]+)",
    rf"\b{_NUMBER} (?P<unit>heures?|ans?|mois|jours?|litres?) et demie?\b",
    rf"\b{_NUMBER} (?P<unit>horas?|años?|mes(?:es)?|días?|litros?|kilos?) y medi[ao]\b",
    rf"(?<![가-힣]){_NUMBER} ?(?P<unit>시간|년|개월) ?반(?=[ 이.,입을은정동]|$)",
    rf"{_NUMBER}(?P<unit>時間|年|か月)半",
    rf"{_NUMBER}(?P<unit>年|天)半",
    rf"{_NUMBER}[个個]半(?P<unit>小时|小時|月)",
)
_PARTS_OF_A_UNIT = (
    (rf"\b(?:one )?half(?: an? |-| of an? )({_ENGLISH_UNIT})\b", r"0.5 \1"),
    (r"\bthree[ -]quarters of an hour\b", "45 minutes"),
    (r"\b(?:a )?quarter(?: of an|-) ?hour\b", "15 minutes"),
    (r"\b(?:anderthalb|eineinhalb)(?=[ -])", "1.5"),
    (r"\b(?:eine[rn]? )?dreiviertelstunde\b", "45 Minuten"),
    (r"\b(?:eine[rn]? )?viertelstunde\b", "15 Minuten"),
    (r"\b(?:eine[snrm]? )?halbe[snrm]? (Stunde|Tag|Tages|Jahr|Jahres|Kilo|Liter|Meter)\b", r"0.5 \1"),
    (r"\b(?:une )?demi[e]?[ -]heure\b", "30 minutes"),
    (r"\b(?:un )?demi[ -](litre|kilo)\b", r"0.5 \1"),
    (r"\b(?:un )?quart d['’]heure\b", "15 minutes"),
    (r"\bmedi[ao] (hora|litro|kilo|año|día)\b", r"0.5 \1"),
    (r"\b(?:un )?cuarto de hora\b", "15 minutos"),
    (r"(?<![가-힣])반 ?시간", "30분"),
    (r"(?<![0-9年时時])半[个個]?(小时|小時)", r"0.5 \1"),
)
_ARTICLES = "(?:an?|ein(?:e[nrm]?)?|une?|una)"
_UNITS_OF_TIME = (
    "(?:hour|day|week|month|year|minute|Stunde|Tag|Woche|Monat|Jahr|Minute|heure|jour|semaine|mois|an|minute|hora|día"
    "|semana|mes|año|minuto)"
)
_DIGIT = re.compile("[0-9]")
_ARTICLE_OF_ONE = (
    r"\b(for|within|in|takes|lasts|about|is|least|most|or|oder|ou|o|nach|dauert|dure|dura) "
    rf"{_ARTICLES} (?={_UNITS_OF_TIME}\b)"
)
_ARTICLE_AND_UNIT = re.compile(rf" {_ARTICLES} {_UNITS_OF_TIME.lower()}\b")
"""Behind other words an article with a unit is a rate: 9 euros an hour."""
_THREE_DIGITS = re.compile(r"[1-9][0-9]{0,2}\.[0-9]{3}(?![0-9])")
_CURRENCY = r"(?:[€$£]|(?:EUR|USD|GBP|CHF|Euros?|Franken|Dollars?|Dólares|Pesos|Pfund|francs?)\b)"
_PER_LITRE = r"(?! ?(?:/ ?l\b|pro Liter|per lit|per gallon|a gallon|le litre|par litre|por litro|el litro))"
"""Fuel is sold at prices with three decimals."""
_MONEY_BEHIND = rf"(?<![0-9.,])[1-9][0-9]{{0,2}}\.[0-9]{{3}} ?{_CURRENCY}{_PER_LITRE}"
_MONEY_BEFORE = rf"(?<!\w){_CURRENCY} ?[1-9][0-9]{{0,2}}\.[0-9]{{3}}(?![0-9])(?![.,][0-9]){_PER_LITRE}"
_VERSION_LETTER = r"\b[vV]\.? ?(?=[0-9]+(?:\.[0-9]+)+)|(?<=[Vv]ersion )v(?=[0-9])"
_INSTEAD = (
    r"\b(?:plutôt qu(?:e\b|['’])|au lieu (?:de\b|du\b|des\b|d['’])|à la place (?:de\b|du\b|des\b|d['’])"
    r"|en (?:lugar|vez) del?\b)"
)
