"""Test sets of promptfoo: facts and answers of their checks, and the files that they name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foreign_files import FOREIGN, read_rows

from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.cases.exchange.formats import read_other
from pytest_rageval.errors import CaseError
from pytest_rageval.model import NOWHERE


def test_promptfoo_in_yaml_gives_facts_and_answers_and_lists_the_rest():
    pytest.importorskip("yaml", reason="needs the extra 'yaml'")
    result = read_other(FOREIGN / "promptfoo.yaml", "promptfoo.yaml")
    returns = case_from_record(dict(result.cases[0]), NOWHERE)[0]
    assert returns.question == "What is the return window?"
    assert (returns.gold.key_facts, returns.gold.answers) == (("30 days",), ("Returns within 30 days",))
    assert result.unused == {}
    types = [[assertion["type"] for assertion in case["assert"]] for case in result.cases]
    assert types == [["contains", "latency"], ["llm-rubric", "latency"]]
    assert result.form == "promptfoo"


def test_variables_in_checks_of_promptfoo_are_filled_in(tmp_path):
    check = {"type": "equals", "value": "{{expected}}"}
    (case,) = read_rows(tmp_path, {"vars": {"question": "Q?", "expected": "A one."}, "assert": [check]})
    assert case.gold.answers == ("A one.",)


def promptfoo(folder: Path, document: object):
    path = folder / "set/promptfoo.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return read_other(path, path.name)


def test_promptfoo_reads_the_texts_and_tests_that_it_names_below_its_folder(tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set/a.md").write_text("A is one.", encoding="utf-8")
    (tmp_path / "set/more.csv").write_text("question,__expected\nWhat is B?,B is two.\n", encoding="utf-8")
    test = {
        "vars": {"question": "What is A?", "context": "file://a.md"},
        "assert": [{"type": "equals", "value": "One"}],
    }
    first, second = promptfoo(tmp_path, {"tests": [test, "file://more.csv"]}).cases
    assert (first["contexts"], second["question"], second["reference"]) == (["A is one."], "What is B?", "B is two.")
    assert promptfoo(tmp_path, {"tests": "file://more.csv"}).cases == [second]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("file://../secret.md", "lies outside of the folder of the test set"),
        ("file:///etc/hostname", "lies outside of the folder of the test set"),
        ("file://link.md", "lies outside of the folder of the test set"),
        ("file://none.md", "is no file there"),
        ("file://x.py", "is code, which is never run"),
    ],
)
def test_files_elsewhere_are_not_read_and_said(tmp_path, written, why):
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    (tmp_path / "set").mkdir()
    (tmp_path / "set/link.md").symlink_to(tmp_path / "secret.md")
    result = promptfoo(tmp_path, {"tests": [{"vars": {"question": "What is A?", "context": written}}]})
    assert result.notes == (f"context: {written} {why}: kept in metadata (1 row)",)
    assert (result.cases[0].get("contexts"), result.cases[0]["metadata"]) == (None, {"unread": {"context": written}})
    with pytest.raises(CaseError, match=why):
        promptfoo(tmp_path, {"tests": written})


def test_checks_of_promptfoo_take_their_values_from_files_below_its_folder(tmp_path):
    (tmp_path / "set").mkdir()
    for place in ("gold.txt", "set/gold.txt"):
        (tmp_path / place).write_text("A is one.\n", encoding="utf-8")
    checks = [
        {"type": "equals", "value": "file://gold.txt"},
        {"type": "contains-all", "value": ["one", "file://gold.txt"]},
        {"type": "icontains", "value": "file://../gold.txt"},
        {"type": "python", "value": "file://check.py"},
    ]
    result = promptfoo(tmp_path, {"tests": [{"vars": {"question": "What is A?"}, "assert": checks}]})
    (case,) = result.cases
    assert (case["reference"], case["expected_key_facts"]) == ("A is one.", ["one", "A is one."])
    assert case["metadata"] == {"assert": [checks[3], checks[2]]}
    assert result.unused == {"python": 1}
    assert result.notes == (
        "assert: file://../gold.txt lies outside of the folder of the test set: kept in metadata (1 row)",
    )
