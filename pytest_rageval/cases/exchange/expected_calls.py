"""The tool calls that DeepEval's and Ragas' cases expect, as the field `expected_tools` of a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_rageval.model import Json

OF_OTHERS = ("expected_tools", "reference_tool_calls")
"""Their names in DeepEval and Ragas."""
_ARGUMENTS = ("args", "input_parameters", "inputParameters", "arguments")
_OURS = frozenset({"name", "args", "args_match", "ignore", "optional"})
AS_WRITTEN = "_as_written"
"""The end of the name under which a list that cannot be read is kept in the metadata."""


def with_expected_tools(row: Mapping[str, Json]) -> dict[str, Json]:
    """Return a row whose expected tool calls are those of a case; what cannot be read is kept under another name."""
    read = dict(row)
    for name in OF_OTHERS:
        written = read.pop(name, None)
        if written is None:
            continue
        tools = _tools(written)
        if tools is None or "expected_tools" in read:
            read[name + AS_WRITTEN] = written
        elif tools:  # an empty list there says that nothing is known
            read["expected_tools"] = tools
    return read


def with_calls_of_turns(
    messages: Sequence[Json], written: Sequence[Json], calls: Sequence[Json], last: int
) -> list[Json]:
    """Return messages whose questions expect the calls of a conversation.

    A call belongs to the question after which the written messages make it, else to the last question.

    last  the position of the message with the last question
    """
    expected: dict[int, list[Json]] = {}
    left = list(calls)
    asked = last
    for position, message in enumerate(written):
        if isinstance(messages[position], dict) and messages[position].get("role") == "user":
            asked = position
        made = message.get("tool_calls") if isinstance(message, dict) else None
        for call in _tools(made) or ():
            if call in left:
                left.remove(call)
                expected.setdefault(asked, []).append(call)
    if left:
        expected[last] = [*expected.get(last, []), *left]
    placed = list(messages)
    for position, tools in expected.items():
        placed[position] = {**placed[position], "expected_tools": tools}
    return placed


def _tools(written: Json) -> list[Json] | None:
    if not isinstance(written, list):
        return None
    tools: list[Json] = []
    for item in written:
        tool: dict[str, Any] | None = {"name": item} if isinstance(item, str) else _tool(item)
        if tool is None:
            return None
        tools.append(tool)
    return tools


def _tool(item: Json) -> dict[str, Any] | None:
    """Return one expected call; descriptions, reasons and results say nothing about it."""
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        return None
    if item.keys() <= _OURS:
        return item
    tool: dict[str, Any] = {"name": item["name"]}
    for name in _ARGUMENTS:
        arguments = item.get(name)
        if isinstance(arguments, dict) and arguments:
            tool["args"] = arguments
            break
    return tool
