"""The small table of a run's cases: written, read back, and refused where it is something else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from stored_runs import a_row, change_lines

from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.columns import SCORES, CaseColumns, read_scores, write_scores

ROWS = [
    a_row("a.jsonl::둘", mrr=0.5, recall_any_at_5=1.0),
    a_row("a.jsonl::one", mrr=1 / 3),
    a_row("a.jsonl::gone", outcome="error", error_kind="timeout"),
]


def test_what_was_written_comes_back(tmp_path: Path):
    write_scores(tmp_path, ROWS)
    found = read_scores(tmp_path)
    assert found is not None
    assert found == CaseColumns.of_rows(ROWS)
    assert found.categories == {row.key: "a" for row in ROWS}
    assert found.scores["mrr"] == [None, 1 / 3, 0.5]  # in the order of the keys
    assert found["a.jsonl::gone"].error_kind == "timeout"


def test_the_same_cases_in_another_order_are_the_same_bytes(tmp_path: Path):
    write_scores(tmp_path, ROWS)
    once = (tmp_path / SCORES).read_bytes()
    write_scores(tmp_path, reversed(ROWS))
    assert (tmp_path / SCORES).read_bytes() == once


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("0.5", '"0.5"'),
        lambda text: text.replace('"timeout"', "7"),
        lambda text: text.replace('"passed"', '"fine"'),
        lambda text: text.replace('"cases":3', '"cases":4'),
        lambda text: text.replace('"outcome"', '"came"'),
        lambda text: "[" * 100_000,
    ],
)
def test_a_damaged_table_is_refused_with_what_to_do(tmp_path: Path, damage):
    write_scores(tmp_path, ROWS)
    text = (tmp_path / SCORES).read_text(encoding="utf-8")
    (tmp_path / SCORES).write_text(damage(text), encoding="utf-8")
    remedy = "was it changed? remove it, and results.jsonl is read instead"
    with pytest.raises(SettingsError, match=f"scores.jsonl.*{re.escape(remedy)}"):
        read_scores(tmp_path)


def test_a_damaged_column_is_named_by_its_line(tmp_path: Path):
    write_scores(tmp_path, ROWS)
    text = (tmp_path / SCORES).read_text(encoding="utf-8")
    (tmp_path / SCORES).write_text(text.replace('"passed"', '"failed"', 1), encoding="utf-8")
    with pytest.raises(SettingsError, match=r"scores\.jsonl:4: does not match its checksum"):
        read_scores(tmp_path)


@pytest.mark.parametrize(("old", "new"), [("0.5", '"0.5"'), ('"timeout"', "7"), ('"passed"', '"fine"'),
                                          ("::one", "::gone"), ("::gone", "::zone"),
                                          ('"cases":3', '"cases":4'), ('"outcome"', '"came"'),
                                          ('"schema":2', '"schema":1')])  # fmt: skip
def test_columns_that_no_run_writes_are_refused_whatever_their_checksums(tmp_path: Path, old: str, new: str):
    write_scores(tmp_path, ROWS)
    change_lines(tmp_path / SCORES, lambda line: line.replace(old, new))
    with pytest.raises(SettingsError, match=r"not a table of scores; .*results\.jsonl is read instead"):
        read_scores(tmp_path)
