"""Which of the coming items may be asked ahead: those that follow each other with the same target and judge."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest

from pytest_rageval.engine import Observed
from pytest_rageval.errors import RagevalError
from pytest_rageval.judges import judge_from_object
from pytest_rageval.judges.cache.cached_judge import CachedJudge
from pytest_rageval.judges.judge import Judge
from pytest_rageval.plugin.items import EvalItem, fixture_definition
from pytest_rageval.prefetch import Stretch
from pytest_rageval.targets import target_from_object
from pytest_rageval.targets.target import Target

if TYPE_CHECKING:
    from pytest_rageval.plugin.session import EvalSession

PARTS = ("rag_client", "rag_judge", "rag_judge_cache")


class Stretches:
    """The session's items, cut where a fixture override makes another target or judge."""

    def __init__(self, run: EvalSession) -> None:
        self._run = run
        self._places: dict[EvalItem, tuple[list[EvalItem], int]] = {}
        self._running: dict[int, Stretch] = {}
        self._known: dict[tuple[int, ...], tuple[tuple[object, ...], Target, Judge | None]] = {}

    def foresee(self, items: list[pytest.Item]) -> None:
        """Take the final order of the session's items. A worker of xdist does not know its own: it asks on demand."""
        evaluated = [item for item in items if isinstance(item, EvalItem) and not self._run.is_done(item.case)]
        for definitions, group in groupby(evaluated, key=_session_definitions):
            if definitions is not None:
                together = list(group)
                self._places.update((item, (together, position)) for position, item in enumerate(together))

    def observed(self, item: EvalItem) -> list[Observed]:
        """What came of asking and judging this item's case, by trial."""
        target, judge = self.parts(*(item.funcargs[name] for name in PARTS))
        if item not in self._places or item.attempts > 1:
            return self._run.ahead.now(self._run.trials(item.case), target, judge)
        group, position = self._places[item]
        if id(group) not in self._running:
            trials = [self._run.trials(one.case) for one in group]
            self._running[id(group)] = Stretch(self._run.ahead, trials, target, judge)
        return self._running[id(group)].observed(position)

    def parts(self, client: object, judge: object, cache: object) -> tuple[Target, Judge | None]:
        """Target and judge of what the fixtures gave; the same for the same objects."""
        key = (id(client), id(judge), id(cache))
        if key not in self._known:
            try:
                target, made = self._made(client, judge, cache)
            except RagevalError as error:
                pytest.fail("; ".join(error.problems), pytrace=False)
            # The objects are kept, so that no later one can have the same id.
            self._known[key] = ((client, judge, cache), target, made)
        return self._known[key][1:]

    def close(self) -> None:
        """Close the targets that were made here around a function or a client; all others have owners."""
        for (client, *_), target, _judge in self._known.values():
            if target is not client:
                self._run.ahead.run(target.aclose())
        self._known.clear()

    def _made(self, client: object, judge: object, cache: Any) -> tuple[Target, Judge | None]:
        settings = self._run.settings
        target = target_from_object(client, timeout=settings.timeout)
        made = None if settings.retrieval_only else judge_from_object(judge)
        if made is not None:
            # In mode `off` as well: it checks what a judge says before anybody sees it.
            mode = settings.judge_cache if cache is not None else "off"
            made = CachedJudge(made, cache, mode, self._run.plan.mask)
        return target, made


def _session_definitions(item: EvalItem) -> tuple[int, ...] | None:
    """What this item's target, judge and cache resolve to; None where one of them is not made once for the session."""
    definitions = [fixture_definition(item, name) for name in PARTS]
    if any(getattr(one, "scope", None) != "session" for one in definitions):
        return None
    return tuple(id(one) for one in definitions)
