"""Many texts in one piece of memory, by number, and where each stands."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

from pytest_rageval.io.compact.columns import MadeSequence

_FEWEST = 8
"""Slots of a table that begins; always a power of two, of which at most two thirds are taken."""


class TextColumn(MadeSequence[str]):
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

    def _at(self, place: int) -> str:
        return self.encoded(place).decode("utf-8", "surrogatepass")

    def encoded(self, number: int) -> bytearray:
        """The bytes of a text."""
        ends = self._ends
        return self._bytes[ends[number] : ends[number + 1]]


class TextIndex:
    """Where texts stand in a column: some ten bytes each."""

    def __init__(self, column: TextColumn) -> None:
        self._column = column
        self._noted = 0
        self._slots = array("I", bytes(4 * _FEWEST))
        """By hash, the next free one where that is taken: a place and one more, 0 of none."""

    def note_last(self, text: str) -> None:
        """Take the text that was appended last; all before it are taken."""
        self._noted += 1
        if 3 * self._noted > 2 * len(self._slots):
            self._slots = array("I", bytes(8 * len(self._slots)))
            for place, earlier in enumerate(self._column):
                self._take(place, earlier)
        else:
            self._take(self._noted - 1, text)

    def first(self, text: str) -> int | None:
        """Where a text stands first; None where it does not."""
        encoded, slots, column = _encoded(text), self._slots, self._column
        last = len(slots) - 1
        slot = hash(text) & last
        while taken := slots[slot]:
            if column.encoded(taken - 1) == encoded:
                return taken - 1
            slot = (slot + 1) & last
        return None

    def places(self, text: str) -> Iterator[int]:
        """Where a text stands."""
        encoded, slots, column = _encoded(text), self._slots, self._column
        last = len(slots) - 1
        slot = hash(text) & last
        while taken := slots[slot]:
            if column.encoded(taken - 1) == encoded:
                yield taken - 1
            slot = (slot + 1) & last

    def _take(self, place: int, text: str) -> None:
        slots = self._slots
        last = len(slots) - 1
        slot = hash(text) & last
        while slots[slot]:
            slot = (slot + 1) & last
        slots[slot] = place + 1


class TextTable(TextColumn):
    """Texts, each once: a set that keeps their order."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        super().__init__()
        self._index = TextIndex(self)
        for text in texts:
            self.add(text)

    def add(self, text: str) -> int:
        """The number of a text, the next one where it is new."""
        number = self.number(text)
        if number is None:
            number = len(self)
            self.append(text)
            self._index.note_last(text)
        return number

    def number(self, text: str) -> int | None:
        """The number of a text; None where it is not there."""
        return self._index.first(text)

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and self.number(text) is not None


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
