"""Quantities of a text in the one form in which they are compared: `3,5 %` becomes `3.5%`, `USD 1,000` becomes `$1000`.

A quantity is a figure and what decides its value: comparison, sign, currency, decimal point, ratio, time, range, power,
per cent. It stands between spaces and has none inside. A unit is a word of its own behind it: `10km` is `10 km`.

Separators are read alike in every language. Groups of three digits behind commas, spaces or apostrophes are thousands
(`1,234` is 1234); behind points, where there are several or a decimal comma follows (`1.234,5`). A single comma is a
decimal one otherwise (`3,5` is 3.5), and a single point always is (`1.234` is not 1234).
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal

from pytest_rageval.language.named_figures import alternatives, unit_forms, with_figures
from pytest_rageval.language.number_names import SCALES
from pytest_rageval.language.quantity_names import COMPARISONS, CURRENCIES, SIGNS, WORDS_BEFORE_NUMBERS


def _words(written: str) -> frozenset[str]:
    return frozenset(written.split())


QUANTITY = rf"(?<!\S)[{COMPARISONS}]?-?(?:[a-z]{{0,2}}[{SIGNS}])?[0-9]\S*"
"""A quantity in its one form, as a pattern."""


def with_plain_quantities(folded: str, *, compares: bool = True) -> str:
    """Write each quantity of a text (in lower case and NFKC) in its one form between spaces."""
    folded = with_figures(folded, compares=compares)
    if _DIGIT.search(folded) is None:
        return folded
    # Each look for what must be there, at the full speed of a search for a set, saves a pattern that tries every place.
    text = _BLANKS.sub(" ", folded)
    if _FIGURE_AND_THREE_DIGITS.search(text) is not None:
        text = _SPACED_THOUSANDS.sub(lambda match: match[0].replace(" ", ""), text)
    if not text.isascii():
        text = _MYRIADS.sub(_sum_of_myriads, text)
    if ":" in text:
        text = _LEADING_ZERO.sub("", text)
    if _FIGURE_WITH_POINT.search(text) is not None:
        text = _TIME.sub(r"\1:\2", text)
    if _BETWEEN_FIGURES.search(text) is not None:
        text = _POWER_OF.sub("^", _TIMES.sub("x", _RANGE.sub("-", _RATIO.sub(r"\1", text))))
    return _UNIT.sub(_with_plain_unit, _WRITTEN.sub(_plain, text))


def with_plain_powers(text: str) -> str:
    """Write out single characters that NFKC would join to a figure: 10² becomes 10^2, 2½ becomes 2 1⁄2."""
    text = _SUPERSCRIPT.sub(lambda match: f"^{unicodedata.normalize('NFKC', match[0])}", text)
    return _FRACTION.sub(" ", text)


def with_mega_units(text: str) -> str:
    """Spell out units that case decides, before case is folded: 5 MW are not 5 mW, and 5 MB are not 5 Mb."""
    if "M" in text:
        text = _MEGA.sub(r"\1mega", text)
    if "b" in text or "B" in text:
        text = _BYTES.sub(_spelled_bytes, text)
    return text


def _spelled_bytes(match: re.Match[str]) -> str:
    prefix = match["prefix"]
    is_bit = match["size"] == "b" and (prefix.isupper() or match["rest"] == "it")
    name = _PREFIXES[prefix.lower()]
    if match["binary"]:
        name += "bi"
    name += "bit" if is_bit else "byte"
    if match["per_second"]:
        name += "/s"
    return f" {name}"


def _plain(match: re.Match[str]) -> str:
    written = match.groupdict("")
    figure = _SEPARATED.sub(_figure, written["figure"])
    currency = (written["before"] or written["behind"]).strip()
    currency = _CURRENCIES.get(currency.rstrip("s"), currency)
    percent = written["percent"].strip()
    scale = written["scale"].strip(" -.")
    if scale in _POWERS and _PLAIN_NUMBER.fullmatch(figure):
        figure = f"{Decimal(figure).scaleb(_POWERS[scale]):f}"
        scale = ""
    if _DECIMAL.fullmatch(figure):
        bare = figure.rstrip("0").rstrip(".")
        is_number = bool(currency or percent) or (bare.isdigit() and not _is_version(match))
        # Without a sign it may be a version: 3.10 is not 3.1, and Python 3.0 is not Python 3.
        figure = bare if is_number else figure
    parts = (
        _COMPARED.get(written["compare"].strip(), written["compare"].strip()),
        "-" if "-" in written["sign"] + written["sign_behind"] else "",
        currency if currency in SIGNED else "",
        f"0{figure}" if figure.startswith(".") else figure,
        "%" if percent[:1].isalpha() else percent,
    )
    unit = "" if currency in SIGNED else currency
    return f" {' '.join(filter(None, (''.join(parts), scale, unit)))} "


def _is_version(match: re.Match[str]) -> bool:
    """Check whether a word that is no grammar stands before a figure, and no unit behind it."""
    if "," in match["figure"] or not _SMALL.match(match["figure"]):  # no version has so high a number
        return False
    before = _LAST_WORD.search(match.string, max(0, match.start() - 24), match.start("figure"))
    if before is None or before[1] in WORDS_BEFORE_NUMBERS:
        return False
    behind = _FIRST_WORD.match(match.string, match.end())
    return behind is None or behind[1] not in unit_forms()


def _with_plain_unit(match: re.Match[str]) -> str:
    """Return the one form of a unit behind its figure; in scripts without spaces the longest name counts."""
    word = match["word"]
    forms = unit_forms()
    if word in forms:
        return f" {forms[word]}"
    if word[0].isascii():
        latin = _LATIN.match(word)
        if latin is None or latin.end() == len(word):
            return match[0]
        unit = forms.get(latin[0], latin[0])
        return f" {unit} {word[latin.end() :]}"
    for cut in range(min(_LONGEST_NAME, len(word) - 1), 0, -1):
        if word[:cut] in forms and _may_follow(word[:cut], word[cut:]):
            return f" {forms[word[:cut]]} {word[cut:]}"
    return match[0]


def _may_follow(unit: str, rest: str) -> bool:
    """Check that a unit is not the beginning of another word: 5 일반석, 5日本."""
    if "가" <= unit[0] <= "힣":
        return rest in _BEHIND_KOREAN_UNITS
    return rest[0] not in "本の"


def _sum_of_myriads(match: re.Match[str]) -> str:
    """Return the number that several parts with their powers of ten name: 3억 5천만."""
    total = Decimal(0)
    for part in _MYRIAD.finditer(match[0]):
        total += Decimal(part[1].replace(",", "")).scaleb(_POWERS[part[2]])
    if match["rest"]:
        total += Decimal(match["rest"].replace(",", ""))
    return f"{total.normalize():f} "


def _figure(match: re.Match[str]) -> str:
    """Return a figure without separators of thousands, with a decimal point, or in its parts."""
    written = match[0]
    if _GROUPED_BY_POINTS.fullmatch(written):
        return written.replace(".", "").replace(",", ".")
    if _GROUPED.fullmatch(written):
        return written.replace(",", "").replace("'", "")
    if _DECIMAL_COMMA.fullmatch(written):
        return written.replace("'", "").replace(",", ".")
    return written.replace(",", " ").replace("'", "′")


_DIGIT = re.compile("[0-9]")
_FIGURE_AND_THREE_DIGITS = re.compile("[0-9] [0-9]{3}")
_FIGURE_WITH_POINT = re.compile(r"[0-9]\.[0-5]")
_BETWEEN_FIGURES = re.compile(r"[0-9](?: [:/x*~-] |~| to |\*)[*0-9]")
_BLANKS = re.compile(r"[^\S\n]+")
_SPACED_THOUSANDS = re.compile(r"(?<![\w.,:/^-])(?<![0-9] )[1-9][0-9]{0,2}(?: [0-9]{3}){1,4}(?! ?[0-9]|[:/-])")
_LEADING_ZERO = re.compile(r"(?<![\w:.,/-])0(?=[0-9]:[0-5][0-9])")
_TIME = re.compile(r"(?<![\w.])([0-2]?[0-9])\.([0-5][0-9])(?= ?(?:uhr|[ap]\.?m)\b)")
_RATIO = re.compile("(?<=[0-9]) ([:/]) (?=[0-9])")
_RANGE = re.compile("(?<=[0-9])(?:~| ~ | - | to )(?=[0-9])")
_TIMES = re.compile(r"(?<=[0-9])(?: [x*] |\*)(?=[0-9])")
_POWER_OF = re.compile(r"(?<=[0-9])\*\*(?=[0-9])")


_POWERS = {name: power for table in SCALES.values() for name, power in table.items()}
_POWERS.update(k=3, m=6)  # beside a currency only
_CURRENCIES = {name: sign for table in CURRENCIES.values() for name, sign in table.items()}
_SCALE_NAMES = alternatives(name for name in _POWERS if name not in ("k", "m"))
_CURRENCY_NAMES = (
    alternatives(f"{name}s" if name.isascii() else name for name in _CURRENCIES) + "|" + alternatives(_CURRENCIES)
)
_CODES = "usd|eur|gbp|jpy|krw|inr|cny|rmb|chf"
SIGNED = frozenset(SIGNS)
# Behind a letter of a script with spaces a figure is part of a word: b08.
_IN_A_WORD = r"(?<![a-z_\u00b5-\u1fff0-9])(?<![0-9][.,:/'-])"
_WRITTEN = re.compile(
    rf"""
    (?=[-+.0-9<>!~{COMPARISONS}{SIGNS}]|\b(?:[a-z]{{1,2}}[{SIGNS}]|{_CODES}))  # soon no
    (?:(?<=[\w%‰′{SIGNS}])-)?  # joins words
    (?P<compare>(?<![-=<>~])(?:[<>]=?|!=|\+/?-|[~{COMPARISONS}])\ ?)?
    (?P<sign>(?<![\w+-])[+-](?=[.0-9{SIGNS}]))?
    (?P<before>(?:[{SIGNS}]|{_IN_A_WORD}(?:[a-z]{{1,2}}[{SIGNS}]|{_CODES}))\ ?)?
    (?P<sign_behind>(?<=[{SIGNS}])-)?
    {_IN_A_WORD}
    (?P<figure>(?:(?<![\w.])\.)?[0-9]+(?:(?:[.,':/^+x-]|\^-|e[+-]?)[0-9]+)*(?:\+(?!\w))?)
    (?P<percent>\ ?(?:%|‰|′{{1,2}}|(?:percent|per\ cent|prozent|pour\ cent|por\ ciento)(?![a-z])|퍼센트|パーセント))?
    (?:
        (?P<scale>[\ -]?(?:{_SCALE_NAMES})\.?(?![a-zß-ÿ])
            |\ ?[km](?=\ ?(?:[{SIGNS}]|{_CURRENCY_NAMES})(?![a-zß-ÿ]))
            |(?(before)\ ?[km](?!\w)|(?!)))?
        (?:(?:\ |\ de\ |\ d')?(?P<behind>(?:us\ ?)?(?:[{SIGNS}]|(?:{_CURRENCY_NAMES})(?![a-zß-ÿ])))(?!\ ?[0-9]))?
    )
    """,
    re.VERBOSE,
)
_SEPARATED = re.compile("(?<![0-9])[0-9]+(?:[.,'][0-9]+)+")
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?|[1-9][0-9]{0,2}(?:'[0-9]{3})+(?:\.[0-9]+)?")
_GROUPED_BY_POINTS = re.compile(r"[1-9][0-9]{0,2}(?:(?:\.[0-9]{3}){2,}|(?:\.[0-9]{3})+(?=,))(?:,[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"(?:[0-9]+|[1-9][0-9]{0,2}(?:'[0-9]{3})+),[0-9]+")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]+")
_PLAIN_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_COMPARED = {"<=": "≤", ">=": "≥", "!=": "≠", "~": "≈", "+-": "±", "+/-": "±"}
_SUPERSCRIPT = re.compile(r"(?<=[\w)])[⁺⁻]?[¹²³⁰⁴-⁹]+")
_FRACTION = re.compile("(?<=[0-9])(?=[¼-¾⅐-⅞])")
_MEGA = re.compile(r"(?<=[0-9])( ?)M(?=(?:W|Wh|V|J)\b)")
_BYTES = re.compile(
    r"(?<=[0-9])[ -]?(?P<prefix>[kKmMgGtTpP])(?P<binary>i?)(?P<size>[bB])"
    r"(?P<rest>it|yte)?s?(?P<per_second>ps|/s)?(?![^\W가-힣])"
)
_PREFIXES = {"k": "kilo", "m": "mega", "g": "giga", "t": "tera", "p": "peta"}
# A set first, since the search for one is several times faster than any other.
_UNIT = re.compile(r"[ -](?<=[0-9][ -])[ -]{0,2}(?P<word>(?:[^\W\d_]|°[cf])[^\W\d_]{0,30}(?:/[hs]\b)?)")
_SMALL = re.compile(r"[0-9]{1,2}(?![0-9])")
_LATIN = re.compile("[a-z]+")
_LONGEST_NAME = 5
_LAST_WORD = re.compile(r"([^\W\d_]{1,24}) ?$")
_FIRST_WORD = re.compile(r"[ -]?([^\W\d_]+)")
_BEHIND_KOREAN_UNITS = _words(
    """
    은 는 이 가 을 를 의 에 에서 로 으로 도 만 와 과 간 까지 부터 마다 이다 이며 이고 입니다 이에요 예요
    이나 이라고 동안 이내 짜리 정도 이었다 이었습니다 이상 이하 미만 초과 씩
    """
)
_NUMBER_WITH_COMMAS = r"[0-9][0-9,]{0,12}(?:\.[0-9]{1,6})?"
_CJK_SCALES = alternatives(name for name in _POWERS if not name[0].isascii() and name != "millón")
_MYRIADS = re.compile(
    rf"(?<![\w.,])(?:{_NUMBER_WITH_COMMAS} ?(?:{_CJK_SCALES}) ?){{1,5}}"
    rf"(?P<rest>{_NUMBER_WITH_COMMAS}(?! ?(?:{_CJK_SCALES}))(?=[원円元]))?"
)
_MYRIAD = re.compile(rf"({_NUMBER_WITH_COMMAS}) ?({_CJK_SCALES})")
