"""Hints with `--map`, written so that a shell and the conversion read them back as they are meant."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence

from pytest_rageval.model import Json


def map_option(field: str, expression: str) -> str:
    """Return `--map FIELD=EXPRESSION` with the quotes that a shell needs; the expression may be a column's name."""
    return f"--map {shlex.quote(f'{field}={expression}')}"


def member_expression(steps: Iterable[str]) -> str:
    """Return the JMESPath expression of a member within objects; `steps` are the names on the way."""
    return ".".join(_identifier(step) for step in steps)


def _identifier(name: str) -> str:
    """Return a name in JMESPath; `Question (customer)` would be the call of a function."""
    if name.isidentifier() and name.isascii():
        return name
    return json.dumps(name, ensure_ascii=False)


def differs_from(member: str, values: Sequence[Json]) -> str:
    """Return the expression that is true where a member is none of the values."""
    if len(values) == 1:
        return f"{member} != {_literal(values[0])}"
    return f"!contains({_literal(list(values))}, {member})"


def equal_to(member: str, value: Json) -> str:
    return f"{member} == {_literal(value)}"


def _literal(value: Json) -> str:
    written = json.dumps(value, ensure_ascii=False).replace("`", "\\`")
    return f"`{written}`"


def steps_to(row: Mapping[str, Json], path: str) -> tuple[str, ...] | None:
    """Return the names on the way to a member whose path is joined by points; None if the row has no such member."""
    if path in row:
        return (path,)
    for name, value in row.items():
        if isinstance(value, dict) and path.startswith(f"{name}."):
            below = steps_to(value, path[len(name) + 1 :])
            if below is not None:
                return (name, *below)
    return None
