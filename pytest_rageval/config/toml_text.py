"""TOML text of plain values: a document of tables, and single values for lines to paste."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import date, time
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_document(table: Mapping[str, Any]) -> str:
    """Return TOML that reads back as this table: values first, then tables, each under its header.

    Strings with line ends become multi-line strings. Raises ValueError for values that TOML cannot hold, such as null.
    """
    return "\n".join(_lines(table, ())) + "\n"


def toml_value(value: Any) -> str:
    """Return a value on one line: JSON is valid TOML for text, numbers and lists; tables are inline."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(name)} = {toml_value(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if value is None:
        raise ValueError("TOML has no null; leave the key out")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)  # inf, -inf or nan, as in TOML
    return _escaped(json.dumps(value, ensure_ascii=False))


def toml_key(name: str) -> str:
    """Return a key, quoted if necessary."""
    return name if _BARE_KEY.fullmatch(name) else toml_value(name)


def _lines(table: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[str]:
    for name, value in table.items():
        if not isinstance(value, Mapping):
            has_lines = isinstance(value, str) and "\n" in value
            yield f"{toml_key(name)} = {_over_lines(value) if has_lines else toml_value(value)}"
    for name, value in table.items():
        if isinstance(value, Mapping):
            path = (*above, name)
            yield ""
            yield f"[{'.'.join(map(toml_key, path))}]"
            yield from _lines(value, path)


def _over_lines(text: str) -> str:
    """Return a multi-line basic string; TOML drops the line end after the opening quotes."""
    body = "\n".join(_escaped(json.dumps(line, ensure_ascii=False))[1:-1] for line in text.split("\n"))
    if '"""' not in text and not text.endswith('"'):
        body = body.replace('\\"', '"')
    return f'"""\n{body}"""'


def _escaped(written: str) -> str:
    """Escape DEL, which JSON leaves as it is and TOML forbids."""
    return written.replace("\x7f", "\\u007f")
