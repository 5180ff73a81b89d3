"""JMESPath expressions that find the fields of an answer in a mapped API's response, checked before use.

Source: jmespath.org/specification.html. Expressions are the user's, responses are not: they are searched, never run.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jmespath
from jmespath.exceptions import IncompleteExpressionError, JMESPathError
from jmespath.functions import Functions

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.model import Chunk, Edge, Entity, FolderSelection, Json, Reference, Trace
from pytest_rageval.targets.native_contract import RECORD_FIELDS
from pytest_rageval.targets.values import Wrong

EACH = "each"
"""The key of a table whose value finds a list; the table's other expressions then look into each item of it."""


class Expression:
    """One JMESPath expression. SettingsError if it is none."""

    def __init__(self, written: str, place: str) -> None:
        self.written = written
        try:
            # It warns of unquoted literals, which it reads well; a project may have made errors of warnings.
            with warnings.catch_warnings(action="ignore", category=PendingDeprecationWarning):
                self._compiled = jmespath.compile(written)
        except (JMESPathError, RecursionError) as error:
            raise SettingsError(
                f"{place} is {shown_value(written)}, no JMESPath expression: {_reason(error)}"
            ) from None
        if problems := list(_function_problems(self._compiled.parsed)):
            raise SettingsError(f"{place} is {shown_value(written)}, no JMESPath expression: {'; '.join(problems)}")

    def find(self, data: Json, path: str) -> Json:
        """What stands there, None if nothing does; Wrong where the response has a type that the expression cannot."""
        try:
            return self._compiled.search(data)
        except Exception as error:  # noqa: BLE001 - a library's interpreter over any data: it concerns this case alone
            reason = str(error).splitlines() or [type(error).__name__]
            raise Wrong(path, self.written, f"an expression that fits the response: {reason[0][:200]}") from None


@dataclass(frozen=True, slots=True)
class Table:
    """An object, or for each item of a list one, with what its expressions find."""

    fields: Mapping[str, Expression | Table]
    each: Expression | None = None

    def find(self, data: Json, path: str) -> Json:
        """As for one expression: None where nothing was found."""
        if self.each is None:
            return self._object(data, path)
        items = self.each.find(data, path)
        if not isinstance(items, list):
            return items
        objects = []
        for position, item in enumerate(items):
            place = f"{path}[{position}]"
            members = self._object(item, place)
            if members is None:
                raise Wrong(place, item, f"an item in which one of {', '.join(self.fields)} is found as mapped")
            objects.append(members)
        return objects

    def _object(self, data: Json, path: str) -> dict[str, Json] | None:
        inner = f"{path}." if path else ""
        members = {name: part.find(data, inner + name) for name, part in self.fields.items()}
        return {name: value for name, value in members.items() if value is not None} or None


def response_table(response: Mapping[str, Any], place: str) -> Table:
    """The expressions of a mapping, compiled; SettingsError names every problem in it, one line each."""
    problems: list[str] = []
    table = _table(response, place, _RESPONSE, problems)
    if not response.keys() & {"answer", "retrieved_chunks"}:
        problems.append(f"{place} finds neither 'answer' nor 'retrieved_chunks'; map one of them")
    if problems:
        raise SettingsError(*problems)
    return table


# ── what may be mapped ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a table may hold: these names, or any; whether it is a list of such objects; tables within it."""

    names: frozenset[str] | None
    is_list: bool = False
    tables: Mapping[str, _Shape] = field(default_factory=dict)

    def table(self, name: str) -> _Shape | None:
        return _FREE if self.names is None else self.tables.get(name)


def _names(model: type[Any]) -> frozenset[str]:
    return frozenset(member.name for member in dataclasses.fields(model)) - {"extra"}


_FREE = _Shape(None)
_TRACE = _Shape(
    _names(Trace),
    tables={
        "entities": _Shape(_names(Entity), is_list=True),
        "kg_edges": _Shape(frozenset(Edge._fields), is_list=True),
        "inferences": _Shape(None, is_list=True),
        "entity_types": _FREE,
    },
)
_RESPONSE = _Shape(
    RECORD_FIELDS - {"debug"},
    tables={
        "retrieved_chunks": _Shape(_names(Chunk), is_list=True),
        "references": _Shape(_names(Reference), is_list=True),
        "folder_selection": _Shape(_names(FolderSelection)),
        "trace": _TRACE,
        **dict.fromkeys(("latency", "usage", "versions", "indexing_coverage"), _FREE),
    },
)


def _table(written: Mapping[str, Any], place: str, shape: _Shape, problems: list[str]) -> Table:
    compiled: dict[str, Expression | Table] = {}
    each = None
    if shape.is_list and EACH not in written:
        problems.append(f"{place}.{EACH} is missing: the expression that finds the list")
    if not written.keys() - {EACH}:
        problems.append(f"{place} maps nothing")
    for name, part in written.items():
        here = f"{place}.{name}"
        inner = shape.table(name)
        try:
            if name == EACH and shape.is_list:
                each = _expression(part, here)
            elif shape.names is not None and name not in shape.names:
                problems.append(f"{here} is not a field of an answer{_nearest(name, shape.names)}")
            elif isinstance(part, Mapping) and inner is not None:
                compiled[name] = _table(part, here, inner, problems)
            else:
                compiled[name] = _expression(part, here)
        except SettingsError as error:
            problems += error.problems
    return Table(compiled, each)


def _expression(written: Any, place: str) -> Expression:
    if not isinstance(written, str):
        raise SettingsError(f"{place} is {shown_value(written)}, expected a JMESPath expression, as in 'result.text'")
    return Expression(written, place)


def _nearest(name: str, fields: frozenset[str]) -> str:
    return did_you_mean(name, fields, f"; fields are {', '.join(sorted(fields))}")


# ── what is wrong with an expression ──────────────────────────────────────────────────────────────────────────


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    if isinstance(error, IncompleteExpressionError):
        return "it is incomplete"
    reason = getattr(error, "message", None) or getattr(error, "msg", None)
    if reason is None:
        return "it is empty"
    return f"{reason} at column {getattr(error, 'lex_position', 0) + 1}"


def _function_problems(part: Any) -> Iterator[str]:
    """Functions that do not exist, or want other arguments: the library would only say so at the first answer."""
    if not isinstance(part, dict):
        return
    if part["type"] == "function_expression":
        functions, name, arguments = Functions.FUNCTION_TABLE, part["value"], len(part["children"])
        if name not in functions:
            yield f"there is no function {name}(){_nearest(name, frozenset(functions))}"
        else:
            signature = functions[name]["signature"]
            is_open = bool(signature and signature[-1].get("variadic"))
            if arguments < len(signature) or (arguments > len(signature) and not is_open):
                yield f"{name}() takes {len(signature)}{' or more' if is_open else ''} arguments, not {arguments}"
    for child in part.get("children", ()):
        yield from _function_problems(child)
