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

SIGNS = "$€£¥₩₹₽₺₫฿₴₪"
"""Signs of currencies."""
COMPARISONS = "<>≤≥≠≈±"
QUANTITY = rf"(?<!\S)[{COMPARISONS}]?-?(?:[a-z]{{0,2}}[{SIGNS}])?[0-9]\S*"
"""A quantity in its one form, as a pattern."""


def with_plain_quantities(folded: str) -> str:
    """Write each quantity of a text (in lower case and NFKC) in its one form between spaces."""
    if _DIGIT.search(folded) is None:
        return folded
    text = _SPACED_THOUSANDS.sub(lambda match: match[0].replace(" ", ""), _BLANKS.sub(" ", folded))
    text = _TIME.sub(r"\1:\2", _LEADING_ZERO.sub("", text))
    text = _POWER_OF.sub("^", _TIMES.sub("x", _RANGE.sub("-", _RATIO.sub(r"\1", text))))
    return _WRITTEN.sub(_plain, text)


def with_plain_powers(text: str) -> str:
    """Write out single characters that NFKC would join to a figure: 10² becomes 10^2, 2½ becomes 2 1⁄2."""
    text = _SUPERSCRIPT.sub(lambda match: f"^{unicodedata.normalize('NFKC', match[0])}", text)
    return _FRACTION.sub(" ", text)


def with_mega_units(text: str) -> str:
    """Spell out M for mega before case is folded: 5 MW are not 5 mW."""
    return _MEGA.sub(r"\1mega", text) if "M" in text else text


def _plain(match: re.Match[str]) -> str:
    written = match.groupdict("")
    figure = _SEPARATED.sub(_figure, written["figure"])
    currency = (written["before"] or written["behind"]).strip()
    currency = _CURRENCIES.get(currency.rstrip("s"), currency)
    percent = written["percent"].strip()
    if _DECIMAL.fullmatch(figure):
        bare = figure.rstrip("0").rstrip(".")
        # Without a sign it may be a version: 3.10 is not 3.1.
        figure = bare if currency or percent or bare.isdigit() else figure
    parts = (
        _COMPARED.get(written["compare"].strip(), written["compare"].strip()),
        "-" if "-" in written["sign"] + written["sign_behind"] else "",
        currency,
        f"0{figure}" if figure.startswith(".") else figure,
        "%" if percent[:1].isalpha() else percent,
    )
    return f" {''.join(parts)} {written['scale']} "


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
_BLANKS = re.compile(r"[^\S\n]+")
_SPACED_THOUSANDS = re.compile(r"(?<![\w.,:/^-])(?<![0-9] )[1-9][0-9]{0,2}(?: [0-9]{3}){1,4}(?! ?[0-9]|[:/-])")
_LEADING_ZERO = re.compile(r"(?<![\w:.,/-])0(?=[0-9]:[0-5][0-9])")
_TIME = re.compile(r"(?<![\w.])([0-2]?[0-9])\.([0-5][0-9])(?= ?(?:uhr|[ap]\.?m)\b)")
_RATIO = re.compile("(?<=[0-9]) ([:/]) (?=[0-9])")
_RANGE = re.compile("(?<=[0-9])(?:~| ~ | - | to )(?=[0-9])")
_TIMES = re.compile(r"(?<=[0-9])(?: [x*] |\*)(?=[0-9])")
_POWER_OF = re.compile(r"(?<=[0-9])\*\*(?=[0-9])")

# Behind a letter of a script with spaces a figure is part of a word: b08.
_IN_A_WORD = r"(?<![a-z_\u00b5-\u1fff0-9])(?<![0-9][.,:/'-])"
_WRITTEN = re.compile(
    rf"""
    (?=[-+.0-9<>!~{COMPARISONS}{SIGNS}]|\b(?:[a-z]{{1,2}}[{SIGNS}]|usd|eur|gbp|jpy|krw))  # soon no
    (?:(?<=[\w%‰′{SIGNS}])-)?  # joins words
    (?P<compare>(?<![-=<>~])(?:[<>]=?|!=|\+/?-|[~{COMPARISONS}])\ ?)?
    (?P<sign>(?<![\w+-])[+-](?=[.0-9{SIGNS}]))?
    (?P<before>(?:[{SIGNS}]|{_IN_A_WORD}(?:[a-z]{{1,2}}[{SIGNS}]|usd|eur|gbp|jpy|krw))\ ?)?
    (?P<sign_behind>(?<=[{SIGNS}])-)?
    {_IN_A_WORD}
    (?P<figure>(?:(?<![\w.])\.)?[0-9]+(?:(?:[.,':/^+x-]|\^-|e[+-]?)[0-9]+)*(?:\+(?!\w))?)
    (?P<percent>\ ?(?:%|‰|′{{1,2}}|(?:percent|per\ cent|prozent|pour\ cent|por\ ciento)(?![a-z])|퍼센트|パーセント))?
    (?:
        (?P<scale>\ ?(?:thousand|million|billion|trillion|mio|mrd|bn|k|m))?
        (?P<behind>\ ?(?:us\ ?)?(?:[{SIGNS}]|(?:usd|dollars?|eur|euros?|gbp|jpy|yen|krw)(?![a-z])))(?!\ ?[0-9])
    )?
    """,
    re.VERBOSE,
)
_SEPARATED = re.compile("(?<![0-9])[0-9]+(?:[.,'][0-9]+)+")
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?|[1-9][0-9]{0,2}(?:'[0-9]{3})+(?:\.[0-9]+)?")
_GROUPED_BY_POINTS = re.compile(r"[1-9][0-9]{0,2}(?:(?:\.[0-9]{3}){2,}|(?:\.[0-9]{3})+(?=,))(?:,[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"(?:[0-9]+|[1-9][0-9]{0,2}(?:'[0-9]{3})+),[0-9]+")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]+")
_COMPARED = {"<=": "≤", ">=": "≥", "!=": "≠", "~": "≈", "+-": "±", "+/-": "±"}
_CURRENCIES = {
    **dict.fromkeys(("us$", "us $", "usd", "dollar", "us dollar"), "$"),
    **dict.fromkeys(("eur", "euro"), "€"),
    "gbp": "£",
    "jpy": "¥",
    "yen": "¥",
    "krw": "₩",
}
_SUPERSCRIPT = re.compile(r"(?<=[\w)])[⁺⁻]?[¹²³⁰⁴-⁹]+")
_FRACTION = re.compile("(?<=[0-9])(?=[¼-¾⅐-⅞])")
_MEGA = re.compile(r"(?<=[0-9])( ?)M(?=(?:W|Wh|V|J)\b)")
