"""JSON that people read: what could steer what shows it is escaped, on one line as on several."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rageval.io.json_text import json_text, spaced

HARMFUL = ["\x7f", "\x80", "\x9f", "\u061c", "\u200e", "\u2028", "\u202e", "\u2066", "\ud800"]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("character", HARMFUL)
def test_a_character_that_could_steer_is_written_as_a_number(character: str, indent: int | None):
    text = json_text({"a": f"x{character}…"}, indent)
    assert f"\\u{ord(character):04x}" in text
    assert character not in text
    assert json.loads(text) == {"a": f"x{character}…"}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("command", ["##[error]", "##vso[task]", "##VSO[task]", "##Vso["])
def test_a_command_of_a_ci_service_is_none(command: str, indent: int | None):
    text = json_text([command], indent)
    assert command not in text
    assert json.loads(text) == [command]


@pytest.mark.parametrize("harmless", ["plain", "한국어 …", "# A > ## Version", "##very", "a\nb\tc", "\u00a0"])
def test_all_else_is_as_any_json_has_it(harmless: str):
    assert json_text({"a": harmless}, None) == json.dumps({"a": harmless}, ensure_ascii=False)


PARTS = (
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(['"', "\\", '\\"', "a, b: c", "\x7f##["])
)
VALUES = st.recursive(PARTS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


@given(VALUES)
def test_compact_json_is_spaced_as_if_its_value_were_written(value: object):
    assert spaced(json.dumps(value, ensure_ascii=False, separators=(",", ":"))) == json_text(value, None)
