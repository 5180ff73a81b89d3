"""The table of a run's scores by case, so that runs can be compared without reading their records.

`scores.jsonl` holds a column a line, each in the order of the case keys; below the cases' own columns the metrics:

    {"schema": 2, "cases": 2, "checksum": …}
    {"schema": 2, "column": "case_key", "values": ["evalcases/a.jsonl::q1", "evalcases/a.jsonl::q2"], "checksum": …}
    …
    {"schema": 2, "column": "recall_any@5", "values": [1.0, null], "checksum": …}

A score is null where the case has none. Like a baseline, the file holds no texts.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.io.line_index import lines_of, whole_records
from pytest_rageval.io.sealed_lines import DamagedLineError, sealed, unsealed
from pytest_rageval.runs.case_columns import CaseColumns
from pytest_rageval.runs.disk.row_records import check_result
from pytest_rageval.runs.row import Row, SharedParts, cases_of, in_order

SCORES = "scores.jsonl"
SCHEMA = 2
COLUMNS = ("case_key", "content_hash", "outcome", "category", "error", "decision_hash")
"""The columns before the metrics; `error` is the kind of error, or null."""
REMEDY = "remove it, and results.jsonl is read instead"
_OUTCOMES = frozenset({"passed", "failed", "error", "skipped", "xfailed"})
_NUMBERS = frozenset({int, float, type(None)})


@dataclass(frozen=True, slots=True)
class Scores:
    """The cases of a run by key, and the categories of those that have one."""

    cases: CaseColumns
    categories: Mapping[str, str]

    def without(self, keys: Collection[str]) -> Scores:
        """The table without some cases."""
        return replace(self, cases=self.cases.without(keys))

    def renamed(self, names: Mapping[str, str]) -> Scores:
        """The table with other names of metrics, by the present ones."""
        return replace(self, cases=self.cases.renamed(names))


def write_scores(folder: Path, cases: Iterable[Row]) -> None:
    """Write the table of a run, from a row a case; equal cases are equal bytes."""
    write_lines(folder / SCORES, _lines(in_order(cases)))


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    yield sealed(_json({"schema": SCHEMA, "cases": len(rows)}))
    cases = CaseColumns.of_rows(rows)
    categories = [row.groups["category"][0] for row in rows]
    columns = (
        cases.case_keys, cases.content_hashes, cases.outcomes, categories, cases.error_kinds, cases.decision_hashes,
    )  # fmt: skip
    for name, values in (*zip(COLUMNS, columns, strict=True), *sorted(cases.scores.items())):
        yield sealed(_json({"schema": SCHEMA, "column": name, "values": values}))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def read_scores(folder: Path) -> Scores | None:
    """The table of a run; None where there is none, SettingsError where the file is something else."""
    path = folder / SCORES
    place: object = path
    columns: dict[str, list[Any]] = {}
    count = 0
    try:
        for place, line in lines_of(path):
            part = unsealed(line)
            if part["schema"] != SCHEMA:
                raise ValueError("another schema")
            if place.number == 1:
                count = part["cases"]
            else:
                columns[part["column"]] = part["values"]
        if not columns and not path.exists():
            return None
        return _scores(columns, count)
    except DamagedLineError as damage:
        raise SettingsError(f"{place}: {damage}; was it changed? {REMEDY}") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise SettingsError(f"{path}: not a table of scores; was it changed? {REMEDY}") from None


def _scores(columns: dict[str, list[Any]], cases: int) -> Scores:
    keys, hashes, outcomes, categories, errors, decisions = (columns.pop(name) for name in COLUMNS)
    if {*map(len, (keys, hashes, outcomes, categories, errors, decisions, *columns.values()))} != {cases}:
        raise ValueError("columns of different lengths")
    if not {*map(type, keys), *map(type, hashes), *map(type, categories)} <= {str} or not {*outcomes} <= _OUTCOMES:
        raise TypeError("not cases")
    if not {*map(type, errors), *map(type, decisions)} <= {str, type(None)}:
        raise TypeError("not kinds of error")
    if not all(_NUMBERS.issuperset(map(type, column)) for column in columns.values()):
        raise TypeError("not scores")
    if any(key >= following for key, following in pairwise(keys)):
        raise ValueError("keys twice or in disorder")
    by_key = CaseColumns(keys, hashes, outcomes, errors, decisions, columns)
    return Scores(by_key, dict(zip(keys, categories, strict=True)))


def scores_of_records(path: Path) -> Scores:
    """The table from results.jsonl, for a run that has none; a last line that was cut off is left out."""
    shared = SharedParts()
    rows = (Row.of(record, shared) for _, record in whole_records([path], check=check_result))
    return scores_of(cases_of(rows))


def scores_of(cases: Iterable[Row]) -> Scores:
    """The table from a row a case."""
    rows = in_order(cases)
    return Scores(CaseColumns.of_rows(rows), {row.key: row.groups["category"][0] for row in rows})
