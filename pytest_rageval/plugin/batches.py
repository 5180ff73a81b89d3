"""Items that are evaluated together."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import pytest

from pytest_rageval.plugin.items import PARTS, EvalFile, EvalItem, ItemBatch, fixture_definition


def plan_batches(items: Iterable[EvalItem]) -> None:
    """Put items, in their final order, into batches that are evaluated ahead; any other item is evaluated on demand.

    A batch ends where a fixture override makes another target or judge.
    """
    shared_by: dict[EvalFile, tuple[int, ...] | None] = {}

    def definitions_of(item: EvalItem) -> tuple[int, ...] | None:
        if item.file not in shared_by:  # the items of a file share their definitions
            shared_by[item.file] = _session_definitions(item)
        return shared_by[item.file]

    for definitions, group in groupby(filter(_will_be_asked, items), key=definitions_of):
        if definitions is not None:
            batch = ItemBatch()
            for item in group:
                item.batch = batch
                item.position = len(batch.cases)
                batch.cases.append(item.case)


def _will_be_asked(item: pytest.Item) -> bool:
    """Return True if the test surely runs: a case whose mark may skip it is never prefetched."""
    return not any(mark.name in ("skip", "skipif", "xfail") for mark in item.iter_markers())


def _session_definitions(item: pytest.Item) -> tuple[int, ...] | None:
    """Return what the item's target, judge and cache resolve to; None if one of them is not made once a session."""
    definitions = [fixture_definition(item, name) for name in PARTS]
    # A fixture of a function, say, is new for each test: an item evaluated ahead would not have its own.
    if any(getattr(definition, "scope", None) != "session" for definition in definitions):
        return None
    return tuple(map(id, definitions))
