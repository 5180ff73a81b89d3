"""The tool calls of an answer as columns of the flat formats: names, number, and the calls as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_rageval.text import cut

CALLS = "called"
"""The member of a record under way to a flat format that holds the calls of its observation."""
COLUMNS = ("tool_names", "tool_call_count", "tool_calls_json")
"""Not `tool_calls`: that is the column of the metric."""
SHOWN_PARTS = ("name", "server", "arguments", "result", "error")
LONGEST_TEXT = 200
"""Characters of a text within the calls, as in records; `--full-text` has them all."""
MOST_LEVELS = 20


def call_columns(record: Mapping[str, Any], *, is_full: bool) -> dict[str, Any]:
    """Return these columns: None where the system reports no calls.

    A run that keeps no observations has the lines of its record alone, as JSON.
    """
    lines = record.get("tool_calls")
    calls: Sequence[Mapping[str, Any]] | None = record.get(CALLS)
    if calls is None:
        return dict(zip(COLUMNS, (None, None, None if lines is None else _as_json(lines)), strict=True))
    shown = []
    for call in calls:
        parts = {part: call[part] for part in SHOWN_PARTS if call.get(part) is not None}
        shown.append(parts if is_full else _with_cut_texts(parts, MOST_LEVELS))
    names = ", ".join(str(call.get("name")) for call in calls)
    return dict(zip(COLUMNS, (names or None, len(calls), _as_json(shown)), strict=True))


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _with_cut_texts(value: Any, levels: int) -> Any:
    """Cut the texts within plain values; what is nested deeper is left out."""
    if isinstance(value, str):
        return cut(value, LONGEST_TEXT)
    if not levels:
        return None
    if isinstance(value, Mapping):
        return {cut(str(key), LONGEST_TEXT): _with_cut_texts(each, levels - 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_cut_texts(each, levels - 1) for each in value]
    return value
