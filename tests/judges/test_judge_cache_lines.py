"""A judge cache as lines: what goes out comes back the same, and no hostile line comes in."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import rounds

from pytest_rageval.errors import RagevalError
from pytest_rageval.judges.cache import cache_entries
from pytest_rageval.judges.cache.cache_entries import (
    Entry,
    entry_line,
    read_entries,
)
from pytest_rageval.judges.cache.cache_key import key_parts
from pytest_rageval.judges.cache.sqlite_cache import LARGEST
from pytest_rageval.model import Judgement, JudgeRequest

A_JUDGEMENT = Judgement(
    "groundedness", {"groundedness": 4}, (0, 5), 'says "so"\n근거 😀', ("one",), (), "m/1", "1+abc", 10, 2, 1e-05, 12.0,
    flags=("marker",), extra={"z": [1, None, 1e22], "a": {"raw": "\u2028\u202e\x9b"}},
)  # fmt: skip


def an_entry(question: str = "why?", judgement: Judgement = A_JUDGEMENT) -> Entry:
    request = JudgeRequest("groundedness", "1+abc", {"question": question, "answer": "so", "references": ["x"]})
    parts = key_parts(request, "m/1", {"temperature": 0.0, "seed": 7})
    return Entry(parts.key, "2026-11-21T10:48:19Z", judgement, parts)


def a_line(**changed: object) -> str:
    return json.dumps({**json.loads(entry_line(an_entry())), **changed})


def a_judged_line(**changed: object) -> str:
    return a_line(judgement={**json.loads(entry_line(an_entry()))["judgement"], **changed})


def read(folder: Path, *lines: str | bytes) -> list[Entry]:
    path = folder / "lines.jsonl"
    path.write_bytes(b"".join(line if isinstance(line, bytes) else line.encode() for line in lines))
    return read_entries(path)


def problems_of(folder: Path, *lines: str | bytes) -> list[str]:
    with pytest.raises(RagevalError) as caught:
        read(folder, *lines)
    for problem in caught.value.problems:
        problem.encode()
        assert "\n" not in problem
        assert len(problem) < 400
    return [problem.removeprefix(f"{folder}/") for problem in caught.value.problems]


@pytest.mark.reliability("cache", "hostile lines of an imported cache", costs="false green")
def test_a_line_says_key_and_time_first_and_holds_nothing_that_steers_a_terminal():
    entry = an_entry("왜?\x1b\u202e")
    line = entry_line(entry)
    assert line.startswith(f'{{"key": "{entry.key}", "created": "2026-11-21T10:48:19Z", "parts": {{')
    assert '"asked": "왜?\\\\x1b\\\\u202e"' in line
    assert '"raw": "\\u2028\\u202e\\u009b"' in line
    assert line.isprintable()


@settings(max_examples=rounds(50, 20), deadline=None)
@given(
    text=st.text(max_size=40),
    number=st.floats(0, 5),
    cost=st.none() | st.floats(0, allow_infinity=False),
    extra=st.dictionaries(st.text(max_size=5), st.none() | st.booleans() | st.integers() | st.text(max_size=5)),
)
def test_any_judgement_survives_two_rounds(text, number, cost, extra):
    said = Judgement("g", {"g": number}, (0.0, 5.0), text, (text,), cost_usd=cost, extra=extra)
    line = entry_line(an_entry(text, said))
    with tempfile.TemporaryDirectory() as folder:
        (entry,) = read(Path(folder), line)
    assert entry == an_entry(text, said)
    assert entry_line(entry) == line


def test_blank_lines_crlf_and_a_byte_order_mark_do_no_harm(tmp_path):
    line, other = entry_line(an_entry()), entry_line(an_entry("who?"))
    assert read(tmp_path, f"\ufeff{line}\r\n", "\n", "  \n", other) == [an_entry(), an_entry("who?")]


@pytest.mark.reliability("cache", "hostile lines of an imported cache", costs="false green")
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{'", "1:2: not valid JSON: expecting property name enclosed in double quotes"),
        ("{", "is JSON over several lines; write one object a line (JSONL)"),
        ("[]", "is a list, expected an object; write one object a line (JSONL)"),
        (b"{\xff}", "byte 0xff at offset 1 is not UTF-8"),
        ("[" * 100_000, "is nested too deep"),
        ('{"key": ' + "1" * 5000 + "}", "holds a number of thousands of digits"),
        ('{"key": "a", "key": "b"}', "key stands twice in one object, first at column 2; keep one"),
        (a_line(**{"\x1b[31m": 1}), "'\\x1b[31m' is not a known key"),
        ('{"key": "a"}', "has no parts; write null"),
        ('{"key": "a", "parts": null}', "has no created"),
        (a_line(key=7), "key is 7 (a number), expected a string of 1 to 128 characters"),
        (a_line(key="a" * 64), f"key aaaaaaaaaaaa… is not that of its parts, {an_entry().key[:12]}…"),
        (
            a_line(created="yesterday"),
            "created is 'yesterday' (a string), expected a time such as 2026-11-21T10:48:19Z",
        ),
        (a_line(created="2026-13-41T10:48:19Z"), "expected a time such as"),
        (a_line(parts=[]), "parts is a list, expected an object"),
    ],
)
def test_a_line_that_is_no_entry_is_refused_with_the_reason(line, problem, tmp_path):
    assert problem in problems_of(tmp_path, line)[0]


@pytest.mark.reliability("cache", "hostile lines of an imported cache", costs="false green")
@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("rubric", None, "parts has no rubric"),
        ("trial", -1, "parts.trial is -1 (a number), expected a whole number, 0 or more"),
        ("question", "why?", "parts.question is 'why?' (a string), expected 64 hex digits"),
        ("variables", {"references": "x"}, "parts.variables.references is 'x' (a string), expected 64 hex digits"),
        ("sampling", [], "parts.sampling is a list, expected an object"),
        ("asked", "x" * 201, "expected at most 200 characters"),
        ("answer", "0" * 64, "is not that of its parts"),
        ("sampling", {"temperature": 1}, "is not that of its parts"),
    ],
)
def test_parts_that_are_wrong_or_do_not_make_the_key_are_refused(name, value, problem, tmp_path):
    parts = {**json.loads(entry_line(an_entry()))["parts"], name: value}
    assert problem in problems_of(tmp_path, a_line(parts=parts))[0]


@pytest.mark.reliability("cache", "hostile lines of an imported cache", costs="false green")
@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"rubrik": "g"}, "judgement.rubrik is not a known key; did you mean 'rubric'?"),
        ({"cached": True}, "judgement.cached is not a known key"),
        ({"scores": {"groundedness": "4"}}, "judgement.scores.groundedness is '4' (a string), expected a number"),
        ({"scores": {"groundedness": True}}, "judgement.scores.groundedness is true, expected a number"),
        ({"scores": {"groundedness": 6}}, "judgement: groundedness is 6, outside its scale 0 to 5"),
        (
            {"scores": {"groundedness": float("nan")}},
            "judgement.scores.groundedness is NaN, which is not a JSON number",
        ),
        ({"cost_usd": -1}, "judgement: cost_usd is -1.0, expected a number of at least 0, or None"),
        ({"tokens_in": 10**400}, "tokens_in"),
        ({"scale": [0]}, "judgement.scale is too short"),
        ({"reasoning": 7}, "judgement.reasoning is 7 (a number), expected a string"),
        (
            {"reasoning": "\ud83d"},
            "judgement.reasoning holds half of a surrogate pair (\\ud83d), which is no character",
        ),
        ({"extra": {"\udc00": 1}}, "judgement.extra holds half of a surrogate pair (\\udc00), which is no character"),
        ({"reasoning": "x" * LARGEST}, "cannot be kept: it is longer than 1,048,576 characters"),
    ],
)
def test_a_judgement_that_is_none_is_refused(changed, problem, tmp_path):
    assert problem in problems_of(tmp_path, a_judged_line(**changed))[0]


@pytest.mark.reliability("cache", "hostile lines of an imported cache", costs="false green")
def test_a_line_that_is_too_long_is_named_and_the_next_one_read(monkeypatch, tmp_path):
    monkeypatch.setattr(cache_entries, "LONGEST_LINE", 2000)
    long, other = problems_of(tmp_path, "x" * 9001 + "\n", f"{entry_line(an_entry())}\n", "[]")
    assert "lines.jsonl:1:1: the line is longer than 2,000 bytes" in long
    assert other.startswith("lines.jsonl:3:1: is a list")
