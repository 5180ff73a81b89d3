"""TOML that we write reads back as what it was."""

from __future__ import annotations

import math
import tomllib
from datetime import date
from typing import Any

import pytest
from hostile import PAYLOADS
from hypothesis import given
from hypothesis import strategies as st

from pytest_rageval.config.toml_text import toml_document, toml_value

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(PAYLOADS)
VALUES = st.recursive(
    TEXTS | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_a_table_reads_back_as_it_was(table: dict[str, Any]):
    assert tomllib.loads(toml_document(table)) == table


@pytest.mark.parametrize("text", ['a\n"b"\n', '"""\n', 'x\ny"', "\n\n", "a\\\nb", 'a"""\nb""', "tab\tand\x00nul\nline"])
def test_a_text_of_several_lines_stands_over_several_lines_and_reads_back(text: str):
    written = toml_document({"prompt": text})
    assert tomllib.loads(written) == {"prompt": text}
    assert written.count("\n") == text.count("\n") + 2


def test_what_toml_cannot_hold_is_refused():
    with pytest.raises(ValueError, match="no null"):
        toml_value({"a": [None]})


@pytest.mark.parametrize("number", [math.inf, -math.inf])
def test_numbers_without_end_stay_what_they_are(number: float):
    assert tomllib.loads(toml_document({"n": number})) == {"n": number}


def test_a_date_of_a_hand_written_file_stays_one():
    assert tomllib.loads(toml_document({"day": date(2026, 5, 1)})) == {"day": date(2026, 5, 1)}
