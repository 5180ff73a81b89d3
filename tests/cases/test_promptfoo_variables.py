"""promptfoo's variables within variables, lists of questions, and prompts with a text of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from project import Project

from pytest_rageval.cases.loading import load_file
from pytest_rageval.cli.cases import cases as cases_command


def converted(folder: Path, document: object):
    source = folder / "set.json"
    output = folder / "cases.jsonl"
    source.write_text(json.dumps(document), "utf-8")
    ended = CliRunner().invoke(cases_command, ["convert", str(source), "-o", str(output), "--force"])
    assert ended.exit_code == 0, ended.exception
    return ended.output, [json.loads(line) for line in output.read_text("utf-8").splitlines()]


def test_variables_within_variables_are_filled_in(tmp_path: Path):
    variables = {"question": "{{ topic }} of {{thing}}?", "topic": "The {{what}}", "what": "price", "thing": "books"}
    _, (case,) = converted(tmp_path, {"prompts": ["{{question}}"], "tests": [{"vars": variables}]})
    assert case["question"] == "The price of books?"


def test_variables_that_name_themselves_end(tmp_path: Path):
    variables = {"question": "a {{question}}{{question}}", "other": "x"}
    _, (case,) = converted(tmp_path, {"prompts": ["{{question}}"], "tests": [{"vars": variables}]})
    assert case["question"].startswith("a a a")


def test_a_list_of_questions_becomes_a_case_each(tmp_path: Path):
    test = {
        "vars": {"question": ["Which fee?", "What is the fee?"]},
        "assert": [{"type": "icontains", "value": "5 EUR"}],
    }
    _, cases = converted(tmp_path, {"prompts": ["{{question}}"], "tests": [test]})
    assert [case["question"] for case in cases] == ["Which fee?", "What is the fee?"]
    assert [case["expected_key_facts"] for case in cases] == [["5 EUR"]] * 2


@pytest.mark.parametrize(("prompt", "is_named"), [("Answer: {{question}}", True), ("{{ question }}", False)])
def test_prompts_with_a_text_of_their_own_are_named(tmp_path: Path, prompt: str, is_named: bool):
    output, _ = converted(tmp_path, {"prompts": [prompt], "tests": [{"vars": {"question": "Which fee?"}}]})
    assert ("prompts with a text of their own are not read" in output) is is_named


@pytest.mark.parametrize(
    ("record", "is_answerable"),
    [
        ({"assert": [{"is-refusal": True}]}, False),
        ({"assert": [{"not-is-refusal": True}]}, True),
        ({"assert": [{"any": [{"is-refusal": True}, {"contains": "5"}]}]}, True),
        ({"assert": [{"is-refusal": True}], "answerable": True}, True),
        ({"assert": [{"is-refusal": True}], "reference": "5 EUR"}, True),
    ],
)
def test_a_case_that_must_be_refused_has_no_answer(project: Project, record: dict, is_answerable: bool):
    path = project.cases([{"id": "a", "question": "Where can I park?", **record}])
    (case,) = load_file(path, project.path).cases
    assert case.answerable is is_answerable
