"""YAML with its texts as they are written: `no`, `NO`, `off`, `12:30` and `1.50` are words, not flags and numbers."""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any

from pytest_rageval.cases.keys import CELLS
from pytest_rageval.io.expected import flag_of
from pytest_rageval.model import Json

_PLAIN = (
    ("tag:yaml.org,2002:bool", re.compile(r"true|True|TRUE|false|False|FALSE"), "tTfF"),
    ("tag:yaml.org,2002:int", re.compile(r"[-+]?(?:0|[1-9][0-9]*)"), "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        # `1.50` would lose its zero as a number: only those are numbers that are written as JSON writes them.
        re.compile(r"-?(?:0|[1-9][0-9]{0,14})\.(?:0|[0-9]{0,14}[1-9])|\.(?:nan|NaN|NAN)"),
        "-.0123456789",
    ),
    ("tag:yaml.org,2002:null", re.compile(r"~|null|Null|NULL|"), ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:merge", re.compile(r"<<"), "<"),
)
"""Which plain scalars are no texts: those of YAML 1.2, where YAML 1.1 has eight words more for true and false."""


def read_yaml(text: str) -> Json:
    """Return a document as JSON values, read safely; raise `yaml.YAMLError` if it is broken."""
    yaml = import_module("yaml")
    document = yaml.load(text, Loader=_loader(yaml))
    return json.loads(json.dumps(_with_flags(document), default=str), parse_constant=lambda _: None)


def _loader(yaml: Any) -> Any:
    class TextLoader(yaml.SafeLoader):  # type: ignore[misc]
        """The safe loader with fewer words that are no texts."""

        yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012 because the library reads it from the class

    for tag, pattern, first in _PLAIN:
        pattern = re.compile(rf"(?:{pattern.pattern})$")
        TextLoader.add_implicit_resolver(tag, pattern, list(first))
    return TextLoader


def _with_flags(document: Any) -> Any:
    """Return the document with the words under our own flags as flags: `answerable: no`."""
    rows = document.get("cases") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        return document
    for row in rows:
        if not isinstance(row, dict):
            continue
        for name, value in row.items():
            if CELLS.get(name) == "flag" and isinstance(value, str):
                flag = flag_of(value)
                row[name] = value if flag is None else flag
    return document
