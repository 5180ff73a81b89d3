"""The tool calls of an answer as lines, for records and for people: bounded, and without control characters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.model import Answer, Json, Matching, ToolCall
from pytest_rageval.text import counted, cut, printable

MOST_CALLS = 20
"""Calls that are shown of one answer."""
MOST_ARGUMENTS = 8
LONGEST_NAME = 60
LONGEST_RESULT = 80
LONGEST_LINE = 200
"""Characters of a line; texts of records are cut at the same length."""


def tool_call_lines(answer: Answer, matching: Matching) -> list[str]:
    """Return a line for each call: `2 search(query='jeju') → 5 chunks, gold at rank 1`."""
    calls = answer.tool_calls or ()
    lines = []
    searches = 0
    for number, call in enumerate(calls[:MOST_CALLS], start=1):
        hits = None
        if call.retrieved_chunks is not None:
            if searches < len(matching.searches):
                hits = matching.searches[searches]
            searches += 1
        line = f"{number} {_call_words(call)} → {_outcome(call, hits, has_golds=matching.golds > 0)}"
        # Arguments are the model's words: line breaks and control characters must not reach a terminal.
        lines.append(cut(" ".join(printable(line).split()), LONGEST_LINE))
    if len(calls) > MOST_CALLS:
        lines.append(and_more(len(calls) - MOST_CALLS, "calls"))
    return lines


def _call_words(call: ToolCall) -> str:
    name = cut(call.name, LONGEST_NAME)
    if call.server is not None:
        name = f"{cut(call.server, LONGEST_NAME)}.{name}"
    return f"{name}({', '.join(_arguments(call.arguments))})"


def _arguments(arguments: Mapping[str, Json]) -> Iterator[str]:
    for position, (name, value) in enumerate(arguments.items()):
        if position == MOST_ARGUMENTS:
            yield "…"
            return
        yield f"{cut(name, LONGEST_NAME)}={_value_words(value)}"


def _value_words(value: Json) -> str:
    if isinstance(value, str | int | float):
        return shown_value(value)
    return cut(json.dumps(value, ensure_ascii=False, default=str), LONGEST_RESULT)


def _outcome(call: ToolCall, hits: tuple[frozenset[int], ...] | None, *, has_golds: bool) -> str:
    """Return in words what a call gave: an error, chunks with the first gold, or its result."""
    if call.error is not None:
        return f"failed: {cut(call.error, LONGEST_RESULT)}"
    if call.retrieved_chunks is not None:
        words = counted(len(call.retrieved_chunks), "chunk")
        if not has_golds or hits is None:
            return words
        rank = next((rank for rank, golds in enumerate(hits, start=1) if golds), None)
        return f"{words}, no gold" if rank is None else f"{words}, gold at rank {rank}"
    if call.result is None:
        return "no result"
    return _value_words(call.result)
