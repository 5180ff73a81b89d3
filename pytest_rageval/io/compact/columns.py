"""Columns of numbers, of values that repeat, and of hashes: a few bytes a value where objects take a hundred."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")
Number = int | float


class MadeSequence(Sequence[T]):
    """A sequence whose values are made when they are asked for."""

    @abstractmethod
    def _at(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        if isinstance(place, slice):
            return [self._at(each) for each in range(*place.indices(len(self)))]
        return self._at(range(len(self))[place])

    def __iter__(self) -> Iterator[T]:
        return map(self._at, range(len(self)))


class NumberColumn(MadeSequence[Number | None]):
    """Numbers, or None. Where all are floats, as scores are, eight bytes each; others are kept as they are."""

    def __init__(self) -> None:
        self._values: array[float] | list[Number | None] = array("d")

    def append(self, value: Number | None) -> None:
        values = self._values
        if isinstance(values, array):
            if value is None:
                values.append(math.nan)
                return
            if type(value) is float and value == value:  # NaN stands for None
                values.append(value)
                return
            values = self._values = list(self)
        values.append(value)

    def fill(self, length: int) -> None:
        """Append None up to this length."""
        for _ in range(length - len(self._values)):
            self.append(None)

    def __len__(self) -> int:
        return len(self._values)

    def _at(self, place: int) -> Number | None:
        value = self._values[place]
        return value if value == value else None

    def __contains__(self, value: object) -> bool:
        return any(each is value or each == value for each in self)

    def present(self, places: Sequence[int] | None = None) -> Sequence[Number]:
        """The numbers among the values, of all or of those at some places."""
        values = self._values
        if places is None and isinstance(values, array) and not any(map(math.isnan, values)):
            return values
        chosen = values if places is None else [values[place] for place in places]
        return [value for value in chosen if value is not None and value == value]


class CodedColumn(MadeSequence[T], Generic[T]):
    """Values of which many are equal: each different one is held once, and four bytes for each time."""

    def __init__(self, identity: Callable[[T], Hashable] = lambda value: value) -> None:
        """`identity`: what tells two values apart."""
        self._identity = identity
        self._codes: dict[Hashable, int] = {}
        self.values: list[T] = []
        """The different values."""
        self.codes = array("I")
        """Which of them stands where."""

    def append(self, value: T) -> None:
        codes, values = self.codes, self.values
        if codes and (values[codes[-1]] is value or values[codes[-1]] == value):  # as most often
            codes.append(codes[-1])
            return
        code = self._codes.setdefault(self._identity(value), len(values))
        if code == len(values):
            values.append(value)
        codes.append(code)

    def __len__(self) -> int:
        return len(self.codes)

    def _at(self, place: int) -> T:
        return self.values[self.codes[place]]

    def counts(self) -> list[tuple[T, int]]:
        """The different values, each with how often it stands there."""
        return [(self.values[code], number) for code, number in sorted(Counter(self.codes).items())]

    def where(self, is_meant: Callable[[T], object]) -> array[int]:
        """The places of some values; each different value is looked at once."""
        meant = bytes(bool(is_meant(value)) for value in self.values)
        return array("I", [place for place, code in enumerate(self.codes) if meant[code]])


class HashColumn(MadeSequence[str | None]):
    """Hashes of hexadecimal digits, half a byte each: parts of fixed lengths joined by hyphens. Others as they are."""

    def __init__(self, *lengths: int) -> None:
        self._pattern = re.compile("-".join(f"[0-9a-f]{{{length}}}" for length in lengths))
        self._lengths = lengths
        self._width = sum(lengths) // 2
        self._bytes = bytearray()
        self._others: dict[int, str | None] = {}

    def append(self, value: str | None) -> None:
        if value is not None and self._pattern.fullmatch(value):
            self._bytes += bytes.fromhex(value.replace("-", ""))
        else:
            self._others[len(self)] = value
            self._bytes += bytes(self._width)

    def __len__(self) -> int:
        return len(self._bytes) // self._width

    def _at(self, place: int) -> str | None:
        if place in self._others:
            return self._others[place]
        digits = self._bytes[place * self._width : (place + 1) * self._width].hex()
        start, parts = 0, []
        for length in self._lengths:
            parts.append(digits[start : start + length])
            start += length
        return "-".join(parts)
