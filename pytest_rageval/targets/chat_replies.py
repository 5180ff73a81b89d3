"""What did a chat endpoint answer? Its reply as an `Answer`, with why it stopped and what it cost.

Sources: OpenAI's API reference, *The chat completion object*; Ollama's API reference, *Generate a chat completion*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pytest_rageval.errors import TargetError
from pytest_rageval.model import NOTHING, Answer, Json
from pytest_rageval.targets.values import Wrong, free, shown_value

T = TypeVar("T")

Reader = Callable[[Json, str], T]
"""Takes a value and its path."""
_MOST = 2**63

REFUSAL = "refusal"
"""`abstain_reason` where the model declined in a field of its own."""
TRUNCATED = "length"
FILTERED = "content_filter"
"""`abstain_reason` where the provider held back the whole answer."""


def answer_from_chat_completion(data: Json, where: str, prompt: str) -> Answer:
    """The first choice of a chat completion; `prompt` is the version of what was asked. Kind: invalid_response."""
    return _checked(_completion, data, where, prompt)


def answer_from_ollama(data: Json, where: str, prompt: str) -> Answer:
    """The reply to `/api/chat` without streaming. Kind: invalid_response."""
    return _checked(_ollama, data, where, prompt)


def _checked(read: Callable[[Json, str], Answer], data: Json, where: str, prompt: str) -> Answer:
    if isinstance(data, dict) and data.get("error"):  # some proxies send errors with status 200
        raise TargetError(
            "invalid_response", f"{where}: the server replies with an error: {shown_value(data['error'])}"
        )
    try:
        return read(data, prompt)
    except Wrong as wrong:
        raise TargetError("invalid_response", f"{where}: {wrong}") from None


def _completion(data: Json, prompt: str) -> Answer:
    found = fields(data, _COMPLETION)
    if not found.get("choices"):
        raise Wrong("choices", data.get("choices"), "a list of at least one choice")
    choice = found["choices"][0]
    message, reason = choice.get("message", {"extra": {}}), choice.get("finish_reason")
    said, abstain_reason = message.get("content"), None
    if refusal := message.get("refusal"):
        said, abstain_reason = said or refusal, REFUSAL
    elif reason == FILTERED and not said:
        said, abstain_reason = "", FILTERED
    return Answer(
        text=_required(said, "choices[0].message.content", message, reason),
        abstained=True if abstain_reason else _unless_cut(said, reason),
        abstain_reason=abstain_reason,
        usage=found.get("usage", {}),
        versions=_versions(found, prompt),
        extra=_ending(reason) | _beside(reply=found, choice=choice, message=message),
    )


def _ollama(data: Json, prompt: str) -> Answer:
    found = fields(data, _OLLAMA)
    message, reason = found.get("message", {"extra": {}}), found.get("done_reason")
    if found.get("done") is False:
        raise Wrong("done", False, "true: one whole reply, not a stream")
    counts = {"prompt_tokens": found.get("prompt_eval_count"), "completion_tokens": found.get("eval_count")}
    generation = [found[name] for name in ("prompt_eval_duration", "eval_duration") if name in found]
    spent = {"load_ms": found.get("load_duration"), "generation_ms": sum(generation) if generation else None}
    return Answer(
        text=_required(message.get("content"), "message.content", message, reason),
        abstained=_unless_cut(message.get("content"), reason),
        usage={name: count for name, count in counts.items() if count is not None},
        latency={name: nanoseconds / 1e6 for name, nanoseconds in spent.items() if nanoseconds is not None},
        versions=_versions(found, prompt),
        extra=_ending(reason) | _beside(reply=found, message=message),
    )


def _required(said: str | None, path: str, message: Mapping[str, Any], reason: str | None) -> str:
    """The text; where there is none, or a call of a tool in its place, no question was answered."""
    calls = message["extra"].get("tool_calls") or message["extra"].get("function_call")
    if calls and not said:
        raise Wrong(path, said, "text: the model called a tool instead")
    if said is None:
        raise Wrong(path, None, "a string" + (f" (it ended with {shown_value(reason)})" if reason else ""))
    return said


def _unless_cut(said: str | None, reason: str | None) -> bool | None:
    """A blank answer counts as an abstention; not where the model was cut off before its first word."""
    return False if reason == TRUNCATED and not (said or "").strip() else None


def _versions(found: Mapping[str, Any], prompt: str) -> dict[str, Json]:
    """The model as the server names it, which may be more exact than what it was asked for."""
    return ({"llm": found["model"]} if "model" in found else {}) | {"prompt": prompt}


def _ending(reason: str | None) -> dict[str, Json]:
    if reason is None:
        return {}
    return {"finish_reason": reason} | ({"truncated": True} if reason == TRUNCATED else {})


def _beside(**parts: Mapping[str, Any]) -> dict[str, Json]:
    """What the parts of a reply hold beside what is read: a message its reasoning, a choice what a filter found.

    Under the part's name: a field of the server's must not look like one of a recorded answer.
    """
    told = {
        name: {field: value for field, value in part["extra"].items() if value and field not in ("role", "index")}
        for name, part in parts.items()
    }
    return {name: fields for name, fields in told.items() if fields}


# ── single values ─────────────────────────────────────────────────────────────────────────────────────────────


def text(value: Json, path: str = "") -> str:
    """A string that UTF-8 can hold."""
    if not isinstance(value, str):
        raise Wrong(path, value, "a string")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Wrong(path, value, "text without lone surrogates") from None
    return value


def claim(value: Json, path: str = "") -> bool:
    """True or false, and nothing that merely looks like it."""
    if isinstance(value, bool):
        return value
    raise Wrong(path, value, "true or false")


def whole(value: Json, path: str = "") -> int:
    """A whole number of at most 64 bits; 3.0 is one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and value is not True and value is not False and -_MOST <= value < _MOST:
        return value
    raise Wrong(path, value, "a whole number")


