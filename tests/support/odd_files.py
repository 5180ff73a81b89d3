"""One shape for the tables of odd files: what a file holds, how many cases it gives, and what is said of the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pytest

OddRow = tuple[str, bytes, int | None, str]
"""A row of such a table, with the fields of an OddFile."""


class OddFile(NamedTuple):
    """One odd file.

    name   of the file, or what is odd about it
    cases  how many it gives; None if it is refused as a whole
    words  of its first problem; empty if there is none
    """

    name: str
    content: bytes
    cases: int | None
    words: str


def each_of(table: Iterable[OddRow]) -> pytest.MarkDecorator:
    """Give a test each file of a table as `odd`."""
    files = [OddFile(*row) for row in table]
    return pytest.mark.parametrize("odd", files, ids=[file.name for file in files])
