"""Rows held by column are the rows that were put in: each once, by key and trial."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from pytest_rageval.runs.case_columns import CaseColumns
from pytest_rageval.runs.row import Row, cases_of, in_order
from pytest_rageval.runs.row_columns import RowColumns

HASH = "0123456789abcdef" * 4
PLAIN = Row(
    key="a.jsonl::q", trial=0, outcome="passed", content_hash=HASH,
    groups={"category": ("factual",), "tag": ("x", "y"), "difficulty": (), "domain": (), "answerable": ("answerable",)},
    scores={"mrr": 1.0}, not_applicable=frozenset({"f1"}), failed=(), gates_examined=2, trial_passed=True,
    error_kind=None, message=None, is_blank=False, latency={"total_ms": 2.5}, cost={"judgements": 1}, judge=None,
    decision_hash=f"{HASH[:40]}-{HASH[:16]}",
)  # fmt: skip
OTHERS = [
    replace(PLAIN, key="b.jsonl::탑\ud800", outcome="failed", scores={"f1": 0.25}, failed=(("mrr", "rank"),)),
    replace(PLAIN, key="b.jsonl::z", outcome="error", scores={}, error_kind="timeout", message="slow", latency={}),
    replace(PLAIN, key="a.jsonl::a", groups={**PLAIN.groups, "category": ("none",), "tag": ()}, is_blank=True),
    replace(PLAIN, key="a.jsonl::b", judge={"model": "m", "flags": ["odd"]}, cost={"judgements": 2, "usage": {"t": 1}}),
    replace(PLAIN, key="a.jsonl::c", has_ungated_gold=True, trial_passed=False, content_hash="h", decision_hash=None),
    replace(PLAIN, key="a.jsonl::d", scores={"mrr": 0, "own": 3.0}, latency={"generation_ms": 7, "total_ms": 3.0}),
]
ROWS = [PLAIN, *OTHERS]
TRIALS = [replace(row, trial=number, scores={**row.scores, "n": float(number)}) for row in ROWS for number in range(3)]


@pytest.mark.parametrize("rows", [ROWS, TRIALS, []], ids=["a row a case", "trials", "none"])
def test_rows_come_back_as_they_were(rows: list[Row]):
    columns = RowColumns.of(rows)
    assert list(columns) == rows
    assert len(columns) == len(rows)
    assert RowColumns.of(columns) is columns


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rows", [ROWS, TRIALS], ids=["a row a case", "trials"])
def test_in_order_and_by_case_they_are_what_a_list_of_them_is(rows: list[Row], seed: int):
    again = [replace(row, outcome="skipped") for row in rows[::2]]
    shuffled = Random(seed).sample([*rows, *again], 2 * len(rows) - len(rows) // 2)
    columns = RowColumns.of(shuffled)
    assert len(columns) == len(rows)
    assert list(columns.in_order()) == in_order(shuffled)
    cases = columns.cases()
    assert list(cases) == cases_of(shuffled)
    by_key = CaseColumns.of({row.key: row for row in cases_of(shuffled)})
    assert dict(cases.by_key()) == dict(by_key)
    assert cases.by_key().scores.keys() == by_key.scores.keys()


def test_rows_in_order_are_not_copied():
    columns = RowColumns.of(in_order(ROWS))
    assert columns.in_order() is columns.cases() is columns


def test_cases_are_put_together_once_and_anew_when_a_row_comes():
    columns = RowColumns.of(TRIALS)
    cases = columns.cases()
    assert columns.cases() is cases
    columns.add(replace(PLAIN, key="c.jsonl::later", trial=1))
    assert len(columns.cases()) == len(cases) + 1


def test_it_is_known_which_trials_and_cases_there_are():
    columns = RowColumns.of([replace(PLAIN, trial=1), *OTHERS])
    assert columns.has(PLAIN.key, 1)
    assert not columns.has(PLAIN.key, 0)
    assert not columns.has("1 " + PLAIN.key, 0)
    keys = columns.cases().case_keys()
    assert sorted(keys) == sorted(row.key for row in ROWS)
    assert all(row.key in keys for row in ROWS)
    assert "a.jsonl::gone" not in keys
    assert 3 not in keys


def test_rows_are_found_by_their_groups_scores_and_flags():
    rows = RowColumns.of(in_order(ROWS))
    keys = {value: [rows.keys[place] for place in places] for value, places in rows.places_by("category").items()}
    assert list(keys) == ["factual", "none"]
    assert keys["none"] == ["a.jsonl::a"]
    assert keys["factual"] == [key for key in rows.keys if key != "a.jsonl::a"]
    assert list(rows.scored("own")) == [3.0]
    assert not rows.scored("unknown")
    assert rows.scored("own", rows.places_by("tag")["x"]) == [3.0]
    assert [rows.has_score("own", place) for place in range(len(rows))].count(True) == 1
    assert not rows.has_score("unknown", 0)
    assert rows.flagged() == ["a.jsonl::b"]
    assert [key for key, is_blank in zip(rows.keys, rows.is_blank, strict=True) if is_blank] == ["a.jsonl::a"]
    assert [key for key, is_it in zip(rows.keys, rows.has_ungated_gold, strict=True) if is_it] == ["a.jsonl::c"]
