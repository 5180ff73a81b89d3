"""Items that may be prefetched together, and the target and judge that their fixtures gave."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import pytest

from pytest_rageval.engine import Observed
from pytest_rageval.errors import Problems
from pytest_rageval.judges import judge_from_object
from pytest_rageval.judges.judge import Judge
from pytest_rageval.judges.judge_spec import judge_with_cache
from pytest_rageval.model import EvalCase, Trial
from pytest_rageval.plan import Plan
from pytest_rageval.plugin.items import EvalItem, fixture_definition
from pytest_rageval.prefetch import BackgroundLoop, Batch, Prefetcher
from pytest_rageval.targets import target_from_object
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
        """Take the final order of the items to prefetch; any other item is asked on demand."""
        for definitions, group in groupby(filter(_will_be_asked, items), key=_session_definitions):
            if definitions is not None:
                batch = list(group)
                self._places.update((item, (batch, position)) for position, item in enumerate(batch))

    def fixtures_of(self, item: EvalItem) -> Mapping[str, object]:
        """Return what target, judge and cache were for the items of the same batch before."""
        return self._fixtures.get(id(self._places[item][0]), {}) if item in self._places else {}

    def observed(self, item: EvalItem, trials: Sequence[Trial], target: Target, judge: Judge | None) -> list[Observed]:
        """Return the observations of this item's case, by trial."""
        if item not in self._places or item.attempts > 1:
            return self._prefetcher.now(trials, target, judge)
        batch, position = self._places[item]
        if id(batch) not in self._running:
            self._fixtures[id(batch)] = {name: item.funcargs[name] for name in PARTS}
            all_trials = [self._trials(each.case) for each in batch]
            self._running[id(batch)] = Batch(self._prefetcher, all_trials, target, judge)
        return self._running[id(batch)].observed(position)


def _will_be_asked(item: pytest.Item) -> bool:
    """Return True if the test surely runs: a case whose mark may skip it is never prefetched."""
    return not any(mark.name in ("skip", "skipif", "xfail") for mark in item.iter_markers())


def _session_definitions(item: pytest.Item) -> tuple[int, ...] | None:
    """Return what the item's target, judge and cache resolve to; None if one of them is not made once a session."""
    definitions = [fixture_definition(item, name) for name in PARTS]
    if any(getattr(definition, "scope", None) != "session" for definition in definitions):
        return None
    return tuple(id(definition) for definition in definitions)


class AdaptedFixtures:
    """Targets and judges by the objects that `rag_client`, `rag_judge` and `rag_judge_cache` gave."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._pairs: dict[tuple[int, ...], tuple[tuple[object, ...], Target, Judge | None]] = {}

    def target_and_judge(self, client: object, judge: object, cache: object) -> tuple[Target, Judge | None]:
        """Return the target and judge for these objects; the same for the same objects."""
        key = (id(client), id(judge), id(cache))
        if key not in self._pairs:
            problems = Problems()
            target, cached_judge = problems.attempt(self._target, client), problems.attempt(self._judge, judge, cache)
            if problems or target is None:  # outside of an exception handler, whose error pytest would show too
                pytest.fail("; ".join(problems), pytrace=False)
            # The objects are kept, so that no later one can have the same id.
            self._pairs[key] = ((client, judge, cache), target, cached_judge)
        return self._pairs[key][1:]

    def close(self, loop: BackgroundLoop) -> None:
        """Close the targets that were made here around a function or a client."""
        while self._pairs:
            _, ((client, *_), target, _judge) = self._pairs.popitem()
            if target is not client and not loop.is_blocked:
                loop.run(target.aclose())

    def _target(self, client: object) -> Target:
        settings = self._plan.settings
        return target_from_object(client, timeout=settings.timeout, max_bytes=settings.max_response_bytes)

    def _judge(self, fixture_value: object, cache: Any) -> Judge | None:
        settings = self._plan.settings
        judge = None if settings.retrieval_only else judge_from_object(fixture_value)
        if judge is None:
            return None
        return judge_with_cache(judge, cache, settings, self._plan.mask)
