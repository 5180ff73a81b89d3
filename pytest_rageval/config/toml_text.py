"""TOML text of plain values: a document of tables, and single values for lines to paste."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import date, time
from typing import Any

import tomli_w

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_NO_NULL = "TOML has no null; leave the key out"


def toml_document(table: Mapping[str, Any]) -> str:
    """Return TOML that reads back as this table.

    Strings with line ends become multi-line strings. Raise ValueError for values that TOML cannot hold, such as null.
    """
    # In multi-line strings, tomli-w writes \r\n as \n; on one line it is kept.
    has_lines = not _has_carriage_return(table)
    try:
        return tomli_w.dumps(table, multiline_strings=has_lines)
    except TypeError:
        raise ValueError(_NO_NULL) from None


def _has_carriage_return(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_carriage_return, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_carriage_return, value))
    return isinstance(value, str) and "\r" in value


def toml_value(value: Any) -> str:
    """Return a value on one line, which tomli-w cannot do: it writes lists over several lines.

    JSON is valid TOML for text, numbers and lists.
    """
    if isinstance(value, Mapping):
        members = [f"{_key(name)} = {toml_value(member)}" for name, member in value.items()]
        return "{ " + ", ".join(members) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if value is None:
        raise ValueError(_NO_NULL)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)  # inf, -inf or nan, as in TOML
    # JSON leaves DEL as it is, which TOML forbids.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else toml_value(name)
