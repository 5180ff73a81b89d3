"""The fields of a case that the columns of an uploaded file stand for: guessed, then chosen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pytest_rageval.cases.answerability import answerable_by, sign_of
from pytest_rageval.cases.exchange.reading import RowReading
from pytest_rageval.cases.exchange.tables import value_of_cell
from pytest_rageval.cases.keys import CELLS
from pytest_rageval.cases.names import (
    ANSWER,
    CONTEXTS,
    FACTS,
    HEADINGS,
    LABELS,
    OF_SYSTEM,
    PAGES,
    PLACES,
    QUESTION,
    field_of,
)
from pytest_rageval.io.expected import flag_of
from pytest_rageval.io.suggestions import KEY_CUTOFF, suggestion
from pytest_rageval.model import Json
from pytest_rageval.model.case_fields import DESCRIPTIVE_NAMES

LEFT_OUT = ""
METADATA = "metadata.*"
"""Stored in `metadata` under the column's own name, uninterpreted."""
PLACE = {"document": PLACES, "section": HEADINGS, "page": PAGES}
"""Where the answer stands: a file, and the heading or the page in it."""
FIELDS: tuple[str, ...] = (
    "question",
    "reference",
    "expected_key_facts",
    "answerable",
    *PLACE,
    "id",
    "tag",
    "contexts",
    *DESCRIPTIVE_NAMES,
)
"""The most frequent fields, first in the list of choices."""
CHOICES: tuple[str, ...] = (*FIELDS, *(name for name in CELLS if name not in FIELDS))
_MEANT: Mapping[str | None, str] = {
    QUESTION: "question",
    ANSWER: "reference",
    CONTEXTS: "contexts",
    FACTS: "expected_key_facts",
    PLACES: "document",
    HEADINGS: "section",
    PAGES: "page",
    **{name: name for name in LABELS if name != "history"},
    # Answers of a system are scored by a run; taken for references, they would all be right.
    **dict.fromkeys(OF_SYSTEM, LEFT_OUT),
}
_SAME = {"query": "question", "reference_answer": "reference", "expected_answers": "reference"}
REFERENCE_CHOICES = ("id", "reference")
"""Fields of a references file, which is joined to the questions by id."""


class MappedColumn(NamedTuple):
    """The name of a column, and its field: one of CHOICES, METADATA or LEFT_OUT."""

    name: str
    field: str


def guess_mapping(names: Sequence[str], choices: Sequence[str] = CHOICES) -> list[MappedColumn]:
    """Return a field for each column: by its name, by another tool's name, by likeness, or metadata.

    Each field is used once, for the best guess; in a file of references columns that are not chosen are left out.
    """
    guesses = [_guess(name) for name in names]
    fields = [METADATA] * len(names)
    given: set[str] = set()
    # The surest guesses first: a likeness must not take the field of a column with its very name.
    for position in sorted(range(len(names)), key=lambda position: guesses[position][1]):
        field = guesses[position][0]
        meaning = _SAME.get(field, field)
        if meaning in given:
            continue
        fields[position] = field
        if meaning not in (LEFT_OUT, METADATA):  # any number of columns may be these
            given.add(meaning)
    if choices == REFERENCE_CHOICES:
        fields = [field if field in choices else LEFT_OUT for field in fields]
    return [MappedColumn(name, field) for name, field in zip(names, fields, strict=True)]


def _guess(name: str) -> tuple[str, int]:
    """Return a field and its doubt: 0 by its own name, 1 by another tool's name, 2 by likeness."""
    word = name.strip().lower().replace(" ", "_").replace("-", "_")
    if word in CELLS:
        return word, 0
    if sign_of(name) in ("answerable", "unanswerable"):
        return "answerable", 1
    if (field := field_of(name)) in _MEANT:
        return _MEANT[field], 1
    return suggestion(word, CELLS, cutoff=KEY_CUTOFF) or METADATA, 2


def mapping_problems(columns: Sequence[MappedColumn], *, are_references: bool = False) -> list[str]:
    """Return the problems of chosen fields: a duplicate, an unknown or a missing one."""
    fields = [column.field for column in columns if column.field not in (LEFT_OUT, METADATA)]
    different = list(dict.fromkeys(fields))
    problems = [f"two columns give {field!r}; choose one" for field in different if fields.count(field) > 1]
    problems += [f"{field!r} is no field of a case" for field in different if field not in CHOICES]
    if are_references:
        needed: tuple[tuple[str, ...], ...] = (("id",), ("reference",))
        whose = " of the references"
    else:
        needed = (("question", "query"),)
        whose = ""
    for names in needed:
        if {*names}.isdisjoint(fields):
            problems.append(f"no column{whose} gives the {names[0]}; choose which one does")
    return problems


def mapped_record(row: Mapping[str, Json], columns: Sequence[MappedColumn], *, is_table: bool) -> dict[str, Json]:
    """Return the record of a case with the chosen fields of a row; cells of a table are texts yet (`is_table`)."""
    filled = [column for column in columns if row.get(column.name) is not None]
    chosen: dict[str, Json] = {}
    metadata: dict[str, Json] = {}
    # Expressions by which the reader of rows finds a meaning. Cells are no case yet: its checks would only cost time.
    expressions = {QUESTION: "question"} if is_table else {}
    for column in filled:
        value = row[column.name]
        if column.field in CHOICES:
            chosen[_key(column)] = _value(column, value, is_table=is_table)
        elif column.field == METADATA:
            metadata[column.name.strip()] = value
        if column.field in PLACE:
            expressions[PLACE[column.field]] = json.dumps(_key(column), ensure_ascii=False)
    if metadata:
        own = chosen.get("metadata")
        chosen["metadata"] = {**metadata, **own} if isinstance(own, dict) else metadata
    record = RowReading(chosen, expressions).case
    flag = chosen.get("answerable")
    if flag is not None and not isinstance(flag, bool):
        return {**record, "answerable": flag}  # reported as it was written
    return record


def _key(column: MappedColumn) -> str:
    """Return the name by which the reader of rows knows a field; a place that fits none is kept under its own name."""
    is_known = field_of(column.name) == PLACE.get(column.field, LEFT_OUT)
    return column.name.strip() if is_known else column.field


def _value(column: MappedColumn, written: Json, *, is_table: bool) -> Json:
    """Return what a column says in a row; a flag of the opposite, such as `unanswerable`, is turned round."""
    if column.field == "answerable":
        is_opposite = sign_of(column.name) == "unanswerable"
        flag = answerable_by("unanswerable" if is_opposite else "answerable", written)
        return written if flag is None else flag
    return _cell(column.field, written) if is_table else written


def _cell(field: str, cell: Json) -> Json:
    kind = CELLS.get(field, "text")
    if kind == "flag":
        flag = flag_of(str(cell))
        return cell if flag is None else flag
    return value_of_cell(field, str(cell)) if kind == "json" else cell
