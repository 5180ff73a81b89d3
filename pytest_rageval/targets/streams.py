"""Results that come in pieces, from a generator or a stream: read to the end and joined."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, nullcontext
from typing import Any, NamedTuple

from pytest_rageval.errors import TargetError
from pytest_rageval.targets.foreign_code import call_foreign, too_large
from pytest_rageval.targets.foreign_results import member, plain_text

_MEMBER = "response_gen"
"""The member of LlamaIndex's streaming responses that yields the text."""
_PIECES = ("content", "text", "delta", "token", "chunk")


def stream_of(result: Any) -> Any:
    """Return what yields the pieces of a result; None if it came at once."""
    streams = (result, member(result, _MEMBER))
    return next((each for each in streams if isinstance(each, Iterator | AsyncIterator)), None)


class Streamed(NamedTuple):
    """What a stream amounts to, and when its first text came, on the clock of time.perf_counter; None if none did."""

    result: Any
    first_text_at: float | None


async def whole(result: Any, where: str, seconds: float, most: int, size_of: Callable[[Any], int]) -> Streamed:
    """Read a stream and return what it amounts to; raise TargetError if it takes too long or is too large."""
    stream = stream_of(result)
    pieces: list[Any] = []
    end = time.monotonic() + seconds
    first_text_at: float | None = None

    def keep(piece: Any, size: int) -> int:
        nonlocal first_text_at
        if first_text_at is None and _holds_text(piece):
            first_text_at = time.perf_counter()
        pieces.append(piece)
        # At least 1: an endless stream of empty pieces would never reach the limit.
        size += max(size_of(piece), 1)
        if size > most:
            raise TargetError("too_large", too_large(where, most))
        return size

    def read() -> None:
        size = 0
        for piece in stream:
            size = keep(piece, size)
            if time.monotonic() > end:  # the waiter has left
                return

    async def read_async() -> None:
        size = 0
        # An abandoned async generator is closed by the garbage collector, perhaps after its loop.
        async with aclosing(stream) if hasattr(stream, "aclose") else nullcontext():
            async for piece in stream:
                size = keep(piece, size)

    is_async = isinstance(stream, AsyncIterator)
    await call_foreign(read_async if is_async else read, where, seconds, is_async=is_async)
    joined = _joined(pieces, where)
    if stream is not result and isinstance(joined, dict):
        # A streaming response of LlamaIndex has its documents beside the stream.
        joined = {**joined, "source_nodes": member(result, "source_nodes") or []}
    return Streamed(joined, first_text_at)


def _holds_text(piece: Any) -> bool:
    """Return True if a piece holds text of the answer, and not only documents or a role."""
    text = _text(piece)
    if text is None and isinstance(piece, Mapping):
        text = _text(piece.get("answer"))
    return bool(text)


def _joined(pieces: Sequence[Any], where: str) -> Any:
    """Return texts and objects in pieces as one record, and documents as a list."""
    if pieces and all(member(piece, "page_content") or member(piece, "node") for piece in pieces):
        return [*pieces]
    has_objects = any(isinstance(piece, Mapping) for piece in pieces)
    record: dict[str, Any] = {} if has_objects else {"answer": ""}
    for piece in pieces:
        text = _text(piece)
        parts = piece if text is None and isinstance(piece, Mapping) else {"answer": text}
        for name, part in parts.items():
            text = _text(part)
            new: Any = part if text is None else text
            if isinstance(new, str | list) and isinstance(record.get(name), type(new)):
                new = record[name] + new
            if new is not None:
                record[name] = new
        if parts == {"answer": None}:
            yields = f"{where}: returned a stream of {type(piece).__name__}, which is no text, message or dict"
            remedy = "def answer(question): return ''.join(str(piece) for piece in stream(question))"
            raise TargetError("invalid_response", f"{yields}; write a function that joins it: {remedy}")
    return record


def _text(piece: Any) -> str | None:
    """Return the text of a piece: itself, or that of a message; None if it is something else."""
    if isinstance(piece, str):
        return piece
    if isinstance(piece, Mapping) and not (len(piece) == 1 and piece.keys() <= {*_PIECES}):
        choices = piece.get("choices")
    else:
        choices = member(piece, "choices")
        for name in _PIECES:
            if (text := plain_text(member(piece, name))) is not None:
                return text
    if not isinstance(choices, list):
        return None
    # A chat completion; its last piece may hold no choice.
    return "".join(plain_text(member(member(choice, "delta"), "content")) or "" for choice in choices[:1])
