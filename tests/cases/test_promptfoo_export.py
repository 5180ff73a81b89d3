"""Assertions written for promptfoo: those that it has, never code, and the same cases when they are read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from project import Project

from pytest_rageval.cases.exchange.exchange import ToolFiles
from pytest_rageval.cases.exchange.formats import WRITERS
from pytest_rageval.cases.loading import load_file
from pytest_rageval.model import EvalCase

DATA = Path(__file__).parents[1] / "data"
EXAMPLES = [
    *sorted((DATA / "golden_files").glob("promptfoo*.yaml")),
    DATA / "frozen-input" / "foreign" / "promptfoo.yaml",
    DATA / "frozen-input" / "foreign" / "promptfoo.csv",
]


def cases_of(folder: Path, *asserts: Any, **fields: Any) -> list[EvalCase]:
    file = folder / "cases.jsonl"
    file.write_text(json.dumps({"id": "a", "question": "Why?", "assert": asserts, **fields}) + "\n")
    loaded = load_file(file, folder)
    assert not loaded.problems
    return list(loaded.cases)


def written(cases: list[EvalCase]) -> ToolFiles:
    return WRITERS["promptfoo"](cases, {})


def checks_of(files: ToolFiles) -> list[dict[str, Any]]:
    (test,) = json.loads("".join(files.files["tests.json"]))
    checks: list[dict[str, Any]] = test.get("assert", [])
    return checks


def test_assertions_are_checks_in_the_words_of_promptfoo(tmp_path: Path):
    asserts = [
        {"icontains": "4 euros", "metric": "prices"},
        {"not-regex": "\\d{9}"},
        {"type": "similar", "value": "Four euros", "threshold": 0.8},
        {"is-json": {"type": "object"}},
        {"is-refusal": True},
        {"latency": 3000},
        {"any": [{"contains": "4"}, {"contains": "6"}], "metric": "either"},
        {"all": [{"contains": "a"}, {"language": "en"}]},
    ]
    files = written(cases_of(tmp_path, *asserts))
    checks = checks_of(files)
    assert checks[:6] == [
        {"type": "icontains", "value": "4 euros", "metric": "prices"},
        {"type": "not-regex", "value": "\\d{9}"},
        {"type": "similar", "value": "Four euros", "threshold": 0.8},
        {"type": "is-json", "value": {"type": "object"}},
        {"type": "is-refusal"},
        {"type": "latency", "threshold": 3000},
    ]
    either, both = checks[6:]
    assert either["assert"] == [{"type": "contains", "value": "4"}, {"type": "contains", "value": "6"}]
    assert (either["type"], either["metric"], 0 < either["threshold"] <= 0.5) == ("assert-set", "either", True)
    assert both == {"type": "assert-set", "assert": [{"type": "contains", "value": "a"}]}
    assert files.notes == ("promptfoo has no place for the assertion language: left out of a",)


@pytest.mark.parametrize(
    ("assertion", "left_out"),
    [
        ({"language": "en"}, "language"),
        ({"not-cites": "a.md"}, "not-cites"),
        ({"any": [{"cites": "a.md"}, {"contains": "x"}]}, "any with cites"),
        ({"contains": "file://steal.js"}, "contains with a file or a template"),
        ({"contains-any": ["x", "{{ env.SECRET }}"]}, "contains-any with a file or a template"),
        ({"llm-rubric": "{% include 'x' %}"}, "llm-rubric with a file or a template"),
        ({"is-json": {"const": "file:///etc/passwd"}}, "is-json with a file or a template"),
        ({"contains": "package:steal:run"}, "contains with a file or a template"),
    ],
)
def test_what_promptfoo_lacks_or_would_run_is_left_out_and_said(tmp_path: Path, assertion: Any, left_out: str):
    files = written(cases_of(tmp_path, assertion))
    assert checks_of(files) == []
    assert files.notes == (f"promptfoo has no place for the assertion {left_out}: left out of a",)


def test_kept_checks_go_back_if_they_ask_a_model_and_never_if_they_are_code(tmp_path: Path):
    rubric = {"type": "g-eval", "value": "is kind", "weight": 2}
    kept = [rubric, {"type": "javascript", "value": "process.exit()"}, {"type": "g-eval", "value": "file://x.js"}]
    files = written(cases_of(tmp_path, metadata={"assert": kept}))
    assert checks_of(files) == [rubric]
    assert [note.split(": ")[0] for note in files.notes] == [
        "promptfoo has no place for the assertion the kept check javascript",
        "promptfoo has no place for the assertion g-eval with a file or a template",
    ]


def test_gold_that_promptfoo_would_run_is_left_out_and_comes_back(tmp_path: Path):
    gold = {"answer": ["{{ env.SECRET }}", "It is 4."], "key_facts": ["file://x.js", "4"]}
    files = written(cases_of(tmp_path, gold=gold))
    assert checks_of(files) == [{"type": "factuality", "value": "It is 4."}, {"type": "icontains", "value": "4"}]
    assert [note.split(": ")[0] for note in files.notes] == [
        "promptfoo has no place for the assertion factuality with a file or a template",
        "promptfoo has no place for the assertion icontains with a file or a template",
    ]
    (test,) = json.loads("".join(files.files["tests.json"]))
    assert "env.SECRET" in json.dumps(test["metadata"])


@pytest.mark.parametrize("fields", [{"question": "file://steal.js"}, {"contexts": ["a", "{{ env.SECRET }}"]}], ids=str)
def test_a_case_whose_variables_promptfoo_would_run_is_not_exported(tmp_path: Path, fields: dict[str, Any]):
    files = written(cases_of(tmp_path, **fields))
    assert json.loads("".join(files.files["tests.json"])) == []
    assert [note.rpartition(": ")[2] for note in files.notes] == ["a"]
    assert "promptfoo would run the file or template" in files.notes[0]


def test_a_fact_that_an_assertion_says_as_well_is_one_check(tmp_path: Path):
    asserts = [{"contains-all": ["4 euros", "a week"], "metric": "prices"}]
    checks = checks_of(written(cases_of(tmp_path, *asserts, expected_key_facts=["4 euros", "free"])))
    assert [check["value"] for check in checks] == ["free", ["4 euros", "a week"]]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_of_promptfoo_survive_the_way_there_and_back(project: Project, example: Path):
    project.write(example.name, example.read_text(encoding="utf-8"))
    assert project.rageval("cases", "convert", example.name, "-o", "first.jsonl").ret == 0
    assert project.rageval("cases", "export", "first.jsonl", "--to", "promptfoo", "-o", "out").ret == 0
    assert project.rageval("cases", "convert", "out/tests.json", "-o", "second.jsonl").ret == 0
    first = load_file(project.path / "first.jsonl", project.path).cases
    second = load_file(project.path / "second.jsonl", project.path).cases
    for before, after in zip(first, second, strict=True):
        assert (after.assertions, after.gold, after.metadata) == (before.assertions, before.gold, before.metadata)
    rows = json.loads((project.path / "out" / "tests.json").read_text())
    asserted = sum(len(case.assertions) for case in first)
    assert sum(len(row.get("assert", ())) for row in rows) >= asserted
