"""JSON: what the strict reader refuses and where, limits of free-form values, and text that people read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_rageval.io.json_text import harmless, json_text
from pytest_rageval.io.strict_json import MAX_DEPTH, StrictJsonError, limits_broken, parse

REFUSED: list[tuple[str | bytes, str, str]] = [
    ('{"a": 1, "a": 2}', "strictness", "a stands twice in one object, first at column 2; keep one"),
    ('{"a": [NaN]}', "strictness", "a[0] is NaN, which is not a JSON number; write null, or leave it out"),
    ("1e999", "strictness", "the line is 1e999, which is not a JSON number; write null, or leave it out"),
    (r'"\ud800"', "strictness", r"the line holds half of a surrogate pair (\ud800), which is no character; remove it"),
    ("[" * 100_000, "size", "is nested too deep"),
    ("9" * 5000, "size", "holds a number of thousands of digits; write it as a string"),
    ('{"a" 1}', "syntax", "not valid JSON: expecting ':' delimiter at column 6"),
    ('{\n "a": 1,\n}', "syntax", "not valid JSON: a comma before the closing bracket at line 2, column 8"),
    ('{"a": 1e999# b}', "strictness", "not valid JSON: expecting ',' delimiter"),
    ('{"a": NaN, 5: 1}', "strictness", "a is NaN, which is not a JSON number; write null, or leave it out"),
    ("", "syntax", "not valid JSON: expecting value at column 1"),
    (b'\xef\xbb\xbf"\xe9"', "encoding", "byte 0xe9 at offset 4 is not UTF-8"),
]


@pytest.mark.parametrize(("text", "kind", "message"), REFUSED)
def test_what_is_not_strict_is_refused_in_one_line(text: str | bytes, kind: str, message: str):
    with pytest.raises(StrictJsonError) as caught:
        parse(text)
    assert (caught.value.kind, str(caught.value)) == (kind, message)


def test_all_oddities_have_their_offset_and_the_syntax_error_that_they_hid():
    with pytest.raises(StrictJsonError) as caught:
        parse('{"id": "q", "a": NaN, "a": 1, }')
    assert [oddity.offset for oddity in caught.value.oddities] == [17, 22, 28]
    assert caught.value.positions.case_id == "q"


@pytest.mark.parametrize(
    "text", ['{"a": [1, 2.5, null]}', b'\xef\xbb\xbf{"a": [1, 2.5, null]}', ' {"a":[1,2.5,null]}\n']
)
def test_text_and_bytes_are_read(text: str | bytes):
    assert parse(text) == {"a": [1, 2.5, None]}


def test_equal_keys_of_two_objects_and_whole_surrogate_pairs_are_sound():
    assert parse(r'[{"a": "\ud83d\ude00"}, {"a": 1}]') == [{"a": "😀"}, {"a": 1}]


def nested(levels: int) -> Any:
    return json.loads("[" * levels + "]" * levels)


@pytest.mark.parametrize("value", [None, 1, "x" * 10_000, [], {}, 2**1024 - 1, 1.5, True, nested(MAX_DEPTH)])
def test_what_a_record_can_hold_breaks_nothing(value: Any):
    assert limits_broken(value) == ""


@pytest.mark.parametrize("around", [lambda value: value, lambda value: [value], lambda value: {"a": ["b", value]}])
def test_what_it_cannot_is_said_wherever_it_stands(around: Any):
    assert limits_broken(around(nested(MAX_DEPTH + 1))) == "is nested deeper than 64 levels"
    assert limits_broken(around(-(2**1024))) == "holds a number of more than 300 digits"


def test_the_depth_is_the_callers():
    assert limits_broken(nested(3), 3) == ""
    assert limits_broken(nested(4), 3) == "is nested deeper than 3 levels"
    assert limits_broken({"a": {"b": {"c": {}}}}, 3) == "is nested deeper than 3 levels"


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


@pytest.mark.parametrize("text", ["plain", "한국어 …", "# A > ## Version", "##very", "a\nb\tc", "\u00a0", '"', "\\"])
def test_all_else_is_as_any_json_has_it(text: str):
    assert json_text({"a": text}, None) == json.dumps({"a": text}, ensure_ascii=False)
    assert harmless(text) == text
