"""Items that may be asked ahead together: those that follow each other with the same target and judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

import pytest

from pytest_rageval.engine import Observed
from pytest_rageval.judges.judge import Judge
from pytest_rageval.model import EvalCase, Trial
from pytest_rageval.plugin.items import EvalItem, fixture_definition
from pytest_rageval.prefetch import Batch, Prefetcher
from pytest_rageval.targets.target import Target

PARTS = ("rag_client", "rag_judge", "rag_judge_cache")


class Batches:
    """The session's items, cut where a fixture override makes another target or judge."""

    def __init__(self, prefetcher: Prefetcher, trials: Callable[[EvalCase], list[Trial]]) -> None:
        self._prefetcher, self._trials = prefetcher, trials
        self._places: dict[EvalItem, tuple[list[EvalItem], int]] = {}
        self._running: dict[int, Batch] = {}
        self._fixtures: dict[int, Mapping[str, object]] = {}

    def plan(self, items: Sequence[EvalItem]) -> None:
        """Take the final order of the items to ask; any other item is asked when it comes to that."""
        for definitions, group in groupby(filter(_will_be_asked, items), key=_session_definitions):
            if definitions is not None:
                batch = list(group)
                self._places.update((item, (batch, position)) for position, item in enumerate(batch))

    def fixtures_of(self, item: EvalItem) -> Mapping[str, object]:
        """Return what target, judge and cache were for the items of the same batch before."""
        return self._fixtures.get(id(self._places[item][0]), {}) if item in self._places else {}

    def observed(self, item: EvalItem, trials: Sequence[Trial], target: Target, judge: Judge | None) -> list[Observed]:
        """What came of asking and judging the trials of this item's case."""
        if item not in self._places or item.attempts > 1:
            return self._prefetcher.now(trials, target, judge)
        batch, position = self._places[item]
        if id(batch) not in self._running:
            self._fixtures[id(batch)] = {name: item.funcargs[name] for name in PARTS}
            all_trials = [self._trials(each.case) for each in batch]
            self._running[id(batch)] = Batch(self._prefetcher, all_trials, target, judge)
        return self._running[id(batch)].observed(position)


def _will_be_asked(item: pytest.Item) -> bool:
    """A mark may skip the test, or not run it: its case is asked when it comes to that, never ahead."""
    return not any(mark.name in ("skip", "skipif", "xfail") for mark in item.iter_markers())


def _session_definitions(item: pytest.Item) -> tuple[int, ...] | None:
    """What this item's target, judge and cache resolve to; None where one of them is not made once for the session."""
    definitions = [fixture_definition(item, name) for name in PARTS]
    if any(getattr(definition, "scope", None) != "session" for definition in definitions):
        return None
    return tuple(id(definition) for definition in definitions)
