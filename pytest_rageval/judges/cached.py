"""Has this been judged before? A judge behind a cache, and what makes two requests the same."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.base import Judge, JudgementCache
from pytest_rageval.model import NOTHING, Json, Judgement, JudgeRequest
from pytest_rageval.text import printable

Mode = Literal["use", "refresh", "off", "replay"]
"""use: look, else judge and keep. refresh: judge and keep. off: judge. replay: look, and never judge."""


def key_parts(request: JudgeRequest, model: str, sampling: Mapping[str, Json] = NOTHING) -> dict[str, Json]:
    """All that a judgement depends on, by name; the contexts as the SHA-256 of them."""
    variables = dict(request.variables)
    parts = {
        "rubric": request.rubric,
        "prompt_version": request.prompt_version,
        "model": model,
        "sampling": dict(sampling),
        "trial": request.trial,
        "question": variables.pop("question", None),
        "answer": variables.pop("answer", None),
    }
    contexts = variables.pop("contexts", None)
    return {**parts, "contexts": None if contexts is None else _sha256(contexts), "variables": variables}


def cache_key(request: JudgeRequest, model: str, sampling: Mapping[str, Json] = NOTHING) -> str:
    """SHA-256, 64 hex digits, over the canonical JSON of `key_parts`."""
    return _sha256(key_parts(request, model, sampling))


def _sha256(value: Json) -> str:
    # In ASCII: a lone surrogate is written as an escape here, and so cannot fail to encode.
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


@dataclass(slots=True)
class _UnderWay:
    """A request that is being judged: who else asks the same waits for the lock and takes what was said."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0
    said: Judgement | None = None


class CachedJudge:
    """A judge that remembers: itself a `Judge`, for one event loop at a time.

    What is judged already comes from the cache, marked `cached`; of equal requests at the same time one is judged. A
    heuristic judge is asked directly in every mode: it costs nothing, needs no network and says the same every time.
    What a judge returns is checked before anybody sees or keeps it; errors are never kept. A judge whose replies depend
    on more than its model says so in an attribute `sampling`, a mapping that becomes part of the key.
    """

    def __init__(self, judge: Judge, cache: JudgementCache | None, mode: Mode = "use") -> None:
        self.model = judge.model
        self.heuristic = judge.heuristic
        self.rubrics = judge.rubrics
        self._judge, self._cache, self._mode = judge, cache, mode
        self._sampling: Mapping[str, Json] = getattr(judge, "sampling", NOTHING)
        self._under_way: dict[str, _UnderWay] = {}

    async def judge(self, request: JudgeRequest) -> Judgement:
        """The judgement; in `replay` a missing one is a JudgeError of kind cache_miss that names the key's parts."""
        if self.heuristic or self._mode == "off" or self._cache is None:
            return await self._ask(request)
        key = cache_key(request, self.model, self._sampling)
        if self._mode != "refresh" and (known := self._look_up(self._cache, key)) is not None:
            return known
        if self._mode == "replay":
            raise JudgeError("cache_miss", self._missing(request, key))
        under_way = self._under_way.setdefault(key, _UnderWay())
        under_way.waiting += 1
        try:
            async with under_way.lock:
                if under_way.said is not None:
                    return replace(under_way.said, cached=True)
                # Where the one before us failed or was cancelled, it is our turn to ask.
                under_way.said = await self._ask(request)
                self._cache.put(key, under_way.said)
                return under_way.said
        finally:
            under_way.waiting -= 1
            if not under_way.waiting:
                del self._under_way[key]

    async def aclose(self) -> None:
        """Close the judge. The cache belongs to whom made it."""
        await self._judge.aclose()

    async def _ask(self, request: JudgeRequest) -> Judgement:
        said = await self._judge.judge(request)
        if (problem := unfit(said)) is not None:
            raise JudgeError("invalid_reply", f"judge {self.model!r}, rubric {request.rubric!r}: {problem}")
        return said

    def _look_up(self, cache: JudgementCache, key: str) -> Judgement | None:
        known = cache.get(key)
        # The cache may be a user's own, or its file another's: what is no judgement is judged again.
        return None if known is None or unfit(known) is not None else replace(known, cached=True)

    def _missing(self, request: JudgeRequest, key: str) -> str:
        parts = key_parts(request, self.model, self._sampling)
        question = printable(" ".join(str(parts.pop("question")).split()))
        shown = f"{question[:60]}…" if len(question) > 60 else question
        hashed = {name: _sha256(parts.pop(name))[:12] for name in ("answer", "variables", "sampling")}
        parts["contexts"] = str(parts["contexts"])[:12]
        named = ", ".join(f"{name} {value}" for name, value in {**parts, **hashed, "key": key[:12]}.items())
        return f"no judgement is stored for question {shown!r} ({named}); run once with judge cache mode 'use'"


def unfit(said: object) -> str | None:
    """Why this cannot pass for a judgement, or None: its type, a score that is no number of its scale, bad text."""
    if not isinstance(said, Judgement):
        return f"returned {printable(repr(said))[:80]}, expected a Judgement"
    low, high = said.scale
    for name, score in said.scores.items():
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            return f"{name} is {printable(repr(score))[:80]}, expected a finite number"
        if not low <= score <= high:
            return f"{name} is {score:g}, outside its scale {low:g} to {high:g}"
    texts = (said.reasoning, said.model, *said.supported_claims, *said.unsupported_claims)
    if not all(isinstance(text, str) for text in texts):
        return "its reasoning or claims are not all strings"
    try:
        json.dumps([texts, dict(said.extra)], ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return "its text holds a lone surrogate"
    except (TypeError, ValueError) as error:
        return f"cannot be written as JSON: {printable(str(error))[:120]}"
    return None
