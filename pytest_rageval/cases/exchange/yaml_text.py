"""YAML with its texts as they are written: `no`, `NO`, `off`, `12:30` and `1.50` are words, not flags and numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from pytest_rageval.cases.keys import CELLS
from pytest_rageval.io.expected import flag_of
from pytest_rageval.io.messages import shown_value
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


_SURROGATE = re.compile("[\ud800-\udfff]")
MOST_CHARACTERS = 2**27
"""Size of a document once its aliases are replaced by what they refer to: 400 bytes can stand for 10⁹ values."""
_CHARACTERS_OF_A_VALUE = 32
"""What a value counts beside its text, since an empty one takes memory too."""


class UnreadableYamlError(ValueError):
    """A document that cannot be read, with its reason and the 1-based place."""

    def __init__(self, problem: str, mark: Any = None) -> None:
        super().__init__(problem)
        self.line = 1 if mark is None else mark.line + 1
        self.column = 1 if mark is None else mark.column + 1


def read_yaml(text: str) -> Json:
    """Return a document as JSON values, read safely; raise UnreadableYamlError if it is broken, or too large."""
    yaml = import_module("yaml")
    try:
        loader = _loader(yaml)(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _DocumentSize(yaml).check(node)
        document = loader.construct_document(node)
        # Through JSON, since YAML also has dates, infinities and keys that are no texts.
        return json.loads(json.dumps(_with_flags(document), default=str), parse_constant=lambda _: None)
    except yaml.reader.ReaderError as error:
        raise UnreadableYamlError(f"the character {error.character:#x} at {error.position} is not allowed") from None
    except yaml.YAMLError as error:
        raise UnreadableYamlError(error.problem, error.problem_mark) from None
    except RecursionError:
        raise UnreadableYamlError("is nested too deep") from None
    except UnreadableYamlError:
        raise
    except (ValueError, TypeError, AttributeError, OverflowError):
        # The library's readers of `!!int`, `!!timestamp` and others raise whatever happens in them.
        raise UnreadableYamlError("a value does not fit its tag, or has thousands of digits") from None


class _DocumentSize:
    """Checks the nodes of a document before values are made of them: repeated keys, and what aliases come to."""

    def __init__(self, yaml: Any) -> None:
        self._yaml = yaml
        self._sizes: dict[int, int] = {}
        self._under_way: set[int] = set()

    def check(self, node: Any) -> int:
        """Return the size of a node in characters, each alias counted as what it refers to."""
        # Each node once: counted anew at each alias, aliases of aliases would take exponential time.
        if id(node) in self._sizes:
            return self._sizes[id(node)]
        if id(node) in self._under_way:
            raise UnreadableYamlError("an alias refers to what it is in", node.start_mark)
        self._under_way.add(id(node))
        size = _CHARACTERS_OF_A_VALUE
        for part in self._parts(node):
            size += len(part) if isinstance(part, str) else self.check(part)
        self._under_way.remove(id(node))
        if size > MOST_CHARACTERS:
            problem = f"holds aliases for more than {MOST_CHARACTERS:,} characters; write out what they stand for"
            raise UnreadableYamlError(problem, node.start_mark)
        self._sizes[id(node)] = size
        return size

    def _parts(self, node: Any) -> Iterator[Any]:
        """Yield the text of a scalar, or the nodes within a list or mapping; its keys must differ."""
        if isinstance(node, self._yaml.ScalarNode):
            if _SURROGATE.search(node.value):
                raise UnreadableYamlError("holds half of a surrogate pair, which is no character", node.start_mark)
            yield node.value
        elif isinstance(node, self._yaml.SequenceNode):
            yield from node.value
        else:
            lines: dict[tuple[str, str], int] = {}
            for key, value in node.value:
                if isinstance(key, self._yaml.ScalarNode):
                    name = (key.tag, key.value)
                    if name in lines:
                        place = f"first at line {lines[name]}"
                        twice = f"{shown_value(key.value)} stands twice in one mapping, {place}; keep one"
                        raise UnreadableYamlError(twice, key.start_mark)
                    lines[name] = key.start_mark.line + 1
                yield key
                yield value


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
