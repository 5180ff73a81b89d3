"""Assertions as they are written in case files: both forms, all formats, and every problem with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_rageval.cases.canonical import case_content, case_from_mapping, case_to_mapping, content_hash
from pytest_rageval.cases.loading import CaseFile, load_file
from pytest_rageval.cases.schema import case_schema
from pytest_rageval.model import EvalCase
from pytest_rageval.model.assertion import Assertion

ALL_FORMS: list[dict[str, Any]] = [
    {"type": "icontains", "value": "4 euros", "metric": "prices"},
    {"not-contains": "5 euros"},
    {"any": [{"regex": r"\d+"}, {"type": "latency", "threshold": 300}], "metric": "either"},
    {"all": [{"word-count": {"min": 1, "max": 50}}, {"not-is-refusal": True}]},
    {"levenshtein": "4 euros", "threshold": 3},
    {"is-json": {"type": "object", "properties": {"a": {"pattern": "^x+$"}}}},
    {"type": "is-json"},
    {"contains-all": ["a", 4]},
    {"cost": 0.01},
    {"language": "ko"},
    {"equals": {"a": [1, None]}},
]


def load(folder: Path, *lines: dict[str, Any]) -> CaseFile:
    file = folder / "a.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return load_file(file, folder)


def case_with(folder: Path, assertions: list[dict[str, Any]], **fields: Any) -> EvalCase:
    read = load(folder, {"id": "a", "question": "Q?", "assert": assertions, **fields})
    assert not read.problems
    return read.cases[0]


def test_both_forms_are_read(tmp_path: Path):
    case = case_with(tmp_path, ALL_FORMS)
    assert case.assertions[0] == Assertion("icontains", "4 euros", metric="prices")
    assert case.assertions[1] == Assertion("not-contains", "5 euros")
    members = (Assertion("regex", r"\d+"), Assertion("latency", threshold=300.0))
    assert case.assertions[2] == Assertion("any", metric="either", members=members)
    assert case.assertions[4] == Assertion("levenshtein", "4 euros", 3.0)
    assert case.assertions[6] == Assertion("is-json")


def test_they_read_back_equal_from_a_record_and_from_a_line(tmp_path: Path):
    case = case_with(tmp_path, ALL_FORMS)
    assert case_from_mapping(json.loads(json.dumps(case_to_mapping(case)))) == case
    assert case_with(tmp_path, [], **case_content(case)) == case


def test_another_assertion_is_another_case_and_none_is_as_before(tmp_path: Path):
    plain = load(tmp_path, {"id": "a", "question": "Q?"}).cases[0]
    asserted = case_with(tmp_path, [{"contains": "4"}])
    assert (
        len({content_hash(plain), content_hash(asserted), content_hash(case_with(tmp_path, [{"contains": "5"}]))}) == 3
    )
    assert "assert" not in case_content(plain)


@pytest.mark.parametrize(
    "line",
    [
        {"question": "Q?", "expected_key_facts": ["4"]},
        {"question": "Q?", "gold": {"answer": "4", "concepts": []}},
        {"question": "Q?", "reference": "4"},
        {"query": "Q?", "relevant_ids": ["a"]},
    ],
)
def test_every_format_has_them(tmp_path: Path, line: dict[str, Any]):
    read = load(tmp_path, {**line, "assert": [{"icontains": "4"}]})
    assert (read.problems, read.cases[0].assertions) == ((), (Assertion("icontains", "4"),))


def test_a_cell_of_a_table_holds_them_as_json(tmp_path: Path):
    file = tmp_path / "a.csv"
    file.write_text('question,assert\nQ?,"[{""icontains"": ""4""}]"\nR?,\n', encoding="utf-8")
    assert [case.assertions for case in load_file(file, tmp_path).cases] == [(Assertion("icontains", "4"),), ()]


PROBLEMS: list[tuple[Any, str]] = [
    ({"icontain": "x"}, "assert[0].icontain is not a known key; did you mean 'icontains'?"),
    ({"type": "icontians", "value": "x"}, "which is no type of assertion; did you mean 'icontains'?"),
    ({"type": "not-regexp", "value": "x"}, "did you mean 'not-regex'?"),
    ({"type": "python", "value": "1"}, "which is not supported: it runs code"),
    ({"javascript": "1"}, "it runs code or calls a server of its own"),
    ({"type": "webhook", "value": "http://x"}, "write a metric in conftest.py"),
    ({"type": "factuality", "value": "x"}, "write the right answer as 'reference'"),
    ({"type": "contains", "valeu": "x"}, "did you mean 'value'?"),
    ({"type": "contains"}, "assert[0] has no value, which contains needs"),
    ({"contains": ["a"]}, "is a list, expected a string or a number"),
    ({"contains": " "}, "is blank"),
    ({"contains-any": "a,b"}, "expected a list of strings"),
    ({"contains-any": []}, "is empty"),
    ({"contains-any": ["a", True]}, "[1] is true, expected a string or a number"),
    ({"regex": "(?=x)"}, "look-around, including look-ahead and look-behind, is not supported"),
    ({"regex": "((a{99}){99}){99}"}, "repeats so much"),
    ({"is-json": {"$ref": "https://x.example/y.json"}}, "outside of the schema; copy that part into '$defs'"),
    ({"is-json": {"$ref": "#/nowhere"}}, "$ref' is '#/nowhere', which is not in the schema"),
    ({"is-json": {"type": "objekt"}}, "is no JSON Schema: type 'objekt' is not valid"),
    ({"is-json": {"pattern": "(?!x)"}}, "is not supported"),
    ({"is-json": "object"}, "expected a JSON Schema"),
    ({"word-count": {"most": 3}}, "expected a whole number"),
    ({"word-count": {"min": 5, "max": 1}}, "whose min is above its max"),
    ({"latency": "fast"}, "is 'fast', expected a number of 0 or more: milliseconds"),
    ({"type": "latency"}, "has no threshold, which latency needs: milliseconds"),
    ({"type": "latency", "value": 300}, "is not known for latency; write threshold"),
    ({"similar": "x", "threshold": 75}, "is 75, expected a number from 0 to 1: the lowest cosine"),
    ({"contains": "x", "threshold": 1}, "is not known for contains, which has none"),
    ({"language": "xx"}, "which is no language that can be told"),
    ({"language": "Germann"}, "did you mean 'German'?"),
    ({"contains": "x", "metric": "Tone of it"}, "is 'Tone of it', expected lower-case letters"),
    ({"contains": "x", "weight": 2}, "each assertion counts once; leave it out"),
    ({"contains": "x", "icontains": "y"}, "has the types 'contains' and 'icontains'"),
    ({"any": [{"all": [{"contains": "x"}]}]}, "stands within another any or all; one level is known"),
    ({"any": []}, "is empty; name at least one assertion"),
    ({"any": [{"contains": "x", "metric": "a"}]}, "stands within any; write it beside 'any'"),
    ({"type": "assert-set", "assert": []}, "is written as {'all'"),
    ("contains: x", "expected an object such as {'icontains': '4 euros'}"),
    ({}, "has no type"),
]


@pytest.mark.parametrize(("written", "problem"), PROBLEMS)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, written: Any, problem: str):
    lines = load(tmp_path, {"id": "a", "question": "Q?", "assert": [written]}).problems
    for line in lines:
        assert line.startswith("a.jsonl:1:")
        assert "case 'a': assert[0]" in line
    assert any(problem in line for line in lines), lines


def test_the_column_is_that_of_the_wrong_word(tmp_path: Path):
    text = '{"id": "a", "question": "Q?", "assert": [{"icontains": "4"}, {"icontain": "5"}]}'
    (tmp_path / "a.jsonl").write_text(text + "\n", encoding="utf-8")
    (line,) = load_file(tmp_path / "a.jsonl", tmp_path).problems
    assert line.startswith(f"a.jsonl:1:{text.index('icontain', 60)}:")


def test_more_than_a_hundred_are_refused(tmp_path: Path):
    (line,) = load(tmp_path, {"id": "a", "question": "Q?", "assert": [{"contains": "x"}] * 101}).problems
    assert "has 101 assertions, more than 100; split the case" in line


def test_editors_know_both_forms():
    validator = jsonschema.Draft202012Validator(case_schema())
    validator.validate({"question": "Q?", "assert": ALL_FORMS})
    for written, problem in PROBLEMS:
        if "known key" in problem or "is no type" in problem:
            assert not validator.is_valid({"question": "Q?", "assert": [written]})
