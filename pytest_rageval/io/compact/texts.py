"""Many texts in one piece of memory, by number, and the number of each."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

_FEWEST = 8
"""Slots of a table that begins; always a power of two, of which at most two thirds are taken."""


class TextColumn(Sequence[str]):
    """Texts in the order in which they came: their bytes and eight beside each, where an object takes 50 to 60."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._bytes = bytearray()
        self._ends = array("Q", [0])
        for text in texts:
            self.append(text)

    def append(self, text: str) -> None:
        self._bytes += _encoded(text)
        self._ends.append(len(self._bytes))

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        return self._encoded_at(range(len(self))[number]).decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(len(self)))

    def _encoded_at(self, number: int) -> bytearray:
        return self._bytes[self._ends[number] : self._ends[number + 1]]


class TextTable(TextColumn):
    """Texts, each once: a set that keeps their order, in some ten bytes a text beside a column's."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._slots = array("I", bytes(4 * _FEWEST))
        """By hash, the next free one where that is taken: the number of a text and one more, 0 of none."""
        super().__init__()
        for text in texts:
            self.add(text)

    def add(self, text: str) -> int:
        """The number of a text, the next one where it is new."""
        slot = self._slot(text)
        if (taken := self._slots[slot]) > 0:
            return taken - 1
        number = len(self)
        self.append(text)
        self._slots[slot] = number + 1
        if 3 * len(self) > 2 * len(self._slots):
            self._grow()
        return number

    def number(self, text: str) -> int | None:
        """The number of a text; None where it is not there."""
        taken = self._slots[self._slot(text)]
        return taken - 1 if taken else None

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and self._slots[self._slot(text)] > 0

    def _slot(self, text: str) -> int:
        """Where the text is noted, or would be."""
        encoded, slots = _encoded(text), self._slots
        last = len(slots) - 1
        slot = hash(text) & last
        while (taken := slots[slot]) and self._encoded_at(taken - 1) != encoded:
            slot = (slot + 1) & last
        return slot

    def _grow(self) -> None:
        last = 2 * len(self._slots) - 1
        slots = array("I", bytes(4 * (last + 1)))
        for number, text in enumerate(self, start=1):
            slot = hash(text) & last
            while slots[slot]:
                slot = (slot + 1) & last
            slots[slot] = number
        self._slots = slots


class TextNumbers:
    """A number for each of many texts, below 2⁶⁴: what a dict takes 140 bytes a text for."""

    def __init__(self) -> None:
        self._texts = TextTable()
        self._numbers = array("Q")

    def __setitem__(self, text: str, number: int) -> None:
        place = self._texts.add(text)
        if place < len(self._numbers):
            self._numbers[place] = number
        else:
            self._numbers.append(number)

    def __getitem__(self, text: str) -> int:
        place = self._texts.number(text)
        if place is None:
            raise KeyError(text)
        return self._numbers[place]

    def get(self, text: str) -> int | None:
        """The number of a text; None where it has none."""
        place = self._texts.number(text)
        return None if place is None else self._numbers[place]

    def __contains__(self, text: object) -> bool:
        return text in self._texts

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)


def _encoded(text: str) -> bytes:
    # Lone surrogates come with the names of files that are not UTF-8.
    return text.encode("utf-8", "surrogatepass")
