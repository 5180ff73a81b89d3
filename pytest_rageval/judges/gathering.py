"""Several judgements for one: asked at the same time, and what they took together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypedDict, TypeVar

from pytest_rageval.model import Judgement

Number = TypeVar("Number", int, float)


class Taken(TypedDict):
    """What a judgement that was made of others takes over from them."""

    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    latency_ms: float | None
    cached: bool
    heuristic: bool
    flags: tuple[str, ...]


async def ask_together(asked: Iterable[Awaitable[Judgement]], *, is_local: bool = False) -> list[Judgement]:
    """All of them, in order; where some fail, the rest is waited for (and so kept), then the first error raised.

    `is_local`: none of them waits for anything, so that one after the other is as quick and costs less.
    """
    if is_local:
        return [await one for one in asked]
    waiting = list(asked)
    if len(waiting) == 1:
        return [await waiting[0]]
    results = await asyncio.gather(*map(_contained, waiting), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if isinstance(result, Judgement)]


async def _contained(asked: Awaitable[Judgement]) -> Judgement | BaseException:
    """The judgement; what would end the loop if a task of its own raised it is handed on as a value."""
    try:
        return await asked
    except (SystemExit, KeyboardInterrupt) as error:
        return error


def taken(parts: Sequence[Judgement]) -> Taken:
    """Tokens, cost and time of at least one judgement, added up; a sum with an unknown part is unknown.

    Those from a cache cost nothing now: they are added up only if all parts are.
    """
    asked = [one for one in parts if not one.cached] or parts
    return Taken(
        tokens_in=_sum(asked, lambda one: one.tokens_in),
        tokens_out=_sum(asked, lambda one: one.tokens_out),
        cost_usd=_sum(asked, lambda one: one.cost_usd),
        latency_ms=_sum(asked, lambda one: one.latency_ms),
        cached=all(one.cached for one in parts),
        heuristic=any(one.heuristic for one in parts),
        flags=tuple(dict.fromkeys(flag for one in parts for flag in one.flags)),
    )


def _sum(parts: Sequence[Judgement], value: Callable[[Judgement], Number | None]) -> Number | None:
    known = [found for one in parts if (found := value(one)) is not None]
    return sum(known[1:], known[0]) if len(known) == len(parts) else None
