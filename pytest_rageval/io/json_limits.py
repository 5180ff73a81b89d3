"""Limits of free-form JSON: what no type describes must still fit into a record."""

from __future__ import annotations

from itertools import chain
from typing import Any

from pytest_rageval.model import Json

MAX_DEPTH = 64
"""How deep free-form values may nest."""
MAX_BITS = 1024
"""Of a whole number: no larger one has a float."""


def limits_broken(value: Json, max_depth: int = MAX_DEPTH, max_bits: float = MAX_BITS) -> str:
    """What of a strict JSON value no record can hold, as the end of a sentence; nothing where all can be held."""
    level: list[Any] = [[value]]
    for _ in range(max_depth + 1):
        deeper: list[Any] = []
        for inner in chain.from_iterable(outer.values() if type(outer) is dict else outer for outer in level):
            kind = type(inner)
            if kind is dict or kind is list:
                deeper.append(inner)
            elif kind is int and inner.bit_length() > max_bits:
                return "holds a number of more than 300 digits"
        if not deeper:
            return ""
        level = deeper
    return f"is nested deeper than {max_depth} levels"
