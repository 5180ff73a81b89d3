"""The list of a run's cases as an address asks for it: filter, order, page, and the way from case to case."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

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
from pytest_rageval.config.project import Project
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.text import printable
from pytest_rageval.web.index.case_rows import CASE_COLUMNS, SEPARATOR
from pytest_rageval.web.index.case_tables import IndexedCases, open_cases, open_compared_cases
from pytest_rageval.web.index.run_index import RunIndex

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


T = TypeVar("T")
ROWS = 50
"""Cases on a page of the list."""


class CaseQuery(NamedTuple):
    """What an address asks of the list: a filter, an order (a metric, `id`, `latency`; `-` turns it), a page."""

    q: str = ""
    sort: str = ""
    page: int = 1


@dataclass(frozen=True)
class CasePage:
    """A page of the list: `left` cases meet the filter. `problem`: what filter or order mean nothing; then no rows."""

    query: CaseQuery
    rows: Sequence[CaseRow]
    left: int
    total: int
    metrics: Sequence[str]
    problem: str = ""

    @property
    def pages(self) -> int:
        return max(1, -(-self.left // ROWS))

    @property
    def first(self) -> int:
        """The place of the first row in the order, counted from 1."""
        return (self.query.page - 1) * ROWS + 1


class CaseList:
    """The cases of one run, finished or not; SettingsError where a file of the run is damaged.

    against  the page on which it is compared with a run that was chosen
    """

    def __init__(self, index: RunIndex, run: StoredRun, project: Project, against: PageRun | None = None) -> None:
        self._index = index
        before = against.before if against is not None else None
        if against is None or before is None:
            self._opened: Callable[[], IndexedCases] = lambda: open_cases(index, run, project.baseline_file)
        else:
            self._opened = lambda: open_compared_cases(index, against, before.name)
        self._table = self._opened()

    def _ask(self, question: Callable[[sqlite3.Connection, IndexedCases], T]) -> T:
        """What the tables of the cases answer. Those of a run that goes on are replaced now and then: then the next."""
        try:
            return self._index.read(lambda connection: question(connection, self._table))
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            self._table = self._opened()
            return self._index.read(lambda connection: question(connection, self._table))

    def page(self, query: CaseQuery) -> CasePage:
        """The cases that an address asks for; of a page beyond the last one, the last."""
        try:
            found = self._ask(
                lambda connection, table: case_rows_page(
                    connection, table, query.q, query.sort, page=query.page, size=ROWS
                )
            )  # fmt: skip
        except FilterError as error:
            table = self._table
            return CasePage(query._replace(page=1), (), 0, table.cases, table.metrics, str(error))
        last = max(1, -(-found.left // ROWS))
        if query.page > last:
            return self.page(query._replace(page=last))
        return CasePage(query, found.rows, found.left, found.total, self._table.metrics)

    def key_of(self, shown: str) -> str:
        """The key of a case as an address holds it, which has no control characters; as it stands where none is so."""
        keys = self._ask(case_keys)
        return shown if shown in keys else next((key for key in keys if printable(key) == shown), shown)

    def neighbours(self, key: str, query: CaseQuery) -> Neighbours:
        """The cases before and after one; none where the filter means nothing any more: the list says what is wrong."""
        try:
            return self._ask(lambda connection, table: neighbours(connection, table, key, query.q, query.sort))
        except FilterError:
            return Neighbours(None, 0, None, None)
