"""Malformed and odd case files: every one is named by place, name, value and remedy, and none stops the loader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from case_files import loaded

pytestmark = pytest.mark.reliability("case files", "malformed JSONL")

_SOUND = '{"id": "q1", "question": "Why?", '
"""The beginning of a sound line; what follows is wrong."""

LINES = Path(__file__).parent.parent / "data" / "cases" / "malformed.txt"


def malformed_lines() -> Iterator[Any]:
    for block in LINES.read_text(encoding="utf-8").split("\n\n")[1:]:
        name, line, *problems = block.strip("\n").split("\n")
        yield pytest.param(line, [problem.removeprefix("> ") for problem in problems], id=name.removeprefix("# "))


MALFORMED_FILES: list[tuple[str, str | bytes, list[str]]] = [
    ("a raw tab in a string", '{"question": "a\tb"}', ["1:16: not valid JSON: invalid control character"]),
    (
        "one object over several lines",
        '{\n  "id": "q1",\n  "question": "Why?"\n}',
        ["1:1: is JSON over several lines; write one object a line (JSONL)"],
    ),
    (
        "a JSON array over several lines",
        '[\n{"question": "Why?"}\n]',
        ["1:1: is JSON over several lines; write one object a line (JSONL)"],
    ),
    ("nesting that the parser cannot follow", "[" * 100_000, ["1:1: is nested too deep"]),
    (
        "a number of thousands of digits",
        _SOUND + '"metadata": {"n": ' + "9" * 5000 + "}}",
        ["1:1: holds a number of thousands of digits; write it as a string"],
    ),
    (
        "a key twice, deep inside",
        _SOUND + '"metadata": ' + '{"a": ' * 120 + '{"x": 1, "x": 2}' + "}" * 121,
        [f"1:775: case 'q1': …{'a.' * 19}x stands twice in one object, first at column 767; keep one"],
    ),
    ("nothing", b"", ["1:1: the file holds no case"]),
    ("blank lines only", b"\n \n\t\r\n", ["1:1: the file holds no case"]),
    ("a byte order mark only", b"\xef\xbb\xbf", ["1:1: the file holds no case"]),
    (
        "UTF-16 with a mark",
        b'\xff\xfe{\x00"\x00',
        ["1:1: byte 0xff at offset 0: UTF-16, UTF-32 or no text; save it as UTF-8"],
    ),
    ("Latin-1", b'{"question": "Wh\xe9?"}', ["1:17: byte 0xe9 at offset 16 is not UTF-8; save the file as UTF-8"]),
    (
        "an encoded surrogate after a Korean line",
        b'{"question": "\xec\x99\x9c?"}\n{"question": "\xed\xa0\x80"}\n',
        ["2:15: byte 0xed at offset 35 is not UTF-8; save the file as UTF-8"],
    ),
    ("NUL bytes", b"\x00\x01\x02", ["1:1: byte 0x00 at offset 0: UTF-16, UTF-32 or no text; save it as UTF-8"]),
    (
        "a very long key",
        _SOUND + '"' + "x" * 500 + '": 1}',
        [f"1:34: case 'q1': {'x' * 80!r}… is not a known key; put what is your own into 'metadata'"],
    ),
    (
        "an id twice",
        '{"id": "q1", "question": "Why?", "tags": []}\n\n{"id": "q1", "question": "Why?", "tags": ["x"]}',
        ["3:1: case 'q1': id already used at line 1; ids are unique in a file"],
    ),
    (
        "equal rows without id",
        '{"question": "Why?"}\n{"question": "Why?"}',
        ["2:1: case '090de7a5dbf6': an equal row without id stands at line 1; give them ids, or remove one"],
    ),
    (
        "an id twice, on a bad line",
        '{"id": "q1"}\n{"id": "q1", "question": "Why?"}',
        ["1:1: case 'q1': question is missing", "2:1: case 'q1': id already used at line 1; ids are unique in a file"],
    ),
]
"""What is odd about it, the file, and the problems without the file's name."""


@pytest.mark.parametrize(
    ("content", "problems"),
    [*malformed_lines(), *(pytest.param(*row, id=name) for name, *row in MALFORMED_FILES)],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, content: str | bytes, problems: list[str]):
    assert [problem.removeprefix("a.jsonl:") for problem in loaded(tmp_path, content).problems] == problems


