"""The strict JSON reader: what it refuses, how it says so, and where."""

from __future__ import annotations

import pytest

from pytest_rageval.io.strict_json import StrictJsonError, parse

REFUSED: list[tuple[str | bytes, str, str]] = [
    ('{"a": 1, "a": 2}', "strictness", "a stands twice in one object, first at column 2; keep one"),
    ('{"a": [NaN]}', "strictness", "a[0] is NaN, which is not a JSON number; write null, or leave it out"),
    ("1e999", "strictness", "the line is 1e999, which is not a JSON number; write null, or leave it out"),
    (r'"\ud800"', "strictness", r"the line holds half of a surrogate pair (\ud800), which is no character; remove it"),
    ("[" * 100_000, "size", "is nested too deep"),
    ("9" * 5000, "size", "holds a number of thousands of digits; write it as a string"),
    ('{"a" 1}', "syntax", "not valid JSON: expecting ':' delimiter at column 6"),
    (
        '{\n "a": 1,\n}',
        "syntax",
        "not valid JSON: a comma before the closing bracket at line 2, column 8",
    ),
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
