"""Text as it is shown: nothing in it steers a terminal or breaks a file."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_rageval.text import printable

ANY_TEXT = st.text(st.characters(), max_size=60)  # lone surrogates included


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 한글\n\tline", "plain 한글\n\tline"),
        ("\x1b[31mred\r\x07", "\\x1b[31mred\\x0d\\x07"),
        ("\ud800", "\\ud800"),
        ("\u202eevil\u2028", "\\u202eevil\\u2028"),
        ("\x85", "\\x85"),
    ],
)
def test_what_could_steer_a_terminal_is_escaped(text, shown):
    assert printable(text) == shown


@settings(deadline=None)
@given(ANY_TEXT)
def test_printable_text_can_be_encoded(text):
    assert "\x1b" not in printable(text).encode("utf-8").decode("utf-8")
