"""A judge behind a cache."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Literal
from weakref import WeakValueDictionary

from pytest_rageval.errors import JudgeError, SettingsError
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.messages import shown_value
from pytest_rageval.judges.cache.cache_key import KeyParts, difference_line, key_parts, one_line
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache
from pytest_rageval.judges.judge import (
    Judge,
    JudgementCache,
    identity_of,
    is_local,
    judges_at_once,
    served_model,
)
from pytest_rageval.model import NOTHING, Json, Judgement, JudgeRequest
from pytest_rageval.text import excerpt

NO_MASK = Mask(())
Mode = Literal["use", "refresh", "off", "replay", "read"]
"""use: read the cache, else judge and store. refresh: judge and store. off: judge. replay: only read the cache.
read: read the cache, else judge."""


class CachedJudge:
    """A `Judge` with a cache, for one event loop at a time.

    A stored judgement is marked `cached`, with its original cost and time. Of equal requests at the same time, one is
    judged. A local judge ignores the cache. Judgements are checked and masked before they are returned or stored;
    errors are never stored. A judge's own `sampling`, a mapping, becomes part of the key.

    served     model names that the server reported, also in stored judgements
    """

    def __init__(
        self,
        judge: Judge,
        cache: JudgementCache | None,
        mode: Mode = "use",
        mask: Mask = NO_MASK,
        limit: tuple[float, str] | None = None,
    ) -> None:
        """Wrap a judge; `limit` is the seconds a judgement may take, and the words for them in messages."""
        self._judge, self._mode = judge, mode
        self.model, self.heuristic, self.rubrics = judge.model, judge.heuristic, judge.rubrics
        self.identity = identity_of(judge)
        self.is_local = is_local(judge)
        self._cache = None if self.is_local or mode == "off" else cache
        is_replay = mode == "replay" and self._cache is not None
        self.answers_at_once = is_replay or (limit is None and judges_at_once(judge))
        self.judge_together = self._judgements if is_replay or getattr(judge, "judge_together", None) else None
        self.served: set[str] = set()
        self._mask, self._limit = mask, limit
        self._sampling = _checked_sampling(judge)
        self._unwritten: list[tuple[str, Judgement, KeyParts]] = []
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """One a request that is being judged, which equal requests wait for."""

    def __getattr__(self, name: str) -> Any:
        """Return an attribute that the cache does not change, such as `tariff`."""
        return getattr(self.__dict__["_judge"], name)

    async def judge(self, request: JudgeRequest) -> Judgement:
        """Return the judgement; in `replay`, raise JudgeError of kind cache_miss if it is not stored."""
        (result,) = await self._judgements([request])
        if isinstance(result, JudgeError):
            raise result
        return result

    async def aclose(self) -> None:
        """Close the judge. The cache stays open: it belongs to its creator."""
        await self._judge.aclose()

    async def _judgements(self, requests: Sequence[JudgeRequest]) -> list[Judgement | JudgeError]:
        """Return the judgement or the error of each request; together, ask for those that are not stored."""
        if (cache := self._cache) is None:
            return await self._ask(requests)
        keyed = [(request, key_parts(request, self.identity, self._sampling)) for request in requests]
        missing = {parts.key: (request, parts) for request, parts in keyed}
        keys = [*missing]
        results: dict[str, Judgement | JudgeError] = self._stored(cache, missing)
        if self._mode == "replay":
            results |= {key: self._miss(key, parts) for key, (_, parts) in missing.items()}
        elif missing:
            async with AsyncExitStack() as locks:
                waited = False
                for key in sorted(missing):
                    lock = self._locks.setdefault(key, asyncio.Lock())
                    waited |= lock.locked()
                    await locks.enter_async_context(lock)
                if waited:  # an equal request was judged meanwhile, unless it failed
                    results |= self._stored(cache, missing)
                answers = await self._ask([request for request, _ in missing.values()])
                results |= dict(zip(missing, answers, strict=True))
                if self._mode != "read":
                    new = [
                        (key, answer, parts)
                        for answer, (key, (_, parts)) in zip(answers, missing.items(), strict=True)
                        if isinstance(answer, Judgement)
                    ]
                    await self._store(cache, new)
        return [results[key] for key in keys]

    def _stored(
        self, cache: JudgementCache, missing: dict[str, tuple[JudgeRequest, KeyParts]]
    ) -> dict[str, Judgement | JudgeError]:
        """Take the requests with a stored judgement out of `missing`, and return those judgements."""
        stored: dict[str, Judgement | JudgeError] = {}
        for key in [] if self._mode == "refresh" else [*missing]:
            judgement = cache.get(key)
            # The cache or its file may be from elsewhere: an invalid judgement is judged again.
            if judgement is not None and judgement_problem(judgement) is None:
                stored[key] = replace(self._mask.value(judgement), cached=True)
                self._note_served(judgement)
                del missing[key]
        return stored

    async def _ask(self, requests: Sequence[JudgeRequest]) -> list[Judgement | JudgeError]:
        """Ask the judge, together if there are several; check and mask what it returns."""
        together = getattr(self._judge, "judge_together", None)
        results: list[Judgement | JudgeError] = []
        if together is not None and len(requests) > 1:
            results = await together(requests)
        else:
            for request in requests:
                try:
                    results.append(await self._in_time(request))
                except JudgeError as error:
                    results.append(error)
        return [self._checked(*pair) for pair in zip(requests, results, strict=True)]

    def _checked(self, request: JudgeRequest, result: Judgement | JudgeError) -> Judgement | JudgeError:
        if isinstance(result, JudgeError):
            return result
        if (problem := judgement_problem(result)) is not None:
            return JudgeError("invalid_reply", f"judge {self.model!r}, rubric {request.rubric!r}: {problem}")
        self._note_served(result)
        masked: Judgement = self._mask.value(result)
        return masked

    async def _in_time(self, request: JudgeRequest) -> Judgement:
        if self._limit is None:
            return await self._judge.judge(request)
        seconds, words = self._limit
        try:
            async with asyncio.timeout(seconds) as limit:
                return await self._judge.judge(request)
        except TimeoutError:
            if not limit.expired():
                raise
            message = f"judge {self.model!r}, rubric {request.rubric!r}: no judgement within {words}"
            raise JudgeError("timeout", message) from None

    def _note_served(self, judgement: Judgement) -> None:
        if (served := served_model(judgement)) is not None:
            self.served.add(served)

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
                await asyncio.sleep(0)
            finally:  # the first to resume writes for all, even if it is cancelled
                if self._unwritten:
                    together, self._unwritten = self._unwritten, []
                    cache.put_all(together)

    def _miss(self, key: str, parts: KeyParts) -> JudgeError:
        hashes = {name: str(value)[:12] for name, value in (("answer", parts.answer), ("contexts", parts.contexts))}
        clear = {name: getattr(parts, name) for name in ("rubric", "prompt_version", "model", "trial")}
        named = ", ".join(f"{name} {one_line(value)}" for name, value in {**clear, **hashes, "key": key[:12]}.items())
        near = ""
        if isinstance(self._cache, SqliteCache):
            nearest = self._cache.nearest(parts)
            near = "; none is for this rubric" if nearest is None else f"; nearest: {difference_line(nearest, parts)}"
        missing = f"no judgement is stored for question '{one_line(parts.asked)}' ({named})"
        return JudgeError("cache_miss", f"{missing}{near}; run once with judge cache mode 'use'")


def judgement_problem(judgement: object) -> str | None:
    """Return why this is no valid judgement, or None: wrong type, number not finite or off its scale, bad text."""
    if not isinstance(judgement, Judgement):
        return f"returned {shown_value(judgement)}, expected a Judgement"
    is_pair = isinstance(judgement.scale, tuple | list) and len(judgement.scale) == 2
    if not is_pair or not all(map(_is_number, judgement.scale)) or judgement.scale[0] >= judgement.scale[1]:
        return f"its scale is {shown_value(judgement.scale)}, expected two finite numbers, the lower one first"
    if not isinstance(judgement.scores, Mapping):
        return f"its scores are {shown_value(judgement.scores)}, expected a mapping"
    low, high = judgement.scale
    for name, score in judgement.scores.items():
        if not _is_number(score):
            return f"{name} is {shown_value(score)}, expected a finite number"
        if not low <= score <= high:
            return f"{name} is {score:g}, outside its scale {low:g} to {high:g}"
    for name in ("tokens_in", "tokens_out", "cost_usd", "latency_ms"):
        spent = getattr(judgement, name)
        if spent is not None and not (_is_number(spent) and spent >= 0):
            return f"{name} is {shown_value(spent)}, expected a number of at least 0, or None"
    for name, kind in _KINDS.items():
        if not isinstance(value := getattr(judgement, name), kind):
            return f"its {name} is {shown_value(value)}, expected {_KINDS_IN_WORDS[kind]}"
    return _text_problem(judgement)


_KINDS: Mapping[str, type] = {
    "rubric": str,
    "prompt_version": str,
    "heuristic": bool,
    "cached": bool,
    "unscored": tuple,
}
_KINDS_IN_WORDS: Mapping[type, str] = {str: "a text", bool: "True or False", tuple: "a tuple"}


def _text_problem(judgement: Judgement) -> str | None:
    texts = (judgement.reasoning, judgement.model, *judgement.supported_claims, *judgement.unsupported_claims)
    try:
        whole_text = "".join(texts)
    except TypeError:
        return "its reasoning or claims are not all strings"
    try:
        whole_text.encode()
        if judgement.flags != () or judgement.extra != {}:
            _JSON_TEXT.encode([judgement.flags, dict(judgement.extra)]).encode()
    except UnicodeEncodeError:
        return "its text holds a lone surrogate"
    except (TypeError, ValueError, RecursionError) as error:
        return f"cannot be written as JSON: {excerpt(str(error), 120)}"
    return None


def _is_number(value: Any) -> bool:
    kind = type(value)
    is_plain = kind is float or kind is int  # the usual case, tested a dozen times per judgement
    if not is_plain and (kind is bool or not isinstance(value, int | float)):
        return False
    return bool(abs(value) <= sys.float_info.max)


def _checked_sampling(judge: Judge) -> dict[str, Json]:
    """Return the judge's sampling after a round trip through JSON, as the cache returns it."""
    sampling = getattr(judge, "sampling", NOTHING)
    try:
        written = _JSON_TEXT.encode([judge.model, dict(sampling)])
        written.encode()
    except (TypeError, ValueError) as error:
        place = f"judge {excerpt(repr(judge.model), 80)}: model and sampling become part of a cache key"
        raise SettingsError(f"{place}, but are no JSON text: {excerpt(str(error), 120)}") from None
    found: dict[str, Json] = json.loads(written)[1]
    return found


_JSON_TEXT = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
