"""The id and the place of a case, from its key and its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_rageval.model.case import turn_id


def case_id(key: str) -> str:
    """Return the id in a case key, with the node id of a test of the project's own behind it, if one evaluated it."""
    return key.partition("::")[2] or key


def own_test(key: str, case_key: str) -> str | None:
    """Return the node id of the project's own test in a record's key; None if the case was an item of its own."""
    return key.removeprefix(case_key).removeprefix("::") or None


def place_text(record: Mapping[str, Any]) -> str:
    """Return the file and line of a record's case; '' if they are not known."""
    source = record.get("source") or {}
    return f"{source['file']}:{source['line']}" if source.get("file") else ""


def conversation_unit(record: Mapping[str, Any]) -> str | None:
    """Return the key of the conversation of a record's turn, `FILE::ID`; None for a single case."""
    conversation = record.get("conversation")
    turn = record.get("turn")
    if not isinstance(conversation, str) or not isinstance(turn, int):
        return None
    key: str = record["case_key"]
    ending = turn_id(conversation, turn)
    return key.removesuffix(ending) + conversation if key.endswith(ending) else None
