"""Number words, dates, clock times and comparisons of a folded text, written as figures.

"Two years" becomes "2 years", "5 March 2024" and "2024-03-05" become "mon3 day5 2024", "3 pm" becomes "15:00" and
"up to 5" becomes "≤5". The names are data: see `pytest_rageval.language.quantity_names`. A date of figures alone is
read if only one reading is possible: 25/12/2024, but not 5/3/2024.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from pytest_rageval.language.number_names import (
    COUNTING_NUMBERS,
    HAN_COUNTERS,
    HAN_NUMBERS,
    KOREAN_COUNTERS,
    KOREAN_NUMBERS,
    MONTHS,
    NUMBERS,
    ORDINALS,
)
from pytest_rageval.language.quantity_names import (
    COMPARISONS,
    COMPARISONS_BEFORE,
    COMPARISONS_BEHIND,
    CURRENCIES,
    DAYTIMES,
    SIGNS,
    UNIT_PHRASES,
    UNITS,
)


def _words(written: str) -> frozenset[str]:
    return frozenset(written.split())


def with_figures(text: str, *, compares: bool = True) -> str:
    """Write the named numbers, dates, times and comparisons of a text (in lower case and NFKC) as figures.

    Without `compares`, the words of a comparison stay: "more than 5".
    """
    words = frozenset(_WORD.findall(text))
    if not _NUMBER_WORDS.isdisjoint(words):
        text = _number_of(words & _NUMBER_WORDS).sub(lambda match: _NUMBER_FORMS[match[0]], text)
    if not _COUNTING_FORMS.keys().isdisjoint(words):
        text = _COUNTING.sub(_counted, text)
    is_east_asian = not text.isascii() and _EAST_ASIAN.search(text) is not None
    if is_east_asian:
        text = _with_cjk_numbers(text)
    if _DIGIT.search(text) is None:
        return text
    text = _with_dates(text, words)
    text = _with_clock_times(text, words)
    if is_east_asian:
        text = _with_east_asian_times(text)
    if not _UNIT_WORDS.isdisjoint(words):
        text = _UNIT_PHRASE.sub(lambda match: UNIT_PHRASES[match[0]], text)
    if not compares or (not is_east_asian and _COMPARING_WORDS.isdisjoint(words)):
        return text
    text = _COMPARED_BEFORE.sub(lambda match: f" {_BEFORE[match[1]]}", text)
    return _COMPARED_BEHIND.sub(lambda match: f" {_BEHIND[match[2]]}{match[1]} ", text)


def may_hold_number_words(text: str) -> bool:
    """Check an ASCII text in lower case for words that `with_figures` may write as figures."""
    return not _NUMERIC_WORDS.isdisjoint(_WORD.findall(text))


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=512)
def _number_of(words: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern of the numbers that these words name: one of all five hundred names is ten times slower."""
    names = [name for name in _NUMBER_FORMS if words.issuperset(_WORD.findall(name))]
    return re.compile(rf"(?<!\w)(?:{alternatives(names) or '(?!)'})(?!\w)")


def _counted(match: re.Match[str]) -> str:
    """Read a word that has another meaning too as a number, if a unit or currency follows."""
    number, between, following = match.groups()
    if following not in unit_forms() and following.rstrip("s") not in _CURRENCY_NAMES:
        return match[0]
    return f"{_COUNTING_FORMS[number]}{between}{following}"


def _with_cjk_numbers(text: str) -> str:
    if _HAN_DIGIT.search(text) is not None:
        text = _han_number().sub(lambda match: str(HAN_NUMBERS[match[0]]), text)
    if _HANGUL_DIGIT.search(text) is not None:
        text = _korean_number().sub(lambda match: f"{KOREAN_NUMBERS[match[1]]} ", text)
    return text


@cache
def unit_forms() -> Mapping[str, str]:
    """Return the one form of each name of a unit."""
    forms: dict[str, str] = {}
    for units in UNITS.values():
        for unit, names in units.items():
            forms[unit] = unit
            forms.update(dict.fromkeys(names.split(), unit))
    return forms


@cache
def _han_number() -> re.Pattern[str]:
    digits = "".join(name for name in HAN_NUMBERS if len(name) == 1)
    return re.compile(
        rf"(?<![{digits}百千万億亿第星期周週])(?:{alternatives(HAN_NUMBERS)})(?=(?:{alternatives(HAN_COUNTERS)}))"
    )


@cache
def _korean_number() -> re.Pattern[str]:
    numbers = alternatives(KOREAN_NUMBERS)
    counters = alternatives(KOREAN_COUNTERS)
    return re.compile(
        rf"(?<![가-힣])({numbers}) ?"
        rf"(?=(?:{counters})(?:[은는이가을를의에로도만]|에서|까지|부터|입니다|째)?(?![가-힣]))"
    )


# ── dates and times ───────────────────────────────────────────────────────────────────────────────────────────


