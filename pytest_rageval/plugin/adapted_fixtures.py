"""What fixtures gave, as a target and a judge: each made once for the same objects, and closed at the end."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_rageval.errors import Problems
from pytest_rageval.judges import judge_from_object
from pytest_rageval.judges.judge import Judge
from pytest_rageval.judges.judge_spec import asked_judge
from pytest_rageval.plan import Plan
from pytest_rageval.prefetch import BackgroundLoop
from pytest_rageval.targets import target_from_object
from pytest_rageval.targets.target import Target


class AdaptedFixtures:
    """Targets and judges by the objects that `rag_client`, `rag_judge` and `rag_judge_cache` gave."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._pairs: dict[tuple[int, ...], tuple[tuple[object, ...], Target, Judge | None]] = {}

    def pair(self, client: object, judge: object, cache: object) -> tuple[Target, Judge | None]:
        """Target and judge of these objects; the same for the same ones."""
        key = (id(client), id(judge), id(cache))
        if key not in self._pairs:
            problems = Problems()
            target, cached_judge = problems.attempt(self._target, client), problems.attempt(self._judge, judge, cache)
            if problems or target is None:  # said outside of the handling of an error, which pytest would show too
                pytest.fail("; ".join(problems), pytrace=False)
            # The objects are kept, so that no later one can have the same id.
            self._pairs[key] = ((client, judge, cache), target, cached_judge)
        return self._pairs[key][1:]

    def close(self, loop: BackgroundLoop) -> None:
        """Close the targets that were made here around a function or a client; all others have owners."""
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
        return asked_judge(judge, cache, settings, self._plan.mask)
