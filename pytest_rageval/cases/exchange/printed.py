"""Values as programs print them into cells: lists and arrays of Python, numpy and pandas, and words for nothing."""

from __future__ import annotations

import ast
import json
import math
import re

from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import Json

_NOTHING = frozenset(
    ["nan", "n/a", "#n/a", "null", "<na>", "nat", "#div/0!", "#name?", "#null!", "#num!", "#ref!", "#value!"]
)
"""What pandas, Excel and people write for an empty cell, and Excel for a formula that failed, in lower case."""


_LONG = 12
"""Characters beyond which a text can only be blank: every cell of a file is asked several times."""


def is_nothing(value: Json) -> bool:
    """Return True for a value that says nothing: absent, blank, `nan`, `N/A`, `null`, or empty."""
    if isinstance(value, str):
        if len(value) > _LONG:
            return value.isspace()
        plain = value.strip()
        return not plain or plain.lower() in _NOTHING
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or value == [] or value == {}


def printed_value(text: str) -> Json:
    """Read a list or an object, in JSON or as Python, numpy or pandas print it; return None for any other text."""
    bare = text.strip()
    if not bare.startswith(("[", "{", "array(")):
        return None
    try:
        return parse(bare)
    except StrictJsonError:
        pass
    if (items := _flat_list(bare)) is not None:
        return items
    try:
        # Literals alone: a cell of somebody's file is never run.
        value = ast.literal_eval(_ArraysAsLists().visit(ast.parse(bare, mode="eval")))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return json_value(value) if isinstance(value, (list, dict)) else None


_ARRAY = re.compile(r"array\((\[.*\])(?:, *dtype=[\w<>.'\"]+)?\)", re.DOTALL)
_ITEM = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<bare>[-+.\w/<>]+))\s*(?:,|(?=\s|$|['"]))""", re.DOTALL
)


def _flat_list(text: str) -> list[Json] | None:
    """Return the texts and numbers of a printed list, also without commas between them; None for any other text.

    numpy and pandas print arrays without commas. Python itself would read their neighbouring strings as one.
    """
    if array := _ARRAY.fullmatch(text):
        text = array[1]
    if not (text.startswith("[") and text.endswith("]")):
        return None
    inner = text[1:-1].strip()
    items: list[Json] = []
    position = 0
    while position < len(inner):
        item = _ITEM.match(inner, position)
        if item is None:
            return None
        try:
            value = ast.literal_eval(item["text"]) if item["text"] else _bare_item(item["bare"])
        except (ValueError, SyntaxError):
            return None
        if not is_nothing(value):
            items.append(value)
        position = item.end()
    return items


class _ArraysAsLists(ast.NodeTransformer):
    """Replaces `array([...], dtype=object)` within a printed object by its list."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        is_array = isinstance(node.func, ast.Name) and node.func.id == "array" and len(node.args) == 1
        return node.args[0] if is_array else node


_WORDS = {"None": None, "True": True, "False": False, "true": True, "false": False}


def _bare_item(word: str) -> Json:
    """Return what a word between strings means: a number, a flag or nothing; raise ValueError for any other."""
    if word in _WORDS:
        return _WORDS[word]
    if word.lower() in _NOTHING:
        return None
    number = float(word)
    return int(number) if number.is_integer() else number


def json_value(value: object) -> Json:
    """Return a value of Python as one of JSON: dates as text, infinite numbers as nothing."""
    return json.loads(json.dumps(value, default=str), parse_constant=lambda _: None)
