"""A judge behind a cache."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Literal
from weakref import WeakValueDictionary

from pytest_rageval.errors import JudgeError
from pytest_rageval.io.masking import Mask
from pytest_rageval.judges.cache.cache_key import KeyParts, difference_line, key_parts, one_line
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache
from pytest_rageval.judges.checked_judge import NO_MASK, CheckedJudge, TimeLimit, judgement_problem
from pytest_rageval.judges.judge import BaseJudge, JudgementCache
from pytest_rageval.model import Judgement, JudgeRequest

Mode = Literal["use", "refresh", "replay", "read"]
"""use: read the cache, else judge and store. refresh: judge and store. replay: only read the cache. read: read the
cache, else judge."""


class CachedJudge(CheckedJudge):
    """A judge with a cache, for one event loop at a time.

    A stored judgement is marked `cached`, with its original cost and time. Of equal requests at the same time, one is
    judged. Judgements are checked and masked before they are returned or stored; errors are never stored. A judge's own
    `sampling`, a mapping, becomes part of the key. `served` has the names in stored judgements, too.
    """

    def __init__(
        self,
        judge: BaseJudge,
        cache: JudgementCache,
        mode: Mode = "use",
        mask: Mask = NO_MASK,
        limit: TimeLimit | None = None,
    ) -> None:
        super().__init__(judge, mask, limit)
        self._cache = cache
        self._mode = mode
        if mode == "replay":  # nothing is asked: reading the cache never waits
            self.answers_at_once = True
            self.judge_together = self.judgements
        self._unwritten: list[tuple[str, Judgement, KeyParts]] = []
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """One a request that is being judged, which equal requests wait for."""

    async def judge(self, request: JudgeRequest) -> Judgement:
        """Return the judgement; in `replay`, raise JudgeError of kind cache_miss if it is not stored."""
        (result,) = await self.judgements([request])
        if isinstance(result, JudgeError):
            raise result
        return result

    async def judgements(self, requests: Sequence[JudgeRequest]) -> list[Judgement | JudgeError]:
        """Return the judgement or the error of each request; together, ask for those that are not stored."""
        cache = self._cache
        keyed = [(request, key_parts(request, self.identity, self.sampling)) for request in requests]
        # By key: equal requests of one answer are judged once.
        missing = {parts.key: (request, parts) for request, parts in keyed}
        keys = [*missing]
        results: dict[str, Judgement | JudgeError] = self._stored(cache, missing)
        if self._mode == "replay":
            results |= {key: self._miss(key, parts) for key, (_, parts) in missing.items()}
        elif missing:
            async with AsyncExitStack() as locks:
                waited = False
                # Sorted: two answers that lock the same requests in one order cannot wait for each other.
                for key in sorted(missing):
                    lock = self._locks.setdefault(key, asyncio.Lock())
                    waited |= lock.locked()
                    await locks.enter_async_context(lock)
                if waited:
                    # An equal request was judged meanwhile, unless it failed.
                    results |= self._stored(cache, missing)
                results |= await self._asked_and_stored(cache, missing)
        return [results[key] for key in keys]

    async def _asked_and_stored(
        self, cache: JudgementCache, missing: Mapping[str, tuple[JudgeRequest, KeyParts]]
    ) -> dict[str, Judgement | JudgeError]:
        """Ask for the missing judgements, and store those that are no errors."""
        answers = await super().judgements([request for request, _ in missing.values()])
        results: dict[str, Judgement | JudgeError] = {}
        new: list[tuple[str, Judgement, KeyParts]] = []
        for (key, (_, parts)), answer in zip(missing.items(), answers, strict=True):
            results[key] = answer
            if isinstance(answer, Judgement):
                new.append((key, answer, parts))
        if self._mode != "read":
            await self._store(cache, new)
        return results

    def _stored(
        self, cache: JudgementCache, missing: dict[str, tuple[JudgeRequest, KeyParts]]
    ) -> dict[str, Judgement | JudgeError]:
        """Take the requests with a stored judgement out of `missing`, and return those judgements."""
        stored: dict[str, Judgement | JudgeError] = {}
        if self._mode == "refresh":
            return stored
        for key in list(missing):
            judgement = cache.get(key)
            # The cache or its file may be from elsewhere: an invalid judgement is judged again.
            if judgement is not None and judgement_problem(judgement) is None:
                stored[key] = replace(self._mask.value(judgement), cached=True)
                self._note_served(judgement)
                del missing[key]
        return stored

    async def _store(self, cache: JudgementCache, new: Sequence[tuple[str, Judgement, KeyParts]]) -> None:
        """Store judgements in one write with those of the same moment; they are stored when this returns."""
        if not isinstance(cache, SqliteCache):  # a user's own
            for key, judgement, _ in new:
                cache.put(key, judgement)
        elif self.answers_at_once:
            cache.put_all(new)
        else:
            self._unwritten += new
            try:
                # Other judgements that are ready now get their turn, and are written along.
                await asyncio.sleep(0)
            finally:  # the first to resume writes for all, even if it is cancelled
                if self._unwritten:
                    together = self._unwritten
                    self._unwritten = []
                    cache.put_all(together)

    def _miss(self, key: str, parts: KeyParts) -> JudgeError:
        named = {
            "rubric": parts.rubric,
            "prompt_version": parts.prompt_version,
            "model": parts.model,
            "trial": parts.trial,
            "answer": str(parts.answer)[:12],
            "contexts": str(parts.contexts)[:12],
            "key": key[:12],
        }
        listed = ", ".join(f"{name} {one_line(value)}" for name, value in named.items())
        message = f"no judgement is stored for question '{one_line(parts.asked)}' ({listed})"
        if isinstance(self._cache, SqliteCache):
            nearest = self._cache.nearest(parts)
            if nearest is None:
                message += "; none is for this rubric"
            else:
                message += f"; nearest: {difference_line(nearest, parts)}"
        return JudgeError("cache_miss", f"{message}; run once with judge cache mode 'use'")