def _with_dates(text: str, words: frozenset[str]) -> str:
    if "-" in text or "/" in text or "." in text:
        text = _YEAR_FIRST.sub(lambda match: _date(match["year"], match["month"], match["day"]), text)
        text = _DAY_FIRST.sub(lambda match: _date(match["year"], match["month"], match["day"]), text)
        text = _BY_SLASHES.sub(_by_slashes, text)
    if not _MONTH_NUMBERS.keys().isdisjoint(words):
        for pattern in _named_dates():
            text = pattern.sub(_named_date, text)
    return text


def _with_east_asian_times(text: str) -> str:
    text = _CJK_DATE.sub(lambda match: _date(match["year"], match["month"], match["day"]), text)
    text = _CJK_MONTH.sub(lambda match: _date(None, match["month"], match["day"]), text)
    text = _CJK_CLOCK.sub(_clock_time, text)
    return _KOREAN_CLOCK.sub(_clock_time, text)


def _date(year: str | None, month: str | None, day: str | None) -> str:
    """Return a date in its one form: parts that a shorter form of the date has too."""
    parts = [f"mon{int(month)}"] if month else []
    if day:
        parts.append(f"day{int(day)}")
    if year:
        parts.append(year)
    return f" {' '.join(parts)} "


def _named_date(match: re.Match[str]) -> str:
    named = match.groupdict()
    return _date(named["year"], str(_MONTH_NUMBERS[named["month"]]), named.get("day"))


def _by_slashes(match: re.Match[str]) -> str:
    first = int(match["first"])
    second = int(match["second"])
    if first > _MONTHS_A_YEAR >= second > 0:
        return _date(match["year"], str(second), str(first))
    if second > _MONTHS_A_YEAR >= first > 0:
        return _date(match["year"], str(first), str(second))
    return match[0]


def _with_clock_times(text: str, words: frozenset[str]) -> str:
    if not _CLOCK_WORDS.isdisjoint(words):
        text = _TWELVE_HOURS.sub(_clock_time, text)
        text = _CLOCK.sub(_clock_time, text)
        text = _FRENCH_CLOCK.sub(_clock_time, text)
        text = _FRENCH_HOUR.sub(_clock_time, text)
        text = _SPANISH_CLOCK.sub(_clock_time, text)
    return text


def _clock_time(match: re.Match[str]) -> str:
    """Return a time of the day in 24 hours; a text that names none stays."""
    named = match.groupdict()
    hour = int(named["hour"] or named["plain_hour"])
    half = named.get("half")
    half = DAYTIMES.get(half or "", half)
    if named.get("evening"):
        half = "am" if named["evening"].endswith(("mañana", "morgens")) else "pm"
    if half in ("a", "am") and hour == _NOON:
        hour = 0
    if half in ("p", "pm") and hour < _NOON:
        hour += _NOON
    minute = named.get("minute") or ("30" if named.get("thirty") else "00")
    return f" {hour}:{minute:0>2} "


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────


def alternatives(names: Iterable[str]) -> str:
    """Return a pattern of the names, the longest first."""
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


