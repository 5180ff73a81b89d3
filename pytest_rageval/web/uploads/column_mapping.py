"""The mapping of an upload's columns to fields of a case: guessed by name, chosen by a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.cases.exchange.values import places_of, with_headings
from pytest_rageval.cases.keys import CELLS
from pytest_rageval.cases.names import ANSWER, CONTEXTS, HEADINGS, OF_SYSTEM, PLACES, QUESTION, field_of
from pytest_rageval.io.suggestions import KEY_CUTOFF, suggestion
from pytest_rageval.model import Json

LEFT_OUT = ""
METADATA = "metadata.*"
"""Stored in `metadata` under the column's own name, uninterpreted."""
DOCUMENT, SECTION = _PLACE = ("document", "section")
"""Where the answer stands: a file, and the heading in it."""
FIELDS: tuple[str, ...] = (
    "question", "reference", DOCUMENT, SECTION, "id", "tag", "contexts", "category", "difficulty", "domain"
)  # fmt: skip
"""The most frequent fields, first in the list of choices."""
CHOICES: tuple[str, ...] = (*FIELDS, *(name for name in CELLS if name not in FIELDS))
_PARTS: Mapping[str | None, str] = {
    QUESTION: "question", ANSWER: "reference", CONTEXTS: "contexts", "id": "id", "category": "category",
    PLACES: DOCUMENT, HEADINGS: SECTION,
    **dict.fromkeys(OF_SYSTEM, LEFT_OUT),
}  # fmt: skip
REFERENCE_CHOICES = ("id", "reference")
"""Fields of a references file, which is joined to the questions by id."""
_CAMEL = str.maketrans({" ": "_", "-": "_"})


class MappedColumn(NamedTuple):
    """The name of a column, and its field: one of CHOICES, METADATA or LEFT_OUT."""

    name: str
    field: str


def guess_mapping(names: Sequence[str]) -> list[MappedColumn]:
    """Return a field for each column: by its name, by another tool's name, by likeness, or metadata.

    Each field is used once, for the best guess.
    """
    guesses = [_guess(name) for name in names]
    taken: set[str] = set()
    fields = [METADATA] * len(names)
    for certainty in (0, 1, 2):
        for position, (field, doubt) in enumerate(guesses):
            if doubt != certainty:
                continue
            if field in (LEFT_OUT, METADATA) or not _is_taken(field, taken):
                fields[position] = field
                taken.add(field)
    return [MappedColumn(name, field) for name, field in zip(names, fields, strict=True)]


def guess_reference_mapping(names: Sequence[str]) -> list[MappedColumn]:
    """Return the fields for a file of references, and leave its other columns out."""
    return [
        column if column.field in REFERENCE_CHOICES else column._replace(field=LEFT_OUT)
        for column in guess_mapping(names)
    ]


def _guess(name: str) -> tuple[str, int]:
    """Return a field and its doubt: 0 by its own name, 1 by another tool's name, 2 by likeness."""
    word = name.strip().lower().translate(_CAMEL)
    if word in CELLS:
        return word, 0
    if (field := field_of(name)) in _PARTS:
        return _PARTS[field], 1
    close = suggestion(word, CELLS, cutoff=KEY_CUTOFF)
    return (close, 2) if close else (METADATA, 2)


_SAME_PART = ({"question", "query"}, {"reference", "reference_answer", "expected_answers"})


def _is_taken(field: str, taken: set[str]) -> bool:
    return any(other in taken for group in _SAME_PART if field in group for other in group) or field in taken


def mapping_problems(columns: Sequence[MappedColumn]) -> list[str]:
    """Return the problems of chosen fields: a duplicate, an unknown field, or no question."""
    fields = [column.field for column in columns if column.field not in (LEFT_OUT, METADATA)]
    problems = [f"two columns give {field!r}; choose one" for field in dict.fromkeys(fields) if fields.count(field) > 1]
    problems += [f"{field!r} is no field of a case" for field in dict.fromkeys(fields) if field not in CHOICES]
    if not {"question", "query"} & {*fields}:
        problems.append("no column gives the question; choose which one does")
    return problems


def reference_problems(columns: Sequence[MappedColumn]) -> list[str]:
    """Return the problems of chosen fields for references: a duplicate or a missing field."""
    fields = [column.field for column in columns]
    problems = [f"two columns give the {field}; choose one" for field in REFERENCE_CHOICES if fields.count(field) > 1]
    return problems + [
        f"no column of the references gives the {field}; choose which one does"
        for field in REFERENCE_CHOICES
        if field not in fields
    ]


def pseudo_name(position: int) -> str:
    """Return the name under which a column without a field is read. No key has such a name."""
    return f"column {position + 1}"


def column_names(columns: Sequence[MappedColumn]) -> list[str]:
    """Return the name under which each column is read."""
    return [column.field if column.field in CELLS else pseudo_name(position) for position, column in enumerate(columns)]


def mapped_record(record: Mapping[str, Json], columns: Sequence[MappedColumn]) -> dict[str, Json]:
    """Return a record with the fields of its columns; `record` has the names of `column_names`."""
    mapped = dict(record)
    found = {column: mapped.pop(pseudo_name(position), None) for position, column in enumerate(columns)}
    document, section = (next((found[each] for each in columns if each.field == name), None) for name in _PLACE)
    place: dict[str, Any] = (places_of(document, PLACES) if document else None) or {}
    kept = {METADATA}
    if section and (places := with_headings(place.get("gold_supports"), section)):
        place["gold_supports"] = places
    elif section:
        kept.add(SECTION)
    mapped = place | mapped
    metadata = {
        column.name.strip(): value for column, value in found.items() if value is not None and column.field in kept
    }
    if metadata:
        own = mapped.get("metadata")
        mapped["metadata"] = {**metadata, **own} if isinstance(own, dict) else metadata
    return mapped
