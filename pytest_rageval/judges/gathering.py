"""Several judgements for one: asked at the same time, and what they took together."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Iterable, Sequence
from typing import TYPE_CHECKING, TypedDict, TypeVar, cast

from pytest_rageval.model import Judgement

if TYPE_CHECKING:  # loaded, it would bring the HTTP client into runs whose judge asks nobody
    from pytest_rageval.llm.chat_model import Exchange

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


async def ask_together(asked: Iterable[Awaitable[Judgement]], *, in_turn: bool = False) -> list[Judgement]:
    """All of them, in order; where some fail, the rest is waited for (and so kept), then the first error raised.

    `in_turn`: none of them waits for anything, so that one after the other is as quick and costs less.
    """
    results: list[Judgement | BaseException]
    if in_turn:
        results = [await _attempted(call) for call in asked]
    else:
        waiting = list(asked)
        if len(waiting) == 1:
            return [await waiting[0]]
        results = [*await asyncio.gather(*map(_contained, waiting), return_exceptions=True)]
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if isinstance(result, Judgement)]


async def _attempted(asked: Awaitable[Judgement]) -> Judgement | Exception:
    """The judgement, or why there is none."""
    try:
        return await asked
    except Exception as error:  # noqa: BLE001 because whatever it is, it is raised once the others have ended
        return error


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
        tokens_in=total(part.tokens_in for part in asked),
        tokens_out=total(part.tokens_out for part in asked),
        cost_usd=total(part.cost_usd for part in asked),
        latency_ms=total(part.latency_ms for part in asked),
        cached=all(part.cached for part in parts),
        heuristic=any(part.heuristic for part in parts),
        flags=tuple(dict.fromkeys(flag for part in parts for flag in part.flags)),
    )


class ExchangeSums(TypedDict):
    """Tokens, cost and time as the fields of a judgement."""

    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    latency_ms: float


def spent(exchanges: Sequence[Exchange]) -> ExchangeSums:
    """What the conversation of one judgement took."""
    return {
        "tokens_in": total(exchange.reply.tokens_in for exchange in exchanges),
        "tokens_out": total(exchange.reply.tokens_out for exchange in exchanges),
        "cost_usd": total(exchange.cost_usd for exchange in exchanges),
        "latency_ms": round(math.fsum(exchange.latency_ms for exchange in exchanges), 3),
    }


def total(parts: Iterable[Number | None]) -> Number | None:
    """The sum, the same on every Python; None where a part is not known."""
    parts = list(parts)
    summands = [part for part in parts if part is not None]
    if len(summands) < len(parts):
        return None
    is_whole = all(type(summand) is int for summand in summands)
    return cast(Number, sum(summands) if is_whole else math.fsum(summands))
