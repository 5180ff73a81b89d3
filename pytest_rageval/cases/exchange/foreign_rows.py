"""Foreign rows taken apart, before it is known what their members mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.cases.exchange.checks import filled_variables, single_checks, with_files, written_checks
from pytest_rageval.cases.exchange.column_values import KEPT, may_grade, meaning_by_name
from pytest_rageval.cases.exchange.columns import Columns, decide_columns
from pytest_rageval.cases.exchange.exchange import EXTRA_PARTS
from pytest_rageval.cases.exchange.expected_calls import with_expected_tools
from pytest_rageval.cases.exchange.gold_objects import is_grades
from pytest_rageval.cases.exchange.printed import is_nothing, printed_value
from pytest_rageval.cases.exchange.promptfoo_lists import unread_lists
from pytest_rageval.cases.exchange.values import TEXTS_OF_OBJECTS, as_object
from pytest_rageval.cases.keys import KEYS
from pytest_rageval.cases.names import (
    ALTERNATIVES,
    ANSWER,
    ANSWERABLE,
    CONTEXTS,
    FACTS,
    GIVEN,
    IDS,
    PAGES,
    PLACES,
    QUESTION,
    field_of,
)
from pytest_rageval.io.messages import Unsound
from pytest_rageval.model import NOTHING, NOWHERE, Json

_OURS = ("description", "name", "source_file")
"""Fields that our own exports fill in; ignored on import."""
LISTED = frozenset([CONTEXTS, FACTS, PLACES, IDS, PAGES, ALTERNATIVES])
"""Fields of lists, also where a program printed the list into a text."""


@dataclass(frozen=True, slots=True)
class ForeignRow:
    """A row taken apart, before it is known what its members mean.

    own     the row itself, if it is a case in our own format
    extra   the parts of a case that our own export kept
    unread  variables of promptfoo whose files cannot be read, and `notes`, why
    """

    row: Mapping[str, Json]
    own: Mapping[str, Json] | None = None
    extra: Json = None
    checks: Sequence[Mapping[str, Json]] = ()
    leaves: Mapping[str, Json] = field(default_factory=dict)
    unread: Mapping[str, Json] = field(default_factory=dict)
    notes: Sequence[str] = ()


def foreign_row(written: Mapping[str, Json], folder: Path = Path(), *, may_be_own: bool = True) -> ForeignRow:
    """Take a row apart; files that it names are read below the folder."""
    # Our own cases are taken as they are: guesses could only spoil them.
    if may_be_own and is_case(written):
        own = {name: value for name, value in written.items() if value is not None}
        for name in ("reference", "reference_answer"):
            if is_nothing(own.get(name)):
                own.pop(name, None)
        return ForeignRow(row=written, own=own)
    row = {name: _read_object(value) for name, value in written.items()}
    extra = _extra_of(row)
    unread: dict[str, Json] = {}
    notes: Sequence[str] = ()
    if isinstance(variables := row.get("vars"), dict):
        with_texts, unread, reasons = with_files(variables, folder)
        notes = [*reasons, *unread_lists(variables)]
        row["vars"] = filled_variables(with_texts)
    row = with_expected_tools(row)
    checks = [*single_checks(row.pop("assert", None), row.get("vars")), *written_checks(row)]
    leaves = dict(_leaves(row))
    return ForeignRow(row=row, extra=extra, checks=checks, leaves=leaves, unread=unread, notes=notes)


def _read_object(value: Json) -> Json:
    """Return an object that numpy or pandas printed into a cell, with arrays in it; any other value as it is."""
    if not isinstance(value, str) or not value.startswith("{") or "array(" not in value:
        return value
    read = printed_value(value)
    return read if isinstance(read, dict) else value


def columns_of(
    rows: Sequence[ForeignRow],
    fields: Mapping[str, str] = NOTHING,
    mapped: Mapping[str, str] = NOTHING,
    *,
    is_of_system: bool = False,
) -> Columns:
    """Decide what the members of a file's rows mean.

    fields  the expressions by field, of a format or of a user
    mapped  those of a user
    """
    foreign = [row for row in rows if row.own is None]
    covered: set[str] = set()
    whole_names: set[str] = set()
    for row in foreign:
        whole_names.update(name for name in row.row if "." in name)
    for name, expression in mapped.items():
        is_column_of_flags = name == ANSWERABLE and SIMPLE.fullmatch(expression)
        if not is_column_of_flags:
            covered.update(roots_of(expression))
    return decide_columns(
        [row.leaves for row in foreign],
        fields,
        covered,
        mapped,
        whole_names,
        has_answer=any(row.checks for row in foreign),
        is_of_system=is_of_system,
    )


def _extra_of(row: dict[str, Json]) -> Json:
    """Take the parts of a case out of a row that our own export wrote, and the fields that it filled in."""
    extra = row.pop(EXTRA_PARTS, None)
    for name in KEPT:
        if isinstance(kept := row.get(name), dict) and EXTRA_PARTS in kept:
            extra = kept[EXTRA_PARTS]
            row[name] = {key: value for key, value in kept.items() if key != EXTRA_PARTS}
    extra = as_object(extra)
    if extra is not None:
        for name in _OURS:
            row.pop(name, None)
    return extra


def is_case(row: Mapping[str, Json]) -> bool:
    """Return True if the row is a line of our own case format without extra parts."""
    # Unknown keys are looked for first: the reader names the nearest known ones, which takes a millisecond.
    if not row.keys() <= KEYS.keys():
        return False
    try:
        case, _ = case_from_record(dict(row), NOWHERE)
    except Unsound:
        return False
    return EXTRA_PARTS not in case.metadata


def _leaves(row: Mapping[str, Json], above: str = "") -> Iterator[tuple[str, Json]]:
    """Yield the members of a row by path; objects are entered, except metadata, spans, grades and the like."""
    for name, value in row.items():
        path = f"{above}{name}"
        is_entered = isinstance(value, dict) and bool(value) and above.count(".") < 2 and name not in _WHOLE
        if is_entered and "answer_start" not in value and not _holds_grades(name, value):
            yield from _leaves(value, f"{path}.")
        elif isinstance(value, str) and value.startswith(("[", "array(")) and meaning_by_name(path) in LISTED:
            items = printed_value(value)
            yield path, value if items is None else items
        else:
            yield path, value


_WHOLE = (*KEPT, "gold")


def _holds_grades(name: str, value: Json) -> bool:
    return is_grades(value) and may_grade(name)


def member_at(leaves: Mapping[str, Json], path: str) -> Json:
    """Return the member of a path, also within the metadata."""
    if path in leaves:
        return leaves[path]
    above, _, name = path.partition(".")
    inner = leaves.get(above)
    return inner.get(name) if isinstance(inner, dict) else None


_STEPS = r"(?:[\w-]+|\"[^\"]+\")(?:\.(?:[\w-]+|\"[^\"]+\"))*"
SIMPLE = re.compile(_STEPS)
"""An expression that is only the path of a member."""


def roots_of(expression: str) -> list[str]:
    """Return the paths that an expression begins with, such as `a.b` and `c` of `a.b[].d || c`."""
    return [root.replace('"', "") for root in re.findall(rf"(?:^|\|\|\s*|\[\s*|\(\s*)({_STEPS})", expression)]


def is_within(leaf: str, path: str) -> bool:
    """Return True if a leaf is the member at this path, or below it."""
    return leaf == path or leaf.startswith(f"{path}.")


def member_named(value: Mapping[str, Json], field_name: str) -> str | None:
    """Return the member of an object that holds the value of a field: by its name, or the only one."""
    if field_name == QUESTION and "messages" in value:
        return "messages"
    meant = (GIVEN, ANSWER) if field_name in (ANSWER, GIVEN) else (field_name,)
    named = [name for name in value if field_of(name) in meant]
    if named or len(value) == 1:
        return named[0] if named else next(iter(value))
    return next((name for name in TEXTS_OF_OBJECTS if name in value), None)
