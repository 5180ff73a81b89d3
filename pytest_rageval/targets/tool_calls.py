"""Tool calls in the forms of chat services and frameworks, put into the form of the contract.

The contract is `{name, arguments, result?, error?, server?, retrieved_chunks?}`. Known are also calls and messages of
OpenAI, Anthropic, LangChain and the Model Context Protocol, and items of OpenAI's Responses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import Json
from pytest_rageval.targets.foreign_results import DOCUMENTS, chunk_of, member, plain_text

LONGEST_RESULT = 1_000_000
"""Characters of a result that is read as JSON, to find the chunks of a search in it."""
_NAMES = ("name", "tool_name", "tool")
_ARGUMENTS = ("arguments", "args", "input", "parameters", "input_parameters")
_RESULTS = ("result", "output", "response")
_SERVERS = ("server", "server_label", "server_name")
_FAILED = frozenset({"error", "failed", "failure"})
_SPEAKERS = {"human": "user", "ai": "assistant"}
"""LangChain's names of roles."""
_CALL_ITEMS = ("function_call", "mcp_call")
_RESULT_ITEM = "function_call_output"


def may_hold_calls(data: Mapping[str, Json]) -> bool:
    """Check whether a response has a member that tool calls are read from."""
    debug = data.get("debug")
    return "tool_calls" in data or "messages" in data or (isinstance(debug, dict) and "tool_calls" in debug)


def with_contract_calls(data: dict[str, Json]) -> dict[str, Json]:
    """Return a response with the tool calls of its `tool_calls`, `debug` or `messages` in the form of the contract."""
    debug = data.get("debug")
    calls = data.get("tool_calls")
    if calls is None and isinstance(debug, dict) and debug.get("tool_calls") is not None:
        calls = debug["tool_calls"]
        debug = {name: value for name, value in debug.items() if name != "tool_calls"}
        data = {**data, "debug": debug}
    if calls is None:
        messages = data.get("messages")
        calls = calls_in_messages(messages) if isinstance(messages, list) else None
        # Nothing promises the form of these messages: where a call in them is none, they are left alone.
        if not calls or not all(map(_is_sound, calls)):
            return data
    elif isinstance(calls, list):
        calls = contract_calls(calls)
    return {**data, "tool_calls": calls}


def _is_sound(call: Json) -> bool:
    return isinstance(call, dict) and isinstance(call.get("name"), str) and isinstance(call.get("arguments"), dict)


def contract_calls(written: Sequence[Json]) -> list[Json]:
    """Return calls, or the calls in a list of messages, in the form of the contract; what is no object stays."""
    if any(_role(item) or _is_item(item) for item in written):
        return calls_in_messages(written)
    return [_call(item) if isinstance(item, dict) else item for item in written]


def calls_in_messages(messages: Sequence[Json]) -> list[Json]:
    """Return the tool calls since the last question of the user, each with its result."""
    since = 0
    for position, message in enumerate(messages):
        # Anthropic sends the results of tools as messages of the user.
        if _role(message) == "user" and not any(_parts_of(message, "tool_result")):
            since = position + 1
    calls: list[Json] = []
    by_id: dict[str, dict[str, Json]] = {}
    for message in messages[since:]:
        for call in _calls_of(message):
            read = _call(call)
            calls.append(read)
            by_id[str(call.get("id") or call.get("call_id"))] = read
        for call_id, result, has_failed in _results_of(message):
            if call_id in by_id:
                _add_result(by_id[call_id], result, has_failed=has_failed)
    for call in calls:
        # The ids join calls and results; they differ between equal runs.
        call.pop("id", None)
        call.pop("call_id", None)
    return calls


def calls_of_framework(result: Any) -> list[Json]:
    """Return the tool calls in the messages of a framework's result, whose messages may be objects."""
    messages = member(result, "messages")
    if not isinstance(messages, list | tuple):
        return []
    return calls_in_messages([_plain_message(message) for message in messages])


_OF_MESSAGES = ("role", "type", "content", "tool_calls", "tool_call_id", "status")


def _plain_message(message: Any) -> Json:
    """Return a message as a mapping. What a tool of LangChain found stands in its `artifact`, as documents."""
    plain = {name: member(message, name) for name in _OF_MESSAGES}
    artifact = member(message, "artifact")
    if isinstance(artifact, list | tuple) and artifact:
        chunks = [chunk_of(document) for document in artifact]
        if None not in chunks:
            plain["content"] = chunks
    return plain


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────────


def _role(message: Json) -> str | None:
    if not isinstance(message, dict):
        return None
    role = message.get("role")
    # A call may have the type "tool" as well; a message has a content.
    if role is None and "content" in message and message.get("type") in ("human", "ai", "tool", "system"):
        role = message["type"]
    return _SPEAKERS.get(role, role) if isinstance(role, str) else None


