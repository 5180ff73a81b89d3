"""The mapping of an upload's columns to fields of a case: guessed by name, chosen by a person."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pytest_rageval.cases.exchange.reading import RowReading
from pytest_rageval.cases.exchange.row_files import value_of_cell
from pytest_rageval.cases.keys import CELLS
from pytest_rageval.cases.names import ANSWER, CONTEXTS, HEADINGS, LABELS, OF_SYSTEM, PLACES, QUESTION, field_of
from pytest_rageval.io.expected import flag_of
from pytest_rageval.io.suggestions import KEY_CUTOFF, suggestion
from pytest_rageval.model import Json

LEFT_OUT = ""
METADATA = "metadata.*"
"""Stored in `metadata` under the column's own name, uninterpreted."""
PLACE = {"document": PLACES, "section": HEADINGS}
"""Where the answer stands: a file, and the heading in it."""
FIELDS: tuple[str, ...] = (
    "question", "reference", *PLACE, "id", "tag", "contexts", "category", "difficulty", "domain"
)  # fmt: skip
"""The most frequent fields, first in the list of choices."""
CHOICES: tuple[str, ...] = (*FIELDS, *(name for name in CELLS if name not in FIELDS))
_MEANT: Mapping[str | None, str] = {
    QUESTION: "question", ANSWER: "reference", CONTEXTS: "contexts", PLACES: "document", HEADINGS: "section",
    **{name: name for name in LABELS if name != "history"}, **dict.fromkeys(OF_SYSTEM, LEFT_OUT),
}  # fmt: skip
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
    fields, taken = [METADATA] * len(names), {LEFT_OUT: False, METADATA: False}
    for position in sorted(range(len(names)), key=lambda position: guesses[position][1]):
        field = guesses[position][0]
        if not taken.get(part := _SAME.get(field, field)):
            fields[position] = field
            taken.setdefault(part, True)
    if choices == REFERENCE_CHOICES:
        fields = [field if field in choices else LEFT_OUT for field in fields]
    return [MappedColumn(name, field) for name, field in zip(names, fields, strict=True)]


def _guess(name: str) -> tuple[str, int]:
    """Return a field and its doubt: 0 by its own name, 1 by another tool's name, 2 by likeness."""
    word = name.strip().lower().replace(" ", "_").replace("-", "_")
    if word in CELLS:
        return word, 0
    if (field := field_of(name)) in _MEANT:
        return _MEANT[field], 1
    return suggestion(word, CELLS, cutoff=KEY_CUTOFF) or METADATA, 2


def mapping_problems(columns: Sequence[MappedColumn], *, are_references: bool = False) -> list[str]:
    """Return the problems of chosen fields: a duplicate, an unknown or a missing one."""
    fields = [column.field for column in columns if column.field not in (LEFT_OUT, METADATA)]
    needed, whose = (
        ((("question", "query"),), "") if not are_references else ((("id",), ("reference",)), " of the references")
    )
    return [
        *(f"two columns give {field!r}; choose one" for field in dict.fromkeys(fields) if fields.count(field) > 1),
        *(f"{field!r} is no field of a case" for field in dict.fromkeys(fields) if field not in CHOICES),
        *(
            f"no column{whose} gives the {names[0]}; choose which one does"
            for names in needed
            if {*names}.isdisjoint(fields)
        ),
    ]  # fmt: skip


def mapped_record(row: Mapping[str, Json], columns: Sequence[MappedColumn], *, is_table: bool) -> dict[str, Json]:
    """Return the record of a case with the chosen fields of a row; cells of a table are texts yet (`is_table`)."""
    read = _cell if is_table else lambda _, value: value
    there = [column for column in columns if row.get(column.name) is not None]
    chosen = {_key(column): read(column.field, row[column.name]) for column in there if column.field in CHOICES}
    if kept := {column.name.strip(): row[column.name] for column in there if column.field == METADATA}:
        own = chosen.get("metadata")
        chosen["metadata"] = {**kept, **own} if isinstance(own, dict) else kept
    fields = {QUESTION: "question"} if is_table else {}  # cells are no case yet: its checks would only cost time
    fields |= {PLACE[each.field]: json.dumps(_key(each), ensure_ascii=False) for each in there if each.field in PLACE}
    return RowReading(chosen, fields).case


def _key(column: MappedColumn) -> str:
    """Return the name by which the reader of rows knows a field; a place that fits none is kept under its own name."""
    is_known = field_of(column.name) == PLACE.get(column.field, LEFT_OUT)
    return column.name.strip() if is_known else column.field


def _cell(field: str, cell: Json) -> Json:
    kind = CELLS.get(field, "text")
    if kind == "flag" and (flag := flag_of(str(cell))) is not None:
        return flag
    return value_of_cell(field, str(cell)) if kind == "json" else cell
