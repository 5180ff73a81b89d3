"""Cases of several files by their places: what a run selects, without a case being read for that."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import overload

from pytest_rageval.cases.canonical import content_hash
from pytest_rageval.io.compact.texts import TextTable
from pytest_rageval.model import EvalCase


class NamedCases(Sequence[EvalCase]):
    """Cases of which key, id and content hash are known without reading them."""

    @abstractmethod
    def names_at(self, place: int) -> tuple[str, str]:
        """Key and id of one case."""

    @abstractmethod
    def content_hash_at(self, place: int) -> str:
        """The content hash of one case."""


class SelectedCases(NamedCases):
    """Cases of several sequences, one after the other, all of them or those at some places."""

    def __init__(self, parts: Iterable[Sequence[EvalCase]] = (), places: Sequence[int] | None = None) -> None:
        self._parts = tuple(part for part in parts if len(part))
        self._starts = [0, *accumulate(map(len, self._parts))]
        self._places = range(self._starts[-1]) if places is None else places

    @classmethod
    def of(cls, cases: Sequence[EvalCase]) -> SelectedCases:
        """The list of these cases."""
        return cases if isinstance(cases, cls) else cls([cases])

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> EvalCase: ...
    @overload
    def __getitem__(self, place: slice) -> SelectedCases: ...
    def __getitem__(self, place: int | slice) -> EvalCase | SelectedCases:
        if isinstance(place, slice):
            return SelectedCases(self._parts, self._places[place])
        part, inner = self._found(self._places[place])
        return part[inner]

    def names(self) -> CaseNames:
        """Key and id of each case: no line is read for them."""
        return CaseNames(self)

    def keys(self) -> CaseKeys:
        """The key of each case, likewise."""
        return CaseKeys(self)

    def where(self, is_taken: Callable[[str], bool]) -> SelectedCases:
        """The cases whose keys are taken."""
        places = array("I", (self._places[at] for at, key in enumerate(self.keys()) if is_taken(key)))
        return self if len(places) == len(self) else SelectedCases(self._parts, places)

    def names_at(self, place: int) -> tuple[str, str]:
        """Key and id of one case."""
        part, inner = self._found(self._places[place])
        if isinstance(part, NamedCases):
            return part.names_at(inner)
        case = part[inner]
        return case.key, case.id

    def content_hash_at(self, place: int) -> str:
        """The content hash of one case."""
        part, inner = self._found(self._places[place])
        return part.content_hash_at(inner) if isinstance(part, NamedCases) else content_hash(part[inner])

    def contents(self) -> Iterator[tuple[str, str]]:
        """Key and content hash of each case, likewise."""
        return ((self.names_at(place)[0], self.content_hash_at(place)) for place in range(len(self)))

    def _found(self, place: int) -> tuple[Sequence[EvalCase], int]:
        """The part in which a place lies, and where there."""
        number = bisect_right(self._starts, place) - 1
        return self._parts[number], place - self._starts[number]


class CaseNames(Collection[tuple[str, str]]):
    """Key and id of the cases of a list, in their order."""

    def __init__(self, cases: SelectedCases) -> None:
        self._cases = cases

    def __len__(self) -> int:
        return len(self._cases)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return map(self._cases.names_at, range(len(self._cases)))

    def __contains__(self, names: object) -> bool:
        return any(each == names for each in self)


class CaseKeys(Collection[str]):
    """The keys of the cases of a list, in their order."""

    def __init__(self, cases: SelectedCases) -> None:
        self._cases = cases

    def __len__(self) -> int:
        return len(self._cases)

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self._cases.names())

    def __contains__(self, key: object) -> bool:
        return key in self._table

    @cached_property
    def _table(self) -> TextTable:
        return TextTable(self)