ODD_BUT_SOUND: list[tuple[str, str | bytes]] = [
    ("a byte order mark and CRLF", b'\xef\xbb\xbf{"question": "Why?"}\r\n'),
    ("blank lines around", '\n\t\n{"question": "Why?"}\n \n'),
    ("no line end", '{"question": "Why?"}'),
    ("white space around", '   {"question": "Why?"}\t \n'),
    ("control characters in the question", '{"question": "Wh\\u0000\\u001b[31my?"}'),
    ("a whole surrogate pair", '{"question": "Wh\\ud83d\\ude00y?"}'),
    ("escaped Hangul, which begins like a surrogate", '{"question": "\\ud55c\\uae00?"}'),
    ("a line separator that ends no line", '{"question": "Wh\u2028y?"}'),
    ("a backslash before a u", '{"question": "C:\\\\ud800"}'),
    ("null for everything else", '{"id": null, "question": "Why?", "gold": null, "tags": null, "metadata": null}'),
    ("an id of spaces and colons", '{"id": "a::b [c]", "question": "Why?"}'),
    ("a large number in metadata", '{"question": "Why?", "metadata": {"n": 123456789012345678901234567890}}'),
]


@pytest.mark.parametrize("content", [row[1] for row in ODD_BUT_SOUND], ids=[row[0] for row in ODD_BUT_SOUND])
def test_what_is_only_odd_loads(tmp_path: Path, content: str | bytes):
    file = loaded(tmp_path, content)
    assert file.problems == ()
    assert len(file.cases) == 1


def test_all_problems_of_a_file_are_reported_together_and_sound_lines_still_load(tmp_path: Path):
    lines = ["{", '{"id": "a", "question": "Why?"}', "[]", '{"id": "b"}', '{"id": "c", "question": "How?"}', "x"]
    file = loaded(tmp_path, "\n".join(["null", *lines]))
    assert [problem.split(":")[1] for problem in file.problems] == ["1", "2", "4", "5", "7"]
    assert [case.id for case in file.cases] == ["a", "c"]


def test_all_problems_of_a_line_are_reported_together_rules_included(tmp_path: Path):
    content = _SOUND + '"foo": 1, "tags": 3, "recency_conflict_rule": "cite_newer", "required_support_groups": [[5]]}'
    names = [problem.split(": ")[2].split(" ")[0] for problem in loaded(tmp_path, content).problems]
    assert names == ["foo", "tags", "required_support_groups[0][0]", "recency_conflict_rule"]


def test_rules_have_nothing_to_say_about_parts_that_could_not_be_read(tmp_path: Path):
    content = _SOUND + '"gold_supports": 1, "required_support_groups": [[0]], "recency_conflict_rule": "cite_newer"}'
    (problem,) = loaded(tmp_path, content).problems
    assert "gold_supports is 1" in problem


def test_a_line_over_the_limit_is_passed_over_unread_and_the_next_one_loads(tmp_path: Path):
    long = '{"question": "' + "x" * 5000 + '"}'
    file = loaded(tmp_path, f'{long}\r\n{{"question": "Why?"}}\n{long}', max_line_bytes=1000)
    assert file.problems == (
        "a.jsonl:1:1: the line is longer than 1,000 bytes; shorten it",
        "a.jsonl:3:1: the line is longer than 1,000 bytes; shorten it",
    )
    assert [case.source.line for case in file.cases] == [2]


def test_a_line_of_exactly_the_limit_loads(tmp_path: Path):
    line = '{"question": "Why?"}'
    assert loaded(tmp_path, f"{line}\r\n", max_line_bytes=len(line)).problems == ()
    assert len(loaded(tmp_path, f"{line}\r\n", max_line_bytes=len(line) - 1).problems) == 1


def test_offsets_of_bytes_count_the_mark_and_the_long_lines_before(tmp_path: Path):
    content = b"\xef\xbb\xbf" + b"x" * 50 + b"\n" + b"\n" + b"ab\xff\n"
    assert "byte 0xff at offset 57 " in loaded(tmp_path, content, max_line_bytes=20).problems[-1]


def test_problems_without_end_are_counted_not_kept(tmp_path: Path):
    file = loaded(tmp_path, "null\n" * 3000)
    assert len(file.problems) == 1001
    assert file.problems[-1] == "a.jsonl: 2,000 more problems, not listed; mend these first"


def test_problems_of_one_record_without_end_are_counted_not_kept(tmp_path: Path):
    file = loaded(tmp_path, _SOUND + '"tags": [' + "1," * 99 + "1]}")
    assert len(file.problems) == 21
    assert file.problems[-1].endswith("case 'q1': 80 more problems in this record, not listed")


@pytest.mark.parametrize("name", ["gone.jsonl", "folder.jsonl"])
def test_what_is_no_file_is_a_problem_and_no_exception(tmp_path: Path, name: str):
    from pytest_rageval.cases.loading import load_file

    (tmp_path / "folder.jsonl").mkdir()
    file = load_file(tmp_path / name, tmp_path)
    assert file.cases == ()
    assert file.problems[0].startswith(f"{name}: ")
    assert len(file.problems) == 1


@pytest.mark.parametrize("content", ["null", ""])
def test_messages_stay_on_one_line_whatever_the_file_is_called(tmp_path: Path, content: str):
    (problem,) = loaded(tmp_path, content, "a\n\x1b[31m.jsonl").problems
    assert problem.isprintable()
