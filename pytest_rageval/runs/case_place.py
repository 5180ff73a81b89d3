"""The id and the place of a case, from its key and its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def case_id(key: str) -> str:
    """Return the id in a case key."""
    return key.partition("::")[2] or key


def place_text(record: Mapping[str, Any]) -> str:
    """Return the file and line of a record's case; '' if they are not known."""
    source = record.get("source") or {}
    return f"{source['file']}:{source['line']}" if source.get("file") else ""
