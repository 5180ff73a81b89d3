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


def test_a_list_within_the_question_or_a_check_becomes_a_case_each(tmp_path: Path):
    variables = {"question": "How long are {{what}} lent?", "what": ["books", "films"], "days": ["28", "7"]}
    test = {"vars": variables, "assert": [{"type": "icontains", "value": "{{days}} days"}]}
    output, cases = converted(tmp_path, {"prompts": ["{{question}}"], "tests": [test]})
    assert [(case["question"], case["expected_key_facts"]) for case in cases] == [
        ("How long are books lent?", ["28 days"]),
        ("How long are books lent?", ["7 days"]),
        ("How long are films lent?", ["28 days"]),
        ("How long are films lent?", ["7 days"]),
    ]
    assert "is a list" not in output


def test_a_list_that_nothing_names_is_reported_with_what_to_do(tmp_path: Path):
    variables = {"question": "Which fee?", "tone": ["formal", "short"], "context": ["The fee is 5 EUR."]}
    output, (case,) = converted(tmp_path, {"prompts": ["{{question}}"], "tests": [{"vars": variables}]})
    assert "vars.tone is a list: write one test for each value; kept in metadata (1 row)" in output
    assert "vars.context" not in output
    assert case["metadata"] == {"tone": ["formal", "short"]}


def test_lists_do_not_multiply_without_a_bound(tmp_path: Path):
    many = [f"v{number}" for number in range(150)]
    variables = {"question": "{{a}} {{b}}?", "a": many, "b": many}
    output, cases = converted(tmp_path, {"prompts": ["{{question}}"], "tests": [{"vars": variables}]})
    assert len(cases) == 150
    assert "vars.b is a list" in output


@pytest.mark.parametrize(("weight", "is_named"), [(2, True), (0.5, True), (1, False), (None, False)])
def test_a_weight_that_is_not_read_is_named(tmp_path: Path, weight: object, is_named: bool):
    checks = [{"type": "icontains", "value": "5 EUR", "weight": weight}, {"type": "equals", "value": "5 EUR"}]
    output, _ = converted(tmp_path, {"tests": [{"vars": {"question": "Which fee?"}, "assert": checks}]})
    assert ("the weight of icontains is not read, since every assertion must pass here" in output) is is_named
    assert "weight of equals" not in output


def test_a_test_with_a_refusal_alone_passes_when_the_system_refuses(project: Project):
    project.write("bot.py", 'def answer(question):\n    return {"answer": "I am sorry, I do not know that."}\n')
    test = {"vars": {"question": "Where can I park?"}, "assert": [{"type": "is-refusal"}]}
    project.write("set.json", json.dumps({"prompts": ["{{question}}"], "tests": [test]}))
    assert project.rageval("cases", "convert", "set.json", "-o", "evalcases/a.jsonl").ret == 0
    project.run()
    assert set(project.outcomes().values()) == {"passed"}


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
