"""Lines of a file that has been read before, each read again when it is asked for."""

from __future__ import annotations

from array import array
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from pytest_rageval.io.line_index import Place, line_at

HELD = 10_000
"""So many records of a file of lines are held in memory; the others are read again."""


class FileLines:
    """The lines of a file by number, from 1: eight bytes a line are held."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def text(self, number: int) -> str:
        """The line, without its end; OSError or ValueError where the file is no longer what it was."""
        if number >= len(self._offsets):
            raise ValueError(f"{self._path} has no line {number} any more")
        start, end = self._offsets[number - 1], self._offsets[number]
        return line_at(Place(self._path, start, end - start, number))

    @cached_property
    def _offsets(self) -> array[int]:
        """Where each line begins, and where the last one ends."""
        with self._path.open("rb") as file:
            return array("Q", accumulate(map(len, file), initial=0))