def _merged(tables: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for table in tables.values():
        merged.update(table)
    return merged


_DIGIT = re.compile("[0-9]")
_EAST_ASIAN = re.compile("[\u3005-\u9fff가-힣]")
_WORD = re.compile("[a-zß-ÿ]+")
_NOON = 12
_MONTHS_A_YEAR = 12

_NUMBER_FORMS = {
    **{name: str(number) for table in NUMBERS.values() for name, number in table.items()},
    **{name: f"{number}th" for name, number in ORDINALS["en"].items()},
    "third": "3rd",
}
_COUNTING_FORMS = {name: number for table in COUNTING_NUMBERS.values() for name, number in table.items()}
_NUMBER_WORDS = frozenset(word for name in _NUMBER_FORMS for word in _WORD.findall(name))
_NUMERIC_WORDS = _NUMBER_WORDS | {word for name in _COUNTING_FORMS for word in _WORD.findall(name)}
_CURRENCY_NAMES = frozenset(_merged(CURRENCIES))
_COUNTING = re.compile(rf"(?<!\w)({alternatives(_COUNTING_FORMS)})([ -])([^\W\d_]+)")
_HAN_DIGIT = re.compile(f"[{''.join(name for name in HAN_NUMBERS if len(name) == 1)}]")
_HANGUL_DIGIT = re.compile(f"(?<![가-힣])[{''.join({name[0] for name in KOREAN_NUMBERS})}]")


def _numbers_of_months() -> dict[str, int]:
    """Return the number of each month by its names in all languages."""
    numbers: dict[str, int] = {}
    for table in MONTHS.values():
        for number, names in enumerate(table.split("|"), start=1):
            numbers |= dict.fromkeys(names.split(), number)
    return numbers


_MONTH_NUMBERS = _numbers_of_months()
_YEAR = "(?P<year>[12][0-9]{3})"
_DAY_NUMBER = r"(?P<day>3[01]|[12][0-9]|0?[1-9])"
_MONTH_NUMBER = r"(?P<month>1[0-2]|0?[1-9])"
_YEAR_FIRST = re.compile(rf"(?<![\w/.,-]){_YEAR}(?P<sign>[-/.]){_MONTH_NUMBER}(?P=sign){_DAY_NUMBER}(?![\w/-]|\.[0-9])")
_DAY_FIRST = re.compile(rf"(?<![\w/.,-]){_DAY_NUMBER}\. ?{_MONTH_NUMBER}\. ?{_YEAR}(?![\w/-]|\.[0-9])")
_BY_SLASHES = re.compile(rf"(?<![\w/.,-])(?P<first>[0-9]{{1,2}})/(?P<second>[0-9]{{1,2}})/{_YEAR}(?![\w/-])")
_CJK_DATE = re.compile(
    rf"(?<![0-9.,]){_YEAR} ?[年년](?!間|간)(?: ?{_MONTH_NUMBER} ?[月월](?: ?{_DAY_NUMBER} ?[日일号號])?)?"
)
_CJK_MONTH = re.compile(rf"(?<![0-9.,/]){_MONTH_NUMBER} ?[月월](?: ?{_DAY_NUMBER} ?[日일号號])?")


@cache
def _named_dates() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of dates with a named month: compiled for the first text that names one."""
    month = rf"(?P<month>{alternatives(_MONTH_NUMBERS)})\b\.?"
    year = rf"{_YEAR}(?!\w|[.,][0-9])"
    day_first = rf"(?<![\w.,/:-]){_DAY_NUMBER}(?:st|nd|rd|th|er|\.)? ?(?:of |de )?{month}(?:(?:, ?| of | de | ){year})?"
    month_first = rf"(?<!\w){month} (?:the )?{_DAY_NUMBER}(?:st|nd|rd|th)?(?![\w:%]|[.,][0-9])(?:,? {year})?"
    without_day = rf"(?<!\w){month},? (?:of |de )?{year}"
    return re.compile(day_first), re.compile(month_first), re.compile(without_day)


_HOUR = "(?P<hour>2[0-4]|1[0-9]|0?[0-9])"
_MINUTE = "(?P<minute>[0-5][0-9])"
_CLOCK_WORDS = frozenset(("am", "pm", "m", "uhr", "clock", "h", "heures", "heure", "tarde", "noche", "mañana"))
"""Of "3 p.m." the letter m is a word."""
_TWELVE_HOURS = re.compile(
    rf"(?<![\w.:,])(?P<hour>1[0-2]|0?[1-9])(?:[:.]{_MINUTE})? ?(?P<half>[ap])(?:\.? ?m\b\.?)(?!\w)"
)
_CLOCK = re.compile(
    rf"(?<![\w.:,]){_HOUR}(?:[:.]{_MINUTE})? ?(?:o'clock|uhr)\b(?: (?P<evening>morgens|nachmittags|abends))?"
)
_FRENCH_CLOCK = re.compile(rf"(?<![\w.:,]){_HOUR} ?h ?{_MINUTE}\b")
_FRENCH_HOUR = re.compile(rf"(?<=à ){_HOUR} ?(?:h|heures?)\b")
_SPANISH_CLOCK = re.compile(rf"\b(?:(?:a|de) )?las {_HOUR}(?::{_MINUTE})? de la (?P<evening>mañana|tarde|noche)\b")
_DAYTIME = "|".join(DAYTIMES)
_CJK_CLOCK = re.compile(
    rf"(?:(?P<half>{_DAYTIME}) ?{_HOUR}[時时点點](?!間|间)"
    rf"|(?<![0-9.,:]){_HOUR.replace('hour', 'plain_hour')}[時时](?!間|间))"
    rf"(?:{_MINUTE}分|(?P<thirty>半))?"
)
_KOREAN_CLOCK = re.compile(
    rf"(?:(?P<half>{_DAYTIME}) ?)?(?<![0-9.,:]){_HOUR} ?시(?!간)(?: ?{_MINUTE} ?분| ?(?P<thirty>반)(?![가-힣]))?"
)

_UNIT_WORDS = _words(
    """
    celsius fahrenheit degrees per pro hour square sq quadratmeter quadratkilometer
    """
)
_UNIT_PHRASE = re.compile(rf"(?<=[\w ])(?:{alternatives(UNIT_PHRASES)})(?!\w)")
_BEFORE = _merged(COMPARISONS_BEFORE)
_BEHIND = _merged(COMPARISONS_BEHIND)
_COMPARING_WORDS = frozenset(max(words, key=len) for words in map(_WORD.findall, (*_BEFORE, *_BEHIND)) if words)
"""The longest word of each phrase: a text without any of them is not searched."""
_COMPARED_BEFORE = re.compile(rf"(?<![^\W0-9가-힣一-鿿])({alternatives(_BEFORE)}) ?(?=[{SIGNS}-]? ?[0-9])")
_COMPARED_BEHIND = re.compile(
    rf"(?<![a-zß-ÿ0-9.,{COMPARISONS}])([{SIGNS}]?[0-9][0-9.,]{{0,20}}(?: ?[^\W\d_]{{1,12}}?)?) ?"
    rf"({alternatives(_BEHIND)})(?![a-zß-ÿ])"
)
