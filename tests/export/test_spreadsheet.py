"""A CSV file is read back as it was meant, and nothing in it runs."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rageval.export.formats import as_text, csv_line

SIGNS = "=+-@＝＋－＠"


@pytest.mark.parametrize("sign", [*SIGNS, "\t", "\r"])
@pytest.mark.parametrize("before", ["", " ", "\n", "\u3000", "\xa0", "\ufeff", "\u200b", " \t\n "])
def test_a_text_that_a_spreadsheet_would_run_begins_with_an_apostrophe(sign: str, before: str):
    assert as_text(f"{before}{sign}cmd|' /C calc'!A0") == f"'{before}{sign}cmd|' /C calc'!A0"


@pytest.mark.parametrize("text", ["", "a=b", "100 - 5", "남산", "'=1", "(-1)", "/etc", " plain", "\n"])
def test_other_texts_stay_as_they_are(text: str):
    assert as_text(text) == text


def test_numbers_stay_numbers_and_what_has_no_value_is_empty():
    assert csv_line([-1, -0.25, 0, True, None, "-1"]) == '-1,-0.25,0,"true","","\'-1"'


def test_separators_quotes_and_line_breaks_are_read_back():
    texts = ['a,b;c"d', "two\nlines", "남산 🗼"]
    assert next(csv.reader([csv_line(texts)])) == texts


def test_what_would_steer_a_terminal_is_escaped():
    assert csv_line(["a\x1b[31m\x9b\u202e\ud800"]) == '"a\\x1b[31m\\x9b\\u202e\\ud800"'


@given(st.text())
def test_no_text_comes_out_as_a_formula(text: str):
    (cell,) = next(csv.reader([csv_line([text])]))
    assert not cell.lstrip().startswith(tuple(SIGNS))
    assert cell[:1] not in ("\t", "\r")
