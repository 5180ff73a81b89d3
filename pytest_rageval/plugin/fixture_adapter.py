"""Target, judge and cache of a session: the configured ones for our fixtures, and ours for what fixtures gave."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_rageval.errors import Problems, RagevalError, SettingsError
from pytest_rageval.judges import judge_from_object
from pytest_rageval.judges.cache.sqlite_cache import project_cache
from pytest_rageval.judges.judge import BaseJudge, JudgementCache
from pytest_rageval.judges.judge_spec import judge_with_cache
from pytest_rageval.run.ongoing_run import OngoingRun
from pytest_rageval.run.prepare import Preparation, make_target
from pytest_rageval.targets import target_from_object
from pytest_rageval.targets.target import BaseTarget, Target

NO_TARGET = (
    "no target: say which system to ask with --rageval-target, e.g. --rageval-target demo, "
    'or target = "http://localhost:8080" in [tool.rageval], or override the rag_client fixture'
)


class FixtureAdapter:
    """What passes between a session and its fixtures `rag_client`, `rag_judge` and `rag_judge_cache`.

    run    the run on whose loop targets and judges are used; None before it opens
    notes  those for the end of the run, to which targets, judges and caches add theirs
    """

    def __init__(self, prepared: Preparation, notes: list[str]) -> None:
        self.run: OngoingRun | None = None
        self._prepared = prepared
        self.notes = notes
        self._target: BaseTarget | None = None
        self._pairs: dict[tuple[int, ...], tuple[tuple[object, ...], BaseTarget, BaseJudge | None]] = {}

    # ── for our fixtures ──────────────────────────────────────────────────────────────────────────────────────

    def make_target(self) -> BaseTarget:
        """Return the configured target, made once; RagevalError if it cannot be made."""
        if self._target is None:
            if self._prepared.settings.target is None:
                raise SettingsError(NO_TARGET)
            self._target = make_target(self._prepared.project)
        return self._target

    def target(self) -> Iterator[BaseTarget]:
        """Lend the configured target to the session."""
        problems: tuple[str, ...] = ()
        try:
            target = self.make_target()
        except RagevalError as error:
            problems = error.problems
        if problems:  # outside of the exception handler, whose error pytest would show too
            pytest.fail("; ".join(problems), pytrace=False)
        yield target
        self._take_back(target)

    def judge(self) -> Iterator[BaseJudge | None]:
        """Lend the configured judge to the session, if there is one."""
        judge = self._prepared.judge
        yield judge
        if judge is not None:
            self._take_back(judge)

    def cache(self) -> Iterator[JudgementCache | None]:
        """Lend the judge cache to the session, unless it is off."""
        cache = project_cache(self._prepared.settings, self._prepared.project.judge_cache_file)
        yield cache
        if cache is not None:
            cache.close()
            self.notes += cache.notes

    def _take_back(self, part: BaseTarget | BaseJudge) -> None:
        """Close a target or judge at the end, on the loop on which it was used."""
        if self.run is not None:
            self.run.release(part)
        else:
            asyncio.run(part.aclose())
        self.notes += part.notes

    # ── for what fixtures gave ────────────────────────────────────────────────────────────────────────────────

    def target_and_judge(self, client: object, judge: object, cache: object) -> tuple[BaseTarget, BaseJudge | None]:
        """Return the target and judge for these objects; the same for the same objects."""
        # By identity: objects of a project need not be hashable or comparable.
        key = (id(client), id(judge), id(cache))
        if key not in self._pairs:
            problems = Problems()
            target = problems.attempt(self._adapted_target, client)
            cached_judge = problems.attempt(self._adapted_judge, judge, cache)
            if problems or target is None:  # outside of an exception handler, whose error pytest would show too
                pytest.fail("; ".join(problems), pytrace=False)
            # The objects are kept, so that no later one can have the same id.
            self._pairs[key] = ((client, judge, cache), target, cached_judge)
        return self._pairs[key][1:]

    def close(self) -> None:
        """Close the targets that were made here around a function or a client; safe to call twice."""
        pairs = self._pairs
        self._pairs = {}
        if self.run is not None:
            # One that was a target before is closed by its owner.
            made = [target for (client, *_), target, _ in pairs.values() if not isinstance(client, Target)]
            self.run.release(*made)

    def _adapted_target(self, client: object) -> BaseTarget:
        settings = self._prepared.settings
        return target_from_object(client, timeout=settings.timeout, max_bytes=settings.max_response_bytes)

    def _adapted_judge(self, fixture_value: object, cache: Any) -> BaseJudge | None:
        settings = self._prepared.settings
        judge = None if settings.retrieval_only else judge_from_object(fixture_value)
        return None if judge is None else judge_with_cache(judge, cache, settings, self._prepared.mask)