def an_object(value: Json, path: str = "") -> dict[str, Json]:
    """A JSON object, where there must be one."""
    if isinstance(value, dict):
        return value
    raise Wrong(path, value, "an object")


def fields(data: Json, readers: Mapping[str, Reader[Any]]) -> dict[str, Any]:
    """The fields of an object that are there, each read by its reader; all others, in their order, under `extra`."""
    found: dict[str, Any] = {"extra": NOTHING}
    unknown = {}
    for name, value in an_object(data).items():
        read = readers.get(name)
        if read is None:
            unknown[name] = value
        elif value is not None:
            found[name] = read(value, name)
    if unknown:
        found["extra"] = free(unknown)
    return found


def object_of(read: Callable[[dict[str, Json]], T]) -> Reader[T]:
    """A reader of objects of one kind."""

    def reader(value: Json, path: str) -> T:
        data = an_object(value, path)
        try:
            return read(data)
        except Wrong as wrong:
            raise wrong.inside(path) from None

    return reader


def list_of(read: Callable[[Json], T]) -> Reader[tuple[T, ...]]:
    """A reader of lists of things of one kind."""

    def reader(value: Json, path: str) -> tuple[T, ...]:
        if not isinstance(value, (list, tuple)):
            raise Wrong(path, value, "a list")
        found = []
        for position, one in enumerate(value):
            try:
                found.append(read(one))
            except Wrong as wrong:
                raise wrong.inside(f"{path}[{position}]") from None
        return tuple(found)

    return reader


_MESSAGE: dict[str, Reader[Any]] = {"content": text, "refusal": text}
_CHOICE: dict[str, Reader[Any]] = {"message": object_of(lambda one: fields(one, _MESSAGE)), "finish_reason": text}
_COMPLETION: dict[str, Reader[Any]] = {
    "choices": list_of(lambda one: fields(one, _CHOICE)),
    "model": text,
    "usage": object_of(free),
}
_OLLAMA: dict[str, Reader[Any]] = {
    "message": object_of(lambda one: fields(one, _MESSAGE)),
    "model": text,
    "done": claim,
    "done_reason": text,
    "prompt_eval_count": whole,
    "eval_count": whole,
    "load_duration": whole,
    "prompt_eval_duration": whole,
    "eval_duration": whole,
}
