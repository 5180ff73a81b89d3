"""Items that may be evaluated together, and the target and judge that their fixtures gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pytest

from pytest_rageval.errors import Problems
from pytest_rageval.judges import judge_from_object
from pytest_rageval.judges.judge import Judge
from pytest_rageval.judges.judge_spec import judge_with_cache
from pytest_rageval.plan import Plan
from pytest_rageval.plugin.items import EvalFile, EvalItem, fixture_definition
from pytest_rageval.session import CaseBlocks, EvaluatedCase, RunSession
from pytest_rageval.targets import target_from_object
from pytest_rageval.targets.target import Target

PARTS = ("rag_client", "rag_judge", "rag_judge_cache")


@dataclass
class ItemBatch:
    """Consecutive items with the same target, judge and cache; `fixtures` are these, once the first item has them."""

    items: Sequence[EvalItem]
    blocks: CaseBlocks | None = None
    fixtures: Mapping[str, object] = field(default_factory=dict)


class Batches:
    """The session's items, divided where a fixture override makes another target or judge."""

    def __init__(self, run: RunSession) -> None:
        self._run = run
        self._places: dict[EvalItem, tuple[ItemBatch, int]] = {}
        self._definitions: dict[EvalFile, tuple[int, ...] | None] = {}

    def plan(self, items: Sequence[EvalItem]) -> None:
        """Take the final order of the items to evaluate ahead; any other item is evaluated on demand."""
        for definitions, group in groupby(filter(_will_be_asked, items), key=self._definitions_of):
            if definitions is not None:
                batch = ItemBatch(list(group))
                self._places.update((item, (batch, position)) for position, item in enumerate(batch.items))

    def _definitions_of(self, item: EvalItem) -> tuple[int, ...] | None:
        """Return the fixture definitions of the item's file, which its items share."""
        if item.file not in self._definitions:
            self._definitions[item.file] = _session_definitions(item)
        return self._definitions[item.file]

    def fixtures_of(self, item: EvalItem) -> Mapping[str, object]:
        """Return what target, judge and cache were for the items of the same batch before."""
        return self._places[item][0].fixtures if item in self._places else {}

    def evaluated(self, item: EvalItem, target: Target, judge: Judge | None) -> EvaluatedCase:
        """Return the evaluated case of this item."""
        run = self._run
        if item not in self._places or item.attempts > 1:
            trials = run.trials(item.case)
            return run.evaluated(trials, run.prefetcher.now(trials, target, judge), item.attempts)
        batch, position = self._places[item]
        if batch.blocks is None:
            batch.fixtures = {name: item.funcargs[name] for name in PARTS}
            batch.blocks = CaseBlocks(run, [each.case for each in batch.items], target, judge)
        return batch.blocks.case(position)


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

    def taken_targets(self) -> list[Target]:
        """Return, and forget, the targets that were made here around a function or a client."""
        pairs, self._pairs = self._pairs, {}
        return [target for (client, *_), target, _ in pairs.values() if target is not client]

    def _target(self, client: object) -> Target:
        settings = self._plan.settings
        return target_from_object(client, timeout=settings.timeout, max_bytes=settings.max_response_bytes)

    def _judge(self, fixture_value: object, cache: Any) -> Judge | None:
        settings = self._plan.settings
        judge = None if settings.retrieval_only else judge_from_object(fixture_value)
        return None if judge is None else judge_with_cache(judge, cache, settings, self._plan.mask)
