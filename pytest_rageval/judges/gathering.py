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
        return [await call for call in asked]
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
    asked = [part for part in parts if not part.cached] or parts
    return Taken(
        tokens_in=_sum(asked, lambda part: part.tokens_in),
        tokens_out=_sum(asked, lambda part: part.tokens_out),
        cost_usd=_sum(asked, lambda part: part.cost_usd),
        latency_ms=_sum(asked, lambda part: part.latency_ms),
        cached=all(part.cached for part in parts),
        heuristic=any(part.heuristic for part in parts),
        flags=tuple(dict.fromkeys(flag for part in parts for flag in part.flags)),
    )


def _sum(parts: Sequence[Judgement], value: Callable[[Judgement], Number | None]) -> Number | None:
    values = [number for part in parts if (number := value(part)) is not None]
    return sum(values[1:], values[0]) if len(values) == len(parts) else None
