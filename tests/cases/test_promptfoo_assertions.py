"""promptfoo's example files as cases with assertions: converted, run, and what has no counterpart kept and said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from project import Project

from pytest_rageval.cases.exchange.formats import read_other
from pytest_rageval.cases.loading import load_file

pytest.importorskip("yaml", reason="needs the extra 'yaml'")

CONFIG = """
description: A shop's assistant
prompts: [file://prompt.txt]
providers: [openai:gpt-5-mini, anthropic:claude]
defaultTest:
  assert:
    - {type: latency, threshold: 60000}
    - {type: not-contains, value: as an AI, metric: Tone}
tests:
  - description: price
    vars: {question: "What does a return cost?", price: 4 euros}
    assert:
      - {type: icontains, value: "{{price}}", metric: Price shown, weight: 2}
      - {type: contains-any, value: "4 euros,4 EUR"}
      - {type: word-count, value: {min: 2, max: 50}}
      - {type: levenshtein, value: A return costs 4 euros., threshold: 10}
      - {type: javascript, value: output.length < 100}
      - {type: python, value: file://check.py}
      - {type: cost, threshold: 0.01}
  - description: as JSON
    vars: {question: "As JSON?"}
    assert:
      - type: is-json
        value:
          required: [price]
          type: object
          properties: {price: {type: number, minimum: 0}}
      - {type: contains-json, value: file://schema.json}
      - type: assert-set
        threshold: 0.5
        assert:
          - {type: contains, value: "4"}
          - {type: contains, value: "5"}
      - type: assert-set
        assert:
          - {type: starts-with, value: "{"}
          - {type: regex, value: '"price": \\d+'}
      - {type: llm-rubric, value: names a price}
      - {type: cost, metric: spent, weight: 0}
"""
BOT = """
def answer(question):
    return '{"price": 4}' if "JSON" in question else "A return costs 4 euros."
"""


@pytest.fixture
def shop(project: Project) -> Project:
    project.write("bot.py", BOT)
    project.write("set/promptfooconfig.yaml", CONFIG)
    project.write("set/schema.json", '{"type": "object"}')
    return project


def test_a_configuration_converts_and_runs(shop: Project):
    said = shop.rageval("cases", "convert", "set/promptfooconfig.yaml", "-o", "evalcases/a.jsonl")
    assert "assertions 2" in said.stdout.str()
    assert "javascript 1, python 1, cost 1" in said.stderr.str()
    shop.run()
    assert set(shop.outcomes().values()) == {"passed"}
    assert {"assertions", "price_shown", "tone"} <= set(shop.metrics()["metrics"])


def test_each_check_becomes_what_it_says(shop: Project):
    cases = read_other(shop.path / "set/promptfooconfig.yaml", "promptfooconfig.yaml").cases
    price, as_json = [case["assert"] for case in cases]
    default = [{"type": "latency", "threshold": 60000}, {"type": "not-contains", "value": "as an AI", "metric": "tone"}]
    assert price == [
        {"type": "icontains", "value": "4 euros", "metric": "price_shown"},
        {"type": "contains-any", "value": ["4 euros", "4 EUR"]},
        {"type": "word-count", "value": {"min": 2, "max": 50}},
        {"type": "levenshtein", "value": "A return costs 4 euros.", "threshold": 10},
        {"type": "cost", "threshold": 0.01},
        *default,
    ]
    assert as_json[1:] == [
        {"type": "contains-json", "value": {"type": "object"}},
        {"any": [{"type": "contains", "value": "4"}, {"type": "contains", "value": "5"}]},
        {"type": "starts-with", "value": "{"},
        {"type": "regex", "value": '"price": \\d+'},
        {"type": "llm-rubric", "value": "names a price"},
        *default,
    ]


def converted(folder: Path, checks: list[dict[str, Any]]) -> tuple[dict[str, Any], tuple[str, ...]]:
    file = folder / "tests.json"
    file.write_text(json.dumps([{"vars": {"question": "Why?"}, "assert": checks}]), encoding="utf-8")
    result = read_other(file, file.name)
    return result.cases[0], tuple(result.notes)


@pytest.mark.parametrize(
    ("check", "why"),
    [
        ({"type": "regex", "value": "(?!x)"}, "look-around"),
        ({"type": "is-json", "value": "file://../schema.json"}, "lies outside of the folder"),
        ({"type": "is-json", "value": {"$ref": "https://x.example/a.json"}}, "outside of the schema"),
        ({"type": "contains-json", "value": "{"}, "is no JSON Schema in JSON"),
        ({"type": "latency"}, "has no threshold"),
        ({"type": "not-icontains", "value": "x", "transform": "output.trim()"}, "which is code and never run"),
    ],
)
def test_what_cannot_be_an_assertion_is_kept_and_said(tmp_path: Path, check: dict[str, Any], why: str):
    case, notes = converted(tmp_path, [check])
    assert "assert" not in case
    assert case["metadata"]["assert"] == [check]
    assert any(why in note for note in notes), notes


def test_a_set_of_which_some_are_needed_is_kept(tmp_path: Path):
    members = [{"type": "not-contains", "value": value} for value in "abc"]
    case, notes = converted(tmp_path, [{"type": "assert-set", "threshold": 0.6, "assert": members}])
    assert "assert" not in case
    assert "some are enough" in notes[0]


def test_cells_of_a_table_are_checks(tmp_path: Path):
    file = tmp_path / "tests.csv"
    cells = ["is-json", "similar(0.8): Four euros", "not-regex: \\d{9}", "A return is free."]
    lines = [f'Question {number}?,"{cell}"' for number, cell in enumerate(cells)]
    file.write_text("\n".join(["question,__expected", *lines, ""]), encoding="utf-8")
    cases = read_other(file, file.name).cases
    assert [case.get("assert") for case in cases] == [
        [{"type": "is-json"}], None, [{"type": "not-regex", "value": "\\d{9}"}], None,
    ]  # fmt: skip
    assert [case.get("reference") for case in cases] == [None, "Four euros", None, "A return is free."]


def test_an_export_for_promptfoo_reads_back_with_its_own_assertions(shop: Project):
    case = {"id": "a", "question": "Why?", "expected_key_facts": ["4"], "assert": [{"type": "contains", "value": "5"}]}
    shop.cases([case])
    shop.rageval("cases", "export", "evalcases/a.jsonl", "--to", "promptfoo", "-o", "out")
    shop.rageval("cases", "convert", "out/tests.json", "-o", "back.jsonl")
    (before,) = load_file(shop.path / "evalcases/a.jsonl", shop.path).cases
    (back,) = load_file(shop.path / "back.jsonl", shop.path).cases
    assert (back.assertions, back.gold) == (before.assertions, before.gold)
