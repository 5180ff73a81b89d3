"""Compressed data inside a page: lines of base64, each of which the page's script inflates when it needs it."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

BODIES = 96
"""Cases in a block of rendered fragments: to open a case, its block is inflated, 1 MB in 1 ms. Each block holds what
pages have in common: with half as many cases a block, the same size takes level 8, and a quarter more time.
"""
TEXTS = 2048
"""Cases in a block of questions, answers and reasons."""
LOOSE, LEVEL = 4, 6
"""Of zlib. At 8 fragments are 3 % smaller and take a quarter longer; words and numbers 1 %, and twice as long. At 4
these are a tenth larger, in less than half of the time."""
MANY = 20_000
"""Cases of a list from which on time counts for more than size."""


def level_of(cases: int) -> int:
    """How closely the list of so many cases is packed."""
    return LEVEL if cases < MANY else LOOSE


class DataBlocks:
    """Lines in the order in which they were added; a line is named by its number."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, value: Any, level: int = LEVEL) -> int:
        """Add a JSON value; its line."""
        self.lines.append(_packed(value, level))
        return len(self.lines) - 1

    def replace(self, line: int, value: Any, level: int = LEVEL) -> None:
        self.lines[line] = _packed(value, level)

    def add_parts(self, values: Sequence[Any], size: int, level: int = LEVEL) -> list[int]:
        """Add a list in blocks of so many; the lines."""
        return [self.add(values[start : start + size], level) for start in range(0, len(values), size)]


def _packed(value: Any, level: int = LEVEL) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return b64encode(zlib.compress(text.encode(), level)).decode("ascii")
