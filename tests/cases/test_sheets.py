"""Workbooks as people keep them: times, blank rows, sections, totals; the rows of tables have the same rules."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from pathlib import Path

import pytest

from pytest_rageval.cases.exchange.exchange import OtherTestSet
from pytest_rageval.cases.exchange.formats import read_other

Rows = Sequence[Sequence[object]]


def from_sheet(folder: Path, rows: Rows) -> OtherTestSet:
    book = pytest.importorskip("openpyxl").Workbook()
    for row in rows:
        book.active.append(row)
    path = folder / "golden.xlsx"
    book.save(path)
    return read_other(path, path.name)


def from_csv(folder: Path, rows: Rows) -> OtherTestSet:
    path = folder / "golden.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(["" if cell is None else cell for cell in row] for row in rows)
    return read_other(path, path.name)


EITHER = pytest.mark.parametrize("read", [from_sheet, from_csv])


def questions(read: OtherTestSet) -> list[object]:
    return [record["question"] for record in read.cases]


@pytest.mark.parametrize(
    ("cell", "gold"),
    [
        (time(9, 30), "09:30"),
        (time(9, 30, 15), "09:30:15"),
        (time(0, 0), "00:00"),
        (datetime(2026, 3, 1, 14, 5), "2026-03-01 14:05"),
        (datetime(2026, 3, 1), "2026-03-01"),
        (timedelta(hours=30, minutes=15), "30:15"),
    ],
)
def test_a_time_is_a_gold_without_its_seconds(tmp_path: Path, cell: object, gold: str):
    (case,) = from_sheet(tmp_path, [("Question", "Answer"), ("When do you open?", cell)]).cases
    assert case["reference"] == gold


@EITHER
def test_a_total_whose_number_stands_under_the_question_is_no_case(tmp_path: Path, read):
    rows = [
        ("Nr", "Section", "Question", "Answer"),
        (1, "Billing", "What is the fee?", "5 EUR"),
        (2, None, "What is 2+2?", "4"),
        (None, "Total rows", 2, None),
    ]
    found = read(tmp_path, rows)
    assert questions(found) == ["What is the fee?", "What is 2+2?"]
    assert any("4 ('Total rows')" in note for note in found.notes)


@EITHER
def test_a_question_of_figures_in_a_section_named_total_is_a_case(tmp_path: Path, read):
    rows = [("Section", "Question", "Answer"), ("Sums", "What is one and one?", "2"), ("Total", "2 + 2 = ?", "4")]
    assert len(read(tmp_path, rows).cases) == 2


@EITHER
@pytest.mark.parametrize("heading", ["General section", "Shipping & returns:", "Billing", "Allgemeine Fragen"])
def test_a_heading_among_questions_is_no_case_in_two_columns(tmp_path: Path, read, heading: str):
    rows = [
        ("Question", "Answer"),
        ("What is A?", "One"),
        (heading, None),
        ("What is B?", "Two"),
        ("And C?", None),
        ("Total", 2),
    ]
    found = read(tmp_path, rows)
    assert questions(found) == ["What is A?", "What is B?", "And C?"]
    assert any(f"3 ({heading!r})" in note for note in found.notes)


@EITHER
@pytest.mark.parametrize("request_", ["Tell me all that you know about the fees", "List the fees."])
def test_a_request_without_an_answer_is_a_case(tmp_path: Path, read, request_: str):
    rows = [("Question", "Answer"), ("What is A?", "One"), (request_, None), ("What is B?", "Two")]
    assert len(read(tmp_path, rows).cases) == 3


@EITHER
def test_headings_are_kept_where_no_question_has_a_mark(tmp_path: Path, read):
    rows = [("Question", "Answer"), ("price of A", "One"), ("price of B", None), ("price of C", "Three")]
    assert len(read(tmp_path, rows).cases) == 3


@EITHER
def test_the_rows_that_are_left_out_have_the_numbers_of_the_file(tmp_path: Path, read):
    rows = [
        ("Golden set", None, None),
        (None, None, None),
        ("Question", "Answer", "Page"),
        ("What is A?", "One", 1),
        (None, None, None),
        ("What is B?", "Two", 2),
        ("General", None, None),
        ("What is C?", "Three", 3),
        ("Total", 3, None),
    ]
    notes = read(tmp_path, rows).notes
    assert any("2 rows above the header were not read" in note for note in notes)
    assert any("7 ('General'), 9 ('Total')" in note for note in notes)


def test_a_cell_of_several_lines_is_one_row_of_a_sheet(tmp_path: Path):
    rows = [("Question", "Answer", "Page"), ("What is A?", "One\nor two", 1), ("What is B?", "Two", 2), ("Total", 2)]
    assert any("4 ('Total')" in note for note in from_sheet(tmp_path, rows).notes)
