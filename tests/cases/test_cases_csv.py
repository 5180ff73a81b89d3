"""Cases in CSV: a header, cells as their keys want them, records over lines, and what can be wrong with all that."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from case_files import loaded

from pytest_rageval.model import Anchor

HEADER = "id,question,reference,tag,contexts\n"


def test_a_row_is_a_case_and_an_empty_cell_is_absent(tmp_path: Path):
    file = loaded(tmp_path, HEADER + 'q1,Why?,"Because, so.",t,"[""a"", ""b""]"\nq2,How?,So.,,\n', "a.csv")
    assert file.problems == ()
    first, second = file.cases
    assert (first.gold.answers, first.tags, first.contexts) == (("Because, so.",), ("t",), ("a", "b"))
    assert (second.gold.answers, second.tags, second.contexts) == (("So.",), (), None)


def test_every_key_may_be_a_column_text_flag_or_json(tmp_path: Path):
    content = (
        "query,answerable,requires_kg,category,tags,gold_supports,gold,metadata\n"
        'Why?,FALSE,true,lab,"[""x""]",,"{""answer"": ""a""}","{""n"": 1}"\n'
        'How?,true,,,,"[{""rel_path"": ""a.md""}]",,\n'
    )
    file = loaded(tmp_path, content, "a.csv")
    assert file.problems == ()
    first, second = file.cases
    assert (first.answerable, first.requires_kg, first.tags, first.metadata) == (False, True, ("x",), {"n": 1})
    assert second.gold.supports == (Anchor("a.md"),)


SAID_YES = ["TRUE", "true", "Yes", "YES", "y", "Y", "1", "1.0", "WAHR", "VRAI", "Verdadero", "예"]
SAID_NO = ["FALSE", "false", "No", "NO", "n", "N", "0", "0.0", "FALSCH", "FAUX", "Falso", "아니오"]


@pytest.mark.parametrize("column", ["answerable", "requires_kg"])
def test_a_flag_may_be_written_as_people_and_spreadsheets_write_it(tmp_path: Path, column: str):
    words = [*SAID_YES, *SAID_NO, " no ", '" yes"']
    rows = "".join(f"q{number},Why?,{word}\n" for number, word in enumerate(words))
    file = loaded(tmp_path, f"id,question,{column}\n{rows}", "a.csv")
    assert file.problems == ()
    flags = [getattr(case, column) for case in file.cases]
    assert flags == [True] * len(SAID_YES) + [False] * len(SAID_NO) + [False, True]


def test_the_line_of_a_case_is_where_its_record_starts(tmp_path: Path):
    content = HEADER + '\nq1,"Why\nnot?",a,,\n\r\n,,,,\nq2,How?,b,,\n'
    assert [case.source.line for case in loaded(tmp_path, content, "a.csv").cases] == [3, 7]


def test_a_mark_and_crlf_are_accepted_and_the_ending_may_be_in_capitals(tmp_path: Path):
    file = loaded(tmp_path, b"\xef\xbb\xbfid, question\r\nq1,Why?\r\n", "a.CSV")
    assert file.problems == ()
    assert file.cases[0].question == "Why?"


PROBLEMS: list[tuple[str, str | bytes, list[str]]] = [
    ("nothing", "", ["1:1: the file holds no case"]),
    ("a header only", HEADER, ["1:1: the file holds no case"]),
    ("semicolons", "id;question\nq1;Why?\n", ["1:1: the header is separated by semicolons; separate cells by commas"]),
    ("tabs", "id\tquestion\nq1\tWhy?\n", ["1:1: the header is separated by tabs; separate cells by commas"]),
    ("a mistyped column", "id,questoin\n", ["1:1: 'questoin' is not a known column; did you mean 'question'?"]),
    (
        "no header",
        "q1,Why?\n",
        [
            "1:1: 'q1' is not a known column; the first row must name the columns",
            "1:1: 'Why?' is not a known column; the first row must name the columns",
            "1:1: the header has no column 'question' or 'query'",
        ],
    ),
    ("no question", "id,reference\n", ["1:1: the header has no column 'question' or 'query'"]),
    ("a column twice", "id,question,id\n", ["1:1: column 'id' stands twice in the header"]),
    ("a column without name", "id,,question\n", ["1:1: column 2 of the header has no name"]),
    (
        "too few cells",
        "id,question\nq1\n",
        ["2:1: the row has 1 cell, expected 2 (id, question); quote cells that hold commas or line breaks"],
    ),
    (
        "too many cells",
        "id,question\nq1,Why, then?\n",
        ["2:1: the row has 3 cells, expected 2 (id, question); quote cells that hold commas or line breaks"],
    ),
    ("a blank question", "id,question\nq1, \n", ["2:1: case 'q1': question is missing"]),
    (
        "a cell that is no JSON",
        "id,question,contexts\nq1,Why?,[a]\n",
        ["2:9: case 'q1': contexts is '[a]', expected JSON: expecting value at line 1, column 2 of the cell"],
    ),
    (
        "a cell that is no JSON in its second line",
        'id,question,contexts\nq1,Why?,"[""a"",\n 1 2]"\n',
        [
            "2:9: case 'q1': contexts is '[\"a\",\\n 1 2]', expected JSON: "
            "expecting ',' delimiter at line 2, column 4 of the cell"
        ],
    ),
    (
        "a cell of JSON of another type",
        "id,question,contexts\nq1,Why?,{}\n",
        ["2:9: case 'q1': contexts is an object, expected a list of strings"],
    ),
    (
        "a cell of JSON with a key twice",
        'id,question,metadata\nq1,Why?,"{""a"":1,""a"":2}"\n',
        [
            "2:9: case 'q1': metadata is not strict JSON: a stands twice in one object, first at column 2; keep one "
            "(at character 8 of the cell)"
        ],
    ),
    (
        "a cell that nests too deep",
        "id,question,contexts\nq1,Why?," + "[" * 100_000 + "\n",
        ["2:9: case 'q1': contexts is nested too deep"],
    ),
    (
        "a word as flag",
        "id,question,answerable\nq1,Why?,nope\n",
        ["2:9: case 'q1': answerable is 'nope', expected true or false (or yes, no, 1, 0)"],
    ),
    (
        "an open quote",
        'id,question\nq1,"Why?\nq2,How?\n',
        ["2:1: the row has a quote that is never closed; the rest of the file was not read"],
    ),
    (
        "text after a quote",
        'id,question\nq1,"Why" not?\n',
        [
            '2:1: a closing quote is followed by text; double the quotes inside a cell (""); '
            "the rest of the file was not read"
        ],
    ),
    (
        "CR alone",
        "id,question\nq1,Why?\rq2,How?\n",
        ["2:1: a line ends with CR alone; end lines with LF or CRLF; the rest of the file was not read"],
    ),
    ("a NUL", "id,question\nq1,W\0hy?\n", ["2:5: holds a NUL character; save the file as UTF-8 text"]),
    (
        "an id twice",
        "id,question\nq1,Why?\nq1,How?\n",
        ["3:1: case 'q1': id already used at line 2; ids are unique in a file"],
    ),
]


@pytest.mark.parametrize(("content", "problems"), [row[1:] for row in PROBLEMS], ids=[row[0] for row in PROBLEMS])
def test_what_is_wrong_with_a_table_is_said_with_its_place(tmp_path: Path, content: str | bytes, problems: list[str]):
    file = loaded(tmp_path, content, "a.csv")
    assert [problem.removeprefix("a.csv:") for problem in file.problems] == problems


def test_rows_after_a_bad_row_still_load(tmp_path: Path):
    content = b"id,question,answerable\nq1,Why?\nq2,\xff,\nq3,Why?,maybe\nq4,How?,true\n"
    file = loaded(tmp_path, content, "a.csv")
    assert [problem.split(":")[1] for problem in file.problems] == ["2", "3", "4"]
    assert [case.id for case in file.cases] == ["q4"]


def test_a_cell_may_be_larger_than_the_csv_module_allows_and_its_limit_stays(tmp_path: Path):
    before = csv.field_size_limit()
    file = loaded(tmp_path, f"id,question\nq1,{'x' * (before + 1)}\n", "a.csv")
    assert file.problems == ()
    assert csv.field_size_limit() == before


@pytest.mark.parametrize("line_end", ["", "\n"])
def test_a_row_over_the_limit_ends_the_reading_in_one_line_or_in_many(tmp_path: Path, line_end: str):
    content = f'id,question\nq1,"{("x" * 50 + line_end) * 20}"\nq2,How?\n'
    file = loaded(tmp_path, content, "a.csv", max_line_bytes=500)
    assert file.cases == ()
    assert all("2:1: " in problem for problem in file.problems)
    assert file.problems[-1].endswith("; the rest of the file was not read")
