"""Rows that are held together share what is equal in them, and are the same rows."""

from __future__ import annotations

import json
from typing import Any

from pytest_rageval.config.settings import Settings
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import CaseResult, EvalCase, Timings
from pytest_rageval.plan import make_plan
from pytest_rageval.runs.records import result_record, to_line
from pytest_rageval.runs.row import Row, SharedParts

PLAN = make_plan(Settings(), load_registry())


def a_record(number: int, asked_ms: float | None = None, **fields: Any) -> dict[str, Any]:
    """A record as it comes back from its line: no part of it is part of another."""
    case = EvalCase(id=f"q{number}", question="?", category="lab", tags=("a", "b"))
    result = CaseResult(case, "passed", scores={"mrr": 1 / number}, timings=Timings(ask_ms=asked_ms), **fields)
    record: dict[str, Any] = json.loads(to_line(result_record(result, PLAN, "hash")))
    return record


def test_rows_that_share_their_parts_equal_those_that_do_not():
    records = [a_record(1), a_record(2, asked_ms=3.5), a_record(3), a_record(4, skipped_metrics={"map": "no gold"})]
    shared = SharedParts()
    assert [Row.of(record, shared) for record in records] == [Row.of(record) for record in records]


def test_what_is_equal_in_two_rows_is_held_once():
    shared = SharedParts()
    one, other = (Row.of(a_record(number), shared) for number in (1, 2))
    assert one.groups is other.groups
    assert one.cost is other.cost
    assert one.not_applicable is other.not_applicable
    assert next(iter(one.scores)) is next(iter(other.scores))


def test_of_times_a_row_holds_those_that_were_measured():
    shared = SharedParts()
    rows = [Row.of(a_record(number, asked_ms), shared) for number, asked_ms in ((1, 3.5), (2, None))]
    assert [row.latency for row in rows] == [{"total_ms": 3.5}, {}]


def test_costs_that_differ_are_those_of_their_rows():
    shared = SharedParts()
    records = [a_record(number) for number in (1, 2, 3)]
    records[1]["cost"]["judge_tokens"] = 7
    assert [Row.of(record, shared).cost["judge_tokens"] for record in records] == [None, 7, None]
