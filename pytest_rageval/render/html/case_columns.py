"""The cases of an HTML report as columns for its script, which lists and filters them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pytest_rageval.comparison.case_filter import all_rounded
from pytest_rageval.comparison.listed_case import UNCHECKED, ListedCase
from pytest_rageval.metrics.calls import OPERATION_UNITS
from pytest_rageval.metrics.registry import LAYERS
from pytest_rageval.model.case_fields import DESCRIPTIVE_NAMES
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.runs.causes import NO_CAUSE, TITLES
from pytest_rageval.text import printable


def case_columns(page: PageRun) -> dict[str, Any]:
    """Return the index block: a list of values by column, names by number where they repeat."""
    return {
        "run": page.run_id,
        "compared": page.compared is not None,
        **_named_columns(page.cases),
        **_filter_columns(page),
        **_tag_columns(page),
        **_moved_columns(page),
        "operations": _operation_columns(page.cases),
    }


def _named_columns(cases: Sequence[ListedCase]) -> dict[str, Any]:
    """Return the columns that name cases and tell how they ended."""
    return {
        "id": [printable(case.id) for case in cases],
        **_coded("file", [case.file for case in cases]),
        **_coded("outcome", [case.outcome for case in cases]),
        **_coded("change", [case.change for case in cases]),
        "descriptive": DESCRIPTIVE_NAMES,
        **_coded_descriptions(cases),
    }


def _filter_columns(page: PageRun) -> dict[str, Any]:
    """Return the columns that words of the filter look at."""
    cases = page.cases
    unchecked_codes: dict[str, int] = {}
    unchecked = [_codes_of(case.unchecked, unchecked_codes) for case in cases]
    coded: dict[str, Any] = {}
    for name in ("doubt", "cause", "flaky", "conversation", "turn"):
        coded |= _coded(name, [getattr(case, name) for case in cases])
    return {
        **coded,
        **_coded("answer", [case.answer_change for case in cases]),
        "answered": page.listed.has_answers_before,
        "unchecked": unchecked,
        "uncheckeds": list(unchecked_codes),
        "unchecked_known": list(UNCHECKED),
        "causes_known": [*TITLES, NO_CAUSE],
    }


def _tag_columns(page: PageRun) -> dict[str, Any]:
    """Return the tags and the failing layers of cases."""
    tag_codes: dict[str, int] = {}
    tags = [_codes_of(case.tags, tag_codes) for case in page.cases]
    return {
        "tag": tags,
        "tags": list(map(printable, tag_codes)),
        "layer": [_layer_bits(case, page) for case in page.cases],
        "layers": list(LAYERS),
    }


def _moved_columns(page: PageRun) -> dict[str, Any]:
    """Return the largest fall of each case, and the mean of its scores."""
    cases = page.cases
    return {
        **_coded("fallen", [case.fallen or "" for case in cases]),
        "drop": all_rounded(case.drop for case in cases),
        "widths": page.widths,
        "level": all_rounded(case.level for case in cases),
    }


def _operation_columns(cases: Sequence[ListedCase]) -> dict[str, Any]:
    """Return a column for each operation that any case has; an empty one for the others."""
    columns: dict[str, Any] = {}
    for name in OPERATION_UNITS:
        column = all_rounded(case.operations.get(name) for case in cases)
        is_known = any(value is not None for value in column)
        columns[name] = column if is_known else []
    return columns


def _coded_descriptions(cases: Sequence[ListedCase]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name in DESCRIPTIVE_NAMES:
        columns |= _coded(name, [case.descriptions.get(name, "") for case in cases])
    return columns


def _codes_of(names: Iterable[str], codes: dict[str, int]) -> list[int]:
    """Return the numbers of the names; a new name gets the next number."""
    return [codes.setdefault(name, len(codes)) for name in names]


def _layer_bits(case: ListedCase, page: PageRun) -> int:
    """Return the layers in which a case failed, a bit each, as the script of the report reads them."""
    if not case.failed:
        return 0
    layers = list(LAYERS)
    return sum(1 << layers.index(layer) for layer in page.listed.layers(case))


def _coded(column: str, values: Iterable[str]) -> dict[str, Any]:
    """Return a column of numbers and, under its plural, the names that they stand for."""
    codes: dict[str, int] = {}
    column_values = _codes_of(values, codes)
    return {column: column_values, f"{column}s": [printable(name) for name in codes]}
