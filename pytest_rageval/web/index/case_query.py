"""Filter, order and paging of a run's cases as SQL: names of columns are ours, whatever a person wrote is bound."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_rageval.comparison.filter_language import (
    DROP,
    LATENCY,
    LEVEL,
    Condition,
    Filter,
    FilterError,
    HasFallen,
    HasId,
    HasText,
    IsOneOf,
    read_filter,
)
from pytest_rageval.web.index.case_rows import CASE_COLUMNS, SEPARATOR
from pytest_rageval.web.index.case_tables import IndexedCases

LONGEST, MOST_TERMS = 4_000, 100
"""Characters and terms of a filter: SQLite nests conditions no deeper than 1,000."""
_COLUMNS = {"outcome": "outcome", "changed": "change", "category": "category", "difficulty": "difficulty",
            "domain": "domain", "file": "file"}  # fmt: skip
_LISTS = {"tag": "tags", "layer": "layers"}
_NUMBERS = {LATENCY: "latency", DROP: "fall", LEVEL: "level"}


class CaseRow(NamedTuple):
    """A case of a list. `number` is its place among all cases, the worst first; `fall`, negative, that of `fallen`."""

    number: int
    key: str
    id: str
    file: str
    outcome: str
    change: str
    category: str
    difficulty: str
    domain: str
    tags: tuple[str, ...]
    layers: tuple[str, ...]
    falls: tuple[str, ...]
    latency: int | None
    fall: float
    level: float
    fallen: str | None
    question: str
    answer: str
    why: str
    place: str
    trials: int
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CaseRowsPage:
    """A page of the cases that a filter leaves: `left` of `total`."""

    rows: Sequence[CaseRow]
    left: int
    total: int


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Where a case stands among those that a filter leaves, from 1, and the keys beside it; None at the ends.

    `position` is None of a case that the filter leaves out.
    """

    position: int | None
    left: int
    previous: str | None
    next: str | None


class _Where(NamedTuple):
    sql: str
    values: tuple[Any, ...]
    needs_texts: bool


def case_rows_page(
    connection: sqlite3.Connection,
    table: IndexedCases,
    query: str = "",
    sort: str = "",
    *,
    size: int = 50,
    page: int = 1,
) -> CaseRowsPage:
    """One page of a run's cases; FilterError where filter or order mean nothing in it."""
    where, order = _where(query, table), order_of(sort, table)
    source = _source(table, where)
    (left,) = connection.execute(f"SELECT count(*) FROM {source} WHERE {where.sql}", where.values).fetchone()  # noqa: S608
    # Numbers first: only the rows of the page are taken out of their table.
    numbers = f"SELECT c.number FROM {source} WHERE {where.sql} ORDER BY {order} LIMIT ? OFFSET ?"  # noqa: S608
    limits = (size, min(size * (max(page, 1) - 1), 2**62))
    rows = connection.execute(
        f"SELECT * FROM {table.name} AS c WHERE c.number IN ({numbers}) ORDER BY {order}",  # noqa: S608
        (*where.values, *limits),
    )
    return CaseRowsPage([_row(row, table) for row in rows], left, table.cases)


def case_keys(connection: sqlite3.Connection, table: IndexedCases, query: str = "", sort: str = "") -> list[str]:
    """Keys of the cases that a filter leaves, in order; FilterError as with `case_rows_page`."""
    where, order = _where(query, table), order_of(sort, table)
    source = _source(table, where)
    rows = connection.execute(f"SELECT c.key FROM {source} WHERE {where.sql} ORDER BY {order}", where.values)  # noqa: S608
    return [key for (key,) in rows]


