"""Fields that a user assigns with `--map FIELD=EXPRESSION`: a name of a column or a JMESPath expression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import jmespath
from jmespath.exceptions import JMESPathError

from pytest_rageval.cases.exchange.case_rows import PlacedRow
from pytest_rageval.cases.exchange.map_hints import member_expression, steps_to
from pytest_rageval.cases.names import ALTERNATIVES, ANSWER, FACTS, FIELDS, IDS, PLACES, RETRIEVED
from pytest_rageval.errors import CaseError
from pytest_rageval.io.jmespaths import function_problems
from pytest_rageval.io.suggestions import did_you_mean

_KEYS_OF_FILES: Final[Mapping[str, str]] = {
    "reference": ANSWER,
    "expected_answers": ALTERNATIVES,
    "expected_key_facts": FACTS,
    "gold_supports": PLACES,
    "relevant_ids": IDS,
    "retrieved_chunks": RETRIEVED,
}
"""The keys of our own case files and answers files that `--map` has other names for."""


def parsed_fields(written: Iterable[str]) -> dict[str, str]:
    """Return what `--map FIELD=EXPRESSION` assigns, by field; raise CaseError for an unknown field.

    An empty expression says that nothing in the file is the field.
    """
    fields: dict[str, str] = {}
    for each in written:
        name, equals, expression = each.partition("=")
        field = _KEYS_OF_FILES.get(name, name)
        if field not in FIELDS or not equals:
            remedy = did_you_mean(name, FIELDS, f"; fields: {', '.join(FIELDS)}")
            raise CaseError(f"--map {each!r}: expected FIELD=EXPRESSION{remedy}")
        fields[field] = expression
    return fields


def expressions_for(mapped: Mapping[str, str], rows: Sequence[PlacedRow]) -> dict[str, str]:
    """Return an expression for each field; a name that a row has is that name, whatever JMESPath would read in it.

    Raise CaseError for an expression that calls a function wrongly: the library reports it only at the first search.
    """
    expressions: dict[str, str] = {}
    for field, written in mapped.items():
        steps = _steps_in(rows, written)
        if steps is not None:
            expressions[field] = member_expression(steps)
            continue
        try:
            problems = [*function_problems(jmespath.compile(written).parsed)]
        except JMESPathError:
            expressions[field] = member_expression([written])  # a column that this file lacks, as in "Expected answer"
            continue
        if problems:
            assigned = f"{field}={written}"
            raise CaseError(f"--map {assigned!r}: {'; '.join(problems)}")
        expressions[field] = written
    return expressions


def _steps_in(rows: Sequence[PlacedRow], written: str) -> Sequence[str] | None:
    """Return the names on the way to the member that is written as in our hints; None if no row has it."""
    if not written:
        return ()
    found = (steps_to(row, written) for _, row in rows)
    return next((steps for steps in found if steps is not None), None)
