"""In which spelling is a line written? One table of all keys, and the name of what a line makes of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from typing import NamedTuple

from pytest_rageval.cases.fields import COMMON, CaseDraft, Field
from pytest_rageval.cases.spellings import anchors, ids, layers, reference


class Spelling(NamedTuple):
    """One way to write cases.

    fields   the keys that tell it
    settle   what it says beyond single keys: fills in what follows from others, blames what contradicts them
    settled  the parts that `settle` begins with: a case that gives none of them has nothing to settle
    """

    fields: Mapping[str, Field]
    settle: Callable[[CaseDraft], None]
    settled: Set[str]


SPELLINGS: Mapping[str, Spelling] = {
    "reference": Spelling(reference.FIELDS, reference.settle_reference, reference.SETTLED),
    "layers": Spelling(layers.FIELDS, layers.settle_layers, layers.SETTLED),
    "ids": Spelling(ids.FIELDS, ids.settle_ids, ids.SETTLED),
    "anchors": Spelling(anchors.FIELDS, anchors.settle_anchors, anchors.SETTLED),
}
"""In the order in which they are settled: the ids follow from the layers."""

FIELDS: Mapping[str, Field] = {**COMMON, **anchors.FIELDS, **layers.FIELDS, **reference.FIELDS, **ids.FIELDS}
"""Every key that a line may have."""


def spelling_of(given: Collection[str], in_gold: Collection[str]) -> tuple[str, ...]:
    """The spellings that a line combines, by the keys of the line and of its `gold` that are there and not null: none,
    one or several of anchors, reference, ids, layers, canonical.

    A `gold` object is of the layers spelling if it has a key that tells that spelling, or if nothing else on the line
    tells another one; with a key that only canonical cases have, it is canonical.
    """
    told = [name for name in ("anchors", "reference", "ids") if not SPELLINGS[name].fields.keys().isdisjoint(given)]
    if not layers.CANONICAL.keys().isdisjoint(in_gold):
        told.append("canonical")
    elif in_gold and (not told or not layers.LAYERED.keys().isdisjoint(in_gold)):
        told.append("layers")
    return tuple(told)
