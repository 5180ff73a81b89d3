"""How does a sound answer look after one small change that makes it wrong? By kind of change, the same every time.

A change is made in the answer's own words, at a place where the contexts hold what was said; nothing here knows how
any judge reads. The kinds: see `KINDS`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple


class Edit(NamedTuple):
    """An answer with one change, and what was changed: 'was → is'."""

    kind: str
    answer: str
    change: str


Change = Callable[[str, str, Sequence[str], random.Random], "tuple[int, int, str] | None"]
"""(answer, contexts as one text, texts of other answers' contexts, chance) → the span to replace and by what."""


def edits_of(name: str, answer: str, contexts: Sequence[str], others: Sequence[str]) -> Iterator[Edit]:
    """Every kind of change that this answer allows, each once; `name` seeds the choice, `others` lends names."""
    given = "\n".join(contexts)
    for kind, change in KINDS.items():
        found = change(answer, given, others, random.Random(f"{name}/{kind}"))
        if found is not None:
            start, end, new = found
            yield Edit(kind, answer[:start] + new + answer[end:], f"{answer[start:end]} → {new}")


# ── figures and dates ─────────────────────────────────────────────────────────────────────────────────────────


def _figure_of_the_context(answer: str, given: str, _: Sequence[str], chance: random.Random) -> _Span | None:
    """A figure that the contexts have becomes another one that they have too."""
    known = sorted({found for found in _FIGURE.findall(given) if not _YEAR.fullmatch(found)})
    spot = _pick(_figures(answer, given), chance)
    others = [figure for figure in known if spot and _number(figure) != _number(spot.group())]
    return (*spot.span(), chance.choice(others)) if spot and others else None


def _figure_from_nowhere(answer: str, given: str, _: Sequence[str], chance: random.Random) -> _Span | None:
    """A figure that the contexts have becomes one of as many digits that they do not have."""
    spot = _pick(_figures(answer, given), chance)
    if not spot:
        return None
    known = {_number(figure) for figure in _FIGURE.findall(given)}
    for _attempt in range(50):
        new = re.sub(r"\d", lambda _digit: str(chance.randint(1, 9)), spot.group())
        if _number(new) not in known:
            return (*spot.span(), new)
    return None


def _date(answer: str, given: str, _: Sequence[str], chance: random.Random) -> _Span | None:
    """A year or a month becomes another one: of the contexts where there is one, else from nowhere."""
    spot = _pick([found for found in _DATE.finditer(answer) if found.group().lower() in given.lower()], chance)
    if not spot:
        return None
    is_year = spot.group().isdigit()
    known = sorted({found for found in _DATE.findall(given) if found.isdigit() == is_year})
    others = [found for found in known if found.lower() != spot.group().lower()]
    if not others:
        year = int(spot.group()) if is_year else 0
        others = [str(year + step) for step in (-30, -7, -1, 1, 4, 20)] if is_year else _MONTHS.split("|")
        others = [found for found in others if found.lower() != spot.group().lower()]
    return (*spot.span(), chance.choice(others))


def _figures(answer: str, given: str) -> list[re.Match[str]]:
    known = {_number(figure) for figure in _FIGURE.findall(given)}
    spots = [spot for spot in _FIGURE.finditer(answer) if not _YEAR.fullmatch(spot.group())]
    return [spot for spot in spots if _number(spot.group()) in known]


def _number(figure: str) -> str:
    return figure.replace(",", "")


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _name_of_the_context(answer: str, given: str, _: Sequence[str], chance: random.Random) -> _Span | None:
    """A name becomes another one of the same contexts."""
    return _renamed(answer, given, given, chance)


def _name_from_elsewhere(answer: str, given: str, others: Sequence[str], chance: random.Random) -> _Span | None:
    """A name becomes one of another answer's contexts."""
    return _renamed(answer, given, "\n".join(chance.sample(others, min(20, len(others)))), chance)


def _renamed(answer: str, given: str, lender: str, chance: random.Random) -> _Span | None:
    spot = _pick([found for found in _NAME.finditer(answer) if found["name"] in given], chance)
    if not spot:
        return None
    own = {*spot["name"].lower().split()}
    others = sorted({name for name in _NAME.findall(lender) if own.isdisjoint(name.lower().split())})
    if lender is not given:
        others = [name for name in others if name not in given]
    return (*spot.span("name"), chance.choice(others)) if others else None


# ── signs, units, opposites ───────────────────────────────────────────────────────────────────────────────────


def _negation_put_in(answer: str, _given: str, _others: Sequence[str], chance: random.Random) -> _Span | None:
    """An auxiliary verb gets a "not"."""
    spot = _pick(list(_AUXILIARY.finditer(answer)), chance)
    return (*spot.span(), f"{spot.group()} not") if spot else None


def _negation_taken_out(answer: str, _given: str, _others: Sequence[str], chance: random.Random) -> _Span | None:
    """A "not", "n't", "never" or "no" goes."""
    spot = _pick(list(_NEGATION.finditer(answer)), chance)
    if not spot:
        return None
    return (*spot.span(), "can" if spot.group().lower() == "cannot" else "")


def _unit(answer: str, given: str, _: Sequence[str], chance: random.Random) -> _Span | None:
    return _swapped(_UNITS, answer, given, chance)


def _opposite(answer: str, given: str, _: Sequence[str], chance: random.Random) -> _Span | None:
    return _swapped(_OPPOSITES, answer, given, chance)


def _swapped(table: Mapping[str, str], answer: str, given: str, chance: random.Random) -> _Span | None:
    known = {word.lower() for word in _WORD.findall(given)}
    spots = [spot for spot in _WORD.finditer(answer) if spot.group().lower() in table]
    spot = _pick([spot for spot in spots if spot.group().lower() in known], chance)
    if not spot:
        return None
    new = table[spot.group().lower()]
    return (*spot.span(), new.capitalize() if spot.group()[0].isupper() else new)


_Span = tuple[int, int, str]


def _pick(spots: Sequence[re.Match[str]], chance: random.Random) -> re.Match[str] | None:
    return chance.choice(spots) if spots else None


def _both_ways(written: str) -> dict[str, str]:
    pairs = [pair.split("/") for pair in written.split()]
    return {one: other for pair in pairs for one, other in (pair, pair[::-1])}


_FIGURE = re.compile(r"(?m)(?<![\w.,\[-])(?!^\d+[.)])\d+(?:,\d{3})*(?:\.\d+)?(?![\w\]])")
_YEAR = re.compile(r"1[0-9]\d\d|20\d\d")
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(
    rf"\b(?:1[0-9]\d\d|20\d\d)\b|\b(?:{_MONTHS})\b|\b(?:{_MONTHS.lower().replace('march|', '').replace('may|', '')})\b"
)
_NAME = re.compile(r"(?<=[a-z,] )(?P<name>[A-Z][a-z]+(?: [A-Z][a-z]+){0,2})\b")
_WORD = re.compile(r"[A-Za-z]+")
_AUXILIARY = re.compile(
    r"\b(?:is|are|was|were|can|will|has|had|should|must|could|would|may)\b(?! (?:not|n't|never|no)\b)(?!n't| ?\?)", re.I
)
_NEGATION = re.compile(r"\b(?:cannot\b|not |never |no (?=[a-z]))|(?<=[a-z]) ?n't\b|(?<=[a-z])n't\b", re.I)
_UNITS = _both_ways(
    "miles/kilometers feet/meters inches/centimeters pounds/kilograms hours/days minutes/seconds weeks/months "
    "million/billion dollars/euros percent/points"
) | {"years": "months", "months": "years", "days": "weeks", "km": "miles", "kg": "pounds", "thousand": "million"}
_OPPOSITES = _both_ways(
    "increase/decrease increases/decreases increased/decreased before/after more/less higher/lower first/last "
    "larger/smaller largest/smallest north/south east/west northern/southern eastern/western above/below "
    "inside/outside male/female men/women early/late old/new high/low large/small long/short open/closed "
    "allow/prohibit allowed/prohibited accept/reject accepted/rejected include/exclude includes/excludes "
    "public/private buy/sell winter/summer positive/negative always/never oldest/youngest hot/cold maximum/minimum "
    "required/optional free/paid won/lost best/worst most/fewest stronger/weaker easy/difficult good/bad"
)

KINDS: Mapping[str, Change] = {
    "figure, another of the context": _figure_of_the_context,
    "figure, one of nowhere": _figure_from_nowhere,
    "date": _date,
    "name, another of the context": _name_of_the_context,
    "name, one from elsewhere": _name_from_elsewhere,
    "negation put in": _negation_put_in,
    "negation taken out": _negation_taken_out,
    "unit": _unit,
    "opposite": _opposite,
}
