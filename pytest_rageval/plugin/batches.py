"""Items that are evaluated together, and the target and judge that their fixtures gave."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import pytest

from pytest_rageval.errors import Problems
from pytest_rageval.judges import judge_from_object
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.judges.judge_spec import judge_with_cache
from pytest_rageval.plugin.items import PARTS, EvalFile, EvalItem, ItemBatch, fixture_definition
from pytest_rageval.run.plan import Plan
from pytest_rageval.targets import target_from_object
from pytest_rageval.targets.target import BaseTarget, Target


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
                item.batch, item.position = batch, len(batch.cases)
                batch.cases.append(item.case)


def _will_be_asked(item: pytest.Item) -> bool:
    """Return True if the test surely runs: a case whose mark may skip it is never prefetched."""
    return not any(mark.name in ("skip", "skipif", "xfail") for mark in item.iter_markers())


def _session_definitions(item: pytest.Item) -> tuple[int, ...] | None:
    """Return what the item's target, judge and cache resolve to; None if one of them is not made once a session."""
    definitions = [fixture_definition(item, name) for name in PARTS]
    if any(getattr(definition, "scope", None) != "session" for definition in definitions):
        return None
    return tuple(map(id, definitions))


class AdaptedFixtures:
    """Targets and judges by the objects that `rag_client`, `rag_judge` and `rag_judge_cache` gave."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._pairs: dict[tuple[int, ...], tuple[tuple[object, ...], BaseTarget, BaseJudge | None]] = {}

    def target_and_judge(self, client: object, judge: object, cache: object) -> tuple[BaseTarget, BaseJudge | None]:
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

    def taken_targets(self) -> list[BaseTarget]:
        """Return, and forget, the targets that were made here around a function or a client."""
        pairs, self._pairs = self._pairs, {}
        # One that was a target before is closed by its owner.
        return [target for (client, *_), target, _ in pairs.values() if not isinstance(client, Target)]

    def _target(self, client: object) -> BaseTarget:
        settings = self._plan.settings
        return target_from_object(client, timeout=settings.timeout, max_bytes=settings.max_response_bytes)

    def _judge(self, fixture_value: object, cache: Any) -> BaseJudge | None:
        settings = self._plan.settings
        judge = None if settings.retrieval_only else judge_from_object(fixture_value)
        return None if judge is None else judge_with_cache(judge, cache, settings, self._plan.mask)