def neighbours(
    connection: sqlite3.Connection, table: IndexedCases, key: str, query: str = "", sort: str = ""
) -> Neighbours:  # fmt: skip
    """The cases before and after one in a filter's order; FilterError as with `case_rows_page`."""
    keys = case_keys(connection, table, query, sort)
    if key not in keys:
        return Neighbours(None, len(keys), None, None)
    place = keys.index(key)
    return Neighbours(
        place + 1, len(keys), keys[place - 1] if place else None, keys[place + 1] if place + 1 < len(keys) else None
    )


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _row(row: Sequence[Any], table: IndexedCases) -> CaseRow:
    facts = dict(zip(CASE_COLUMNS, row, strict=False))
    scores = zip(table.metrics, row[len(CASE_COLUMNS) :], strict=True)
    lists = {name: tuple(filter(None, facts[name].split(SEPARATOR))) for name in ("tags", "layers", "falls")}
    return CaseRow(**facts | lists, scores={name: score for name, score in scores if score is not None})


def _source(table: IndexedCases, where: _Where) -> str:
    return f"{table.name} AS c" + (f" JOIN {table.texts} AS t ON t.number = c.number" if where.needs_texts else "")


# ── conditions ────────────────────────────────────────────────────────────────────────────────────────────────


def _where(query: str, table: IndexedCases) -> _Where:
    if len(query) > LONGEST:
        raise FilterError(f"the filter is longer than {LONGEST:,} characters")
    filters = read_filter(query, table.vocabulary)
    if len(filters) > MOST_TERMS:
        raise FilterError(f"the filter has {len(filters)} terms, more than {MOST_TERMS}")
    parts = [_filter(each, table) for each in filters]
    sql = " AND ".join(sql for sql, _ in parts) or "1"
    values = tuple(value for _, bound in parts for value in bound)
    return _Where(sql, values, any(isinstance(each.condition, HasText) for each in filters))


def _filter(asked: Filter, table: IndexedCases) -> tuple[str, tuple[Any, ...]]:
    sql, values = _condition(asked.condition, table)
    if not all(map(_is_storable, values)):  # half a character: no text that is kept has it
        sql, values = "0", ()
    return (f"NOT ({sql})" if asked.is_negated else f"({sql})"), values


def _condition(condition: Condition, table: IndexedCases) -> tuple[str, tuple[Any, ...]]:
    match condition:
        case HasText(text):
            return "instr(t.text, ?) > 0", (text,)
        case HasId(text):
            return "instr(c.id, ?) > 0", (text,)
        case HasFallen(metric):
            return "instr(c.falls, ?) > 0", (_within(metric),)
        case IsOneOf(word, values) if word in _LISTS:
            either = " OR ".join([f"instr(c.{_LISTS[word]}, ?) > 0"] * len(values))
            return either, tuple(map(_within, sorted(values)))
        case IsOneOf(word, values):
            return f"c.{_COLUMNS[word]} IN ({', '.join('?' * len(values))})", tuple(sorted(values))
        case _:
            return f"coalesce(c.{_column(condition.name, table)} {condition.sign} ?, 0)", (condition.limit,)


def _column(name: str, table: IndexedCases) -> str:
    return _NUMBERS[name] if name in _NUMBERS else table.column(name)


def _within(word: str) -> str:
    return f"{SEPARATOR}{word}{SEPARATOR}"


def _is_storable(value: Any) -> bool:
    try:
        return not isinstance(value, str) or bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


def order_of(sort: str, table: IndexedCases) -> str:
    """The ORDER BY of `latency`, `-latency`, `id` or a metric; the worst first where none is named."""
    name, way = sort.removeprefix("-"), "DESC" if sort.startswith("-") else "ASC"
    if not sort:
        return "c.number"
    if name == "id":
        return f"c.id {way}, c.number"
    known = name if name in _NUMBERS else table.vocabulary.metric(name)
    if known is None:
        raise FilterError(f"{name!r} is nothing to sort by; there are id, {', '.join([*_NUMBERS, *table.metrics])}")
    column = _column(known, table)
    return f"c.{column} IS NULL, c.{column} {way}, c.number"
