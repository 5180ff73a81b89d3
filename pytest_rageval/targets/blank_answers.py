"""Signs in a reply that a blank answer is no abstention: the system was not done, failed, or only thought."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_rageval.io.messages import shown_value
from pytest_rageval.llm.thoughts import thoughts_and_answer
from pytest_rageval.model import Json


def sign_of_no_answer(reply: Json) -> str | None:
    """Return what in a reply with a blank answer says that the system did not decline, as `'error' is 'overloaded'`.

    Read are the members of the reply itself and of the choice and message that chat servers put them in.
    """
    for members in _objects(reply):
        for name in ("error", *_CALLS, *_THOUGHTS):
            value = members.get(name)
            if value and not (isinstance(value, str) and not value.strip()):
                return f"{name!r} is {shown_value(value)}"
        for name in _ENDINGS:
            reason = members.get(name)
            if isinstance(reason, str) and not is_regular_end(reason):
                return f"{name!r} is {shown_value(reason)}"
    return None


def without_thoughts(text: str | None, extra: Mapping[str, Json]) -> tuple[str | None, Mapping[str, Json]]:
    """Return an answer without the thoughts in front of it, and its other members with them."""
    thoughts, said = thoughts_and_answer(text or "")
    if text is None or said == text:
        return text, extra
    # What a system sends as thoughts stays as it is.
    return said, {THOUGHTS: thoughts, **extra} if thoughts else extra


def is_regular_end(reason: str) -> bool:
    """Check whether a server's word for the end of a reply means that the model was done."""
    return not reason.strip() or reason.strip().lower() in _REGULAR_ENDS


def _objects(reply: Json) -> Iterator[Mapping[str, Json]]:
    """Yield the objects of a reply that may hold a sign."""
    if not isinstance(reply, Mapping):
        return
    yield reply
    choices = reply.get("choices")
    # The answer is read from the first choice alone.
    first = choices[0] if isinstance(choices, Sequence) and choices and not isinstance(choices, str) else None
    for part in (reply.get("message"), reply.get("debug"), first):
        if isinstance(part, Mapping):
            yield part
            message = part.get("message")
            if isinstance(message, Mapping):
                yield message


_CALLS = ("tool_calls", "function_call")
THOUGHTS = "thoughts"
"""The member that keeps the thoughts in front of an answer, which are no part of it."""
_THOUGHTS = (THOUGHTS, "reasoning_content", "reasoning", "thinking")
_ENDINGS = ("finish_reason", "done_reason", "stop_reason")
_REGULAR_ENDS = frozenset({"stop", "end_turn", "stop_sequence", "eos", "end", "eos_token", "complete", "completed"})
