"""In which spelling is a line written? One table of all keys, and the name of what a line makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from pytest_rageval.cases import anchors, ids, layers, reference
from pytest_rageval.cases.fields import COMMON, Field

FIELDS: Mapping[str, Field] = {**COMMON, **anchors.FIELDS, **layers.FIELDS, **reference.FIELDS, **ids.FIELDS}
"""Every key that a line may have."""

_MARKS: Mapping[str, Mapping[str, Field]] = {
    "anchors": anchors.FIELDS,
    "reference": reference.FIELDS,
    "ids": ids.FIELDS,
}


@lru_cache(maxsize=512)  # a file has a handful of combinations; all of them hold known keys only, so they are small
def spellings(given: tuple[str, ...], in_gold: tuple[str, ...]) -> tuple[str, ...]:
    """The spellings that a line combines, by the keys that are there and not null: none, one or several of anchors,
    layers, canonical, reference, ids.

    A `gold` object is of the layers spelling if it has a key that tells that spelling, or if nothing else on the line
    tells another one; with a key that only canonical cases have, it is canonical.
    """
    told = [name for name, keys in _MARKS.items() if not keys.keys().isdisjoint(given)]
    if layers.CANONICAL.keys() & in_gold:
        told.append("canonical")
    elif in_gold and (not told or layers.LAYERED.keys() & in_gold):
        told.append("layers")
    return tuple(told)