def _is_item(item: Json) -> bool:
    """Check whether this is an item of OpenAI's Responses."""
    return isinstance(item, dict) and item.get("type") in (*_CALL_ITEMS, _RESULT_ITEM)


def _parts_of(message: Json, kind: str) -> Iterator[dict[str, Any]]:
    content = message.get("content") if isinstance(message, dict) else None
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") == kind:
            yield part


def _calls_of(message: Json) -> Iterator[dict[str, Any]]:
    if not isinstance(message, dict):
        return
    if message.get("type") in _CALL_ITEMS:
        yield message
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            yield call
    yield from _parts_of(message, "tool_use")


def _results_of(message: Json) -> Iterator[tuple[str, Json, bool]]:
    """Yield the id of a call, its result, and whether it failed."""
    if not isinstance(message, dict):
        return
    if message.get("type") == _RESULT_ITEM:
        yield str(message.get("call_id")), message.get("output"), False
    elif _role(message) == "tool":
        result = message.get("content")
        has_failed = _says_failed(message.get("status")) or bool(message.get("is_error"))
        yield str(message.get("tool_call_id")), _text_or_parts(result), has_failed
    for part in _parts_of(message, "tool_result"):
        yield str(part.get("tool_use_id")), _text_or_parts(part.get("content")), bool(part.get("is_error"))


def _says_failed(status: Json) -> bool:
    return isinstance(status, str) and status.lower() in _FAILED


def _text_or_parts(content: Json) -> Json:
    """Return the text of a message's parts, or the content itself if it has none, as a list of passages."""
    if isinstance(content, list) and not all(isinstance(part, dict) and "type" in part for part in content):
        return content
    return plain_text(content) or content


# ── one call ──────────────────────────────────────────────────────────────────────────────────────────────────


def _call(written: dict[str, Json]) -> dict[str, Json]:
    """Return one call under the names of the contract; members without a meaning here stay."""
    members = dict(written)
    function = members.pop("function", None)
    if isinstance(function, dict):
        members = {**members, **function}
    elif function is not None:
        members.setdefault("name", function)
    if members.get("type") in ("function", "tool_call", "tool_use", *_CALL_ITEMS):
        del members["type"]
    call: dict[str, Json] = {}
    for name, aliases in (("name", _NAMES), ("arguments", _ARGUMENTS), ("result", _RESULTS), ("server", _SERVERS)):
        given = [alias for alias in aliases if members.get(alias) is not None]
        if given:
            call[name] = members.pop(given[0])
    call["arguments"] = _arguments(call.get("arguments"))
    has_failed = members.pop("is_error", None) is True or _says_failed(members.get("status"))
    error = members.pop("error", None)
    result = call.pop("result", None)
    call |= {name: value for name, value in members.items() if value is not None}
    _add_result(call, result, has_failed=has_failed)
    if error:
        call["error"] = _error_text(error)
    return call


def _arguments(written: Json) -> Json:
    """Return the arguments as an object; a text that holds none is the argument `input`."""
    if isinstance(written, str) and len(written) <= LONGEST_RESULT:
        try:
            written = parse(written) if written.strip() else {}
        except StrictJsonError:
            return {"input": written}
        return written if isinstance(written, dict) else {"input": written}
    return {} if written is None else written


def _add_result(call: dict[str, Json], result: Json, *, has_failed: bool) -> None:
    if result is None and not has_failed:
        return
    if has_failed:
        call["error"] = _error_text(result)
        return
    call["result"] = result
    if call.get("retrieved_chunks") is None:
        chunks = _chunks_of(result)
        if chunks:
            call["retrieved_chunks"] = chunks


def _error_text(error: Json) -> str:
    if isinstance(error, Mapping) and isinstance(error.get("message"), str):
        return str(error["message"])
    if error is True or error is None:
        return "failed"
    return error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)


def _chunks_of(result: Json) -> list[Json]:
    """Return the chunks that a result holds; empty unless each item of its list has a place, and a text or a path.

    A list of orders is no search: its items have neither.
    """
    if isinstance(result, str):
        result = _parsed(result)
    if isinstance(result, dict):
        lists = [result.get(name) for name in ("retrieved_chunks", *DOCUMENTS)]
        result = next((listed for listed in lists if isinstance(listed, list)), None)
    chunks: list[Json] = []
    for item in result if isinstance(result, list) else ():
        chunk = chunk_of(item) if isinstance(item, dict) else None
        if chunk is None:
            return []
        has_place = "rel_path" in chunk or "chunk_id" in chunk or "doc_id" in chunk
        if not has_place or not ("text" in chunk or "rel_path" in item or "chunk_id" in item):
            return []
        chunks.append(chunk)
    return chunks


def _parsed(text: str) -> Json:
    if len(text) > LONGEST_RESULT or text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        return parse(text)
    except StrictJsonError:
        return None
