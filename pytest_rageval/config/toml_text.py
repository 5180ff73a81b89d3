"""TOML text of plain values: a document of tables, and single values for lines that a person pastes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import date, time
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_document(table: Mapping[str, Any]) -> str:
    """The TOML that reads back as this table: values first, then tables, each under its header.

    Strings of several lines are written over several lines. ValueError for what TOML cannot hold, such as null.
    """
    return "\n".join(_lines(table, ())) + "\n"


def toml_value(value: Any) -> str:
    """A value on one line: JSON is TOML for text, numbers and lists of them; a table is written inline."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(name)} = {toml_value(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if value is None:
        raise ValueError("TOML has no null; leave the key out")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)  # inf, -inf or nan, as TOML spells them
    return _escaped(json.dumps(value, ensure_ascii=False))


def toml_key(name: str) -> str:
    """A key, quoted where it has to be."""
    return name if _BARE_KEY.fullmatch(name) else toml_value(name)


def _lines(table: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[str]:
    for name, value in table.items():
        if not isinstance(value, Mapping):
            yield f"{toml_key(name)} = {_over_lines(value) if _has_lines(value) else toml_value(value)}"
    for name, value in table.items():
        if isinstance(value, Mapping):
            path = (*above, name)
            yield ""
            yield f"[{'.'.join(map(toml_key, path))}]"
            yield from _lines(value, path)


def _has_lines(value: Any) -> bool:
    return isinstance(value, str) and "\n" in value


def _over_lines(text: str) -> str:
    """A multi-line basic string: the first line end after the quotes is not part of it."""
    body = "\n".join(_escaped(json.dumps(line, ensure_ascii=False))[1:-1] for line in text.split("\n"))
    if '"""' not in text and not text.endswith('"'):
        body = body.replace('\\"', '"')
    return f'"""\n{body}"""'


def _escaped(written: str) -> str:
    """JSON leaves DEL as it is, which TOML does not allow."""
    return written.replace("\x7f", "\\u007f")
