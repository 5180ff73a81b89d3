"""Quantities of a clause, with their units, and which of them are alternatives: 12 or 24 months."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation, Overflow
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from pytest_rageval.language.korean import without_particles
from pytest_rageval.language.polarity_words import (
    CHOICES,
    DEPENDING,
    DEPENDING_PARTS,
    GRAMMAR,
    HEDGES,
    RANGES,
    RELATIVE,
)
from pytest_rageval.language.quantity_names import COMPARISONS, SIGNS
from pytest_rageval.language.words import STOP_WORDS


class Quantity(NamedTuple):
    """A figure with what decides its value; `unit` is the word behind it, '' for none."""

    figure: str
    unit: str = ""
    comparison: str = ""
    is_denied: bool = False
    is_choice: bool = False
    """Whether another value of the same kind stands beside it as an alternative: 12 or 24 months."""

    @property
    def written(self) -> str:
        return f"{self.comparison}{self.figure} {self.unit}".strip()


def quantities_at(clause: list[str], at: int, *, is_denied: bool) -> Iterator[Quantity]:
    """Yield the quantity of a figure, or both ends of a range as alternatives."""
    match = FIGURE.fullmatch(clause[at])
    assert match is not None
    if match["date"]:
        yield Quantity(clause[at], "date", "", is_denied)
        return
    unit = clause[at + 1] if at + 1 < len(clause) else ""
    if FIGURE.fullmatch(unit) or unit in _NO_UNITS or _UNSPACED.match(unit):
        unit = ""
    figure = match["minus"] + match["figure"]
    comparison = match["compare"]
    if match["sign"]:
        unit = match["sign"]
    low, dash, high = match["figure"].partition("-")
    if dash and low and high:
        if len(high) < len(low) == _DIGITS_OF_A_YEAR:
            high = low[: len(low) - len(high)] + high
            figure = f"{low}-{high}"
        # From 10:00 to 14:00 both hold: one is the beginning, the other the end.
        is_choice = ":" not in low
        yield Quantity(low, unit, comparison, is_denied, is_choice)
        yield Quantity(high, unit, comparison, is_denied, is_choice)
        yield Quantity(figure, unit, comparison, is_denied)
        return
    if unit:
        unit = without_particles(unit)
    yield Quantity(figure, unit, comparison, is_denied)


def with_choices(clause: Sequence[str], found: Sequence[tuple[int, Quantity]]) -> Iterator[Quantity]:
    """Mark those that are alternatives, of quantities in the order of their places.

    A figure without a unit has that of the next one: 12 or 24 months.
    """
    quantities = list(found)
    for index in range(len(quantities) - 2, -1, -1):
        at, quantity = quantities[index]
        place, following = quantities[index + 1]
        between = clause[at + 1 : place]
        is_listed = not between or not _JOINING.isdisjoint(between)
        if is_listed and not quantity.unit and place - at <= _BETWEEN_ALTERNATIVES:
            quantities[index] = (at, quantity._replace(unit=following.unit))
    for index, (_, quantity) in enumerate(quantities):
        near = quantities[max(0, index - _NEAR) : index + _NEAR + 1]
        is_choice = any(_are_alternatives(clause, quantities[index], other) for other in near)
        yield quantity._replace(is_choice=True) if is_choice else quantity


def with_open_lists(sentence: Sequence[str], quantities: Sequence[Quantity]) -> list[Quantity]:
    """Mark the whole of a list of alternatives: it could be two weeks, four weeks or three months."""
    if CHOICES.isdisjoint(sentence) or not is_undecided(sentence):
        return list(quantities)
    kinds = {kind(quantity.unit) for quantity in quantities if quantity.is_choice}
    for at, (piece, following) in enumerate(pairwise(sentence)):
        if piece in CHOICES and FIGURE.fullmatch(following) and not _is_relative(sentence, at + 1):
            kinds.add(kind(quantities[-1].unit))
    return [quantity._replace(is_choice=quantity.is_choice or kind(quantity.unit) in kinds) for quantity in quantities]


def is_undecided(sentence: Sequence[str]) -> bool:
    """Check for words that leave open which of several alternatives holds."""
    if not (DEPENDING.isdisjoint(sentence) and HEDGES.isdisjoint(sentence)):
        return True
    if "je" in sentence and "nach" in sentence:
        return True
    return any(part in piece for piece in sentence for part in DEPENDING_PARTS)


def _are_alternatives(clause: Sequence[str], one: tuple[int, Quantity], other: tuple[int, Quantity]) -> bool:
    first, last = sorted((one[0], other[0]))
    between = clause[first + 1 : last]
    if len(between) > _BETWEEN_ALTERNATIVES:
        return False
    is_range = first > 0 and clause[first - 1] in RANGES
    if not is_range and CHOICES.isdisjoint(between):
        return False
    if not is_range and _is_relative(clause, last):
        return False
    unit = one[1].unit
    other_unit = other[1].unit
    is_same_kind = not other_unit or kind(other_unit) == kind(unit)
    return is_same_kind and number(one[1]) != number(other[1])


def _is_relative(clause: Sequence[str], at: int) -> bool:
    """Check whether a figure is a difference: "61,000 yen, or 4,200 yen less on weekdays" has one price."""
    return not RELATIVE.isdisjoint(clause[at + 1 : at + 3])


# What is told in the same base: 24 months are 2 years. No month is a number of days.
_IN_BASE = {
    "year": (12, "month"),
    "month": (1, "month"),
    "second": (1000, "ms"),
    "minute": (60_000, "ms"),
    "hour": (3_600_000, "ms"),
    "day": (86_400_000, "ms"),
    "week": (604_800_000, "ms"),
    "km": (1_000_000, "mm"),
    "m": (1000, "mm"),
    "cm": (10, "mm"),
    "kg": (1_000_000, "mg"),
    "g": (1000, "mg"),
    "ton": (1_000_000_000, "mg"),
    "l": (1000, "ml"),
    "kw": (1000, "w"),
    "megawatt": (1_000_000, "w"),
    "kilobyte": (10**3, "byte"),
    "megabyte": (10**6, "byte"),
    "gigabyte": (10**9, "byte"),
    "terabyte": (10**12, "byte"),
    "kilobit": (10**3, "bit"),
    "megabit": (10**6, "bit"),
    "gigabit": (10**9, "bit"),
}
_BINARY = {"kilobyte": 2**10, "megabyte": 2**20, "gigabyte": 2**30, "terabyte": 2**40}
"""2 GB are 2000 MB to some and 2048 MB to others."""


MOST_DIGITS = 1_000
"""Of a number that is reckoned with: 1e999999 overflows in another unit, or is written out in a million digits."""


def kind(unit: str) -> str:
    """Return what a unit measures, for units that may be alternatives to each other: two weeks or three months."""
    _, base = _IN_BASE.get(unit, (1, unit))
    return "ms" if base == "month" else base


def are_same_number(one: Quantity, other: Quantity) -> bool:
    """Check whether two quantities with figures have the same value, in whatever units: 90 minutes are 1.5 hours."""
    if _is_clock_of(one, other) or _is_clock_of(other, one):
        return True
    if _are_hundredths_of(one, other) or _are_hundredths_of(other, one):
        return True
    value = number(one)
    if value is None:
        return False
    if value == number(other):
        return True
    if one.unit in _BINARY and other.unit in _BINARY:
        return number(other) is not None and _binary(one) == _binary(other)
    return False


def _are_hundredths_of(coins: Quantity, money: Quantity) -> bool:
    """Check whether an amount in coins has the value of one in its currency: 50 cents are $0.50."""
    if money.unit not in _CURRENCIES_OF_COINS.get(coins.unit, ()):
        return False
    try:
        return Decimal(coins.figure) == 100 * Decimal(money.figure)
    except (InvalidOperation, Overflow):  # the latter at 1e999999
        return False


_CURRENCIES_OF_COINS = {
    **dict.fromkeys(("cent", "cents"), ("€", "$")),
    **dict.fromkeys(("pence", "penny", "p"), ("£",)),
    **dict.fromkeys(("centime", "centimes"), ("€", "chf")),
    "rappen": ("chf",),
}
"""Units of which a hundred are one of the currency."""


def _binary(quantity: Quantity) -> Decimal:
    return Decimal(quantity.figure) * _BINARY[quantity.unit]


def _is_clock_of(clock: Quantity, duration: Quantity) -> bool:
    """Check whether "1:30" is a duration of hours and minutes."""
    hour, colon, minute = clock.figure.partition(":")
    if not colon or duration.unit not in ("hour", "minute") or not (hour.isdigit() and minute.isdigit()):
        return False
    return number(Quantity(str(60 * int(hour) + int(minute)), "minute")) == number(duration)


def with_sums(clause: Sequence[str], found: Sequence[tuple[int, Quantity]]) -> list[tuple[int, Quantity]]:
    """Write what is told in two units as one quantity: 1 hour 30 minutes."""
    summed: list[tuple[int, Quantity]] = []
    for at, quantity in found:
        if summed:
            place, before = summed[-1]
            # Behind the first figure stands its unit, and then at most an "and".
            between = clause[place + 2 : at]
            is_joined = not between or (len(between) == 1 and between[0] in _ANDS)
            if at > place + 1 and is_joined and _is_part_of(quantity, before):
                summed[-1] = (at, before._replace(figure=_sum(before, quantity), unit=quantity.unit))
                continue
        summed.append((at, quantity))
    return summed


def _is_part_of(smaller: Quantity, larger: Quantity) -> bool:
    """Check whether a second quantity goes on with a first one in a smaller unit."""
    if larger.unit not in _IN_BASE or smaller.unit not in _IN_BASE or smaller.comparison:
        return False
    factor, base = _IN_BASE[larger.unit]
    smaller_factor, smaller_base = _IN_BASE[smaller.unit]
    if base != smaller_base or factor <= smaller_factor or number(larger) is None:
        return False
    value = number(smaller)
    return value is not None and value[0] < factor


def _sum(larger: Quantity, smaller: Quantity) -> str:
    factor, _ = _IN_BASE[larger.unit]
    smaller_factor, _ = _IN_BASE[smaller.unit]
    ratio = Decimal(factor) / smaller_factor
    total = Decimal(larger.figure) * ratio + Decimal(smaller.figure)
    return f"{total.normalize():f}"


@lru_cache(maxsize=4096)
def number(quantity: Quantity) -> tuple[Decimal, str] | None:
    """Return the value of a quantity in the base of its unit; None for a date, time, range or monstrous figure."""
    try:
        value = Decimal(quantity.figure)
    except InvalidOperation:
        return None
    if abs(value.adjusted()) > MOST_DIGITS:
        return None
    factor, base = _IN_BASE.get(quantity.unit, (1, quantity.unit))
    return value * factor, base


FIGURE = re.compile(
    rf"(?P<compare>[{COMPARISONS}]?)(?P<minus>-?)(?P<sign>[a-z]{{0,2}}[{SIGNS}])?(?P<figure>[0-9][^\s]*)"
    r"|(?:(?P<date>mon|day)[0-9]{1,2})"
)
_NO_UNITS = STOP_WORDS | GRAMMAR | CHOICES
_DIGITS_OF_A_YEAR = 4
_BETWEEN_ALTERNATIVES = 5
_NEAR = 3
_ANDS = frozenset(("and", "und", "et", "y"))
_JOINING = CHOICES | _ANDS | {"bis", "to"}
_UNSPACED = re.compile("[぀-ヿ一-鿿々]")
