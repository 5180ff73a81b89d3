"""A case that the project's hook changes is the case, wherever cases are asked for."""

from __future__ import annotations

import json

import pytest
from project import ASSERT_GATES, SOME, Project, a_case, lines_with

HOOK = """
import dataclasses

def pytest_rageval_case(case):
    return dataclasses.replace(case, id="new-" + case.id, category="renamed")
"""
HOWS = [[], pytest.param(["-n", "2"], marks=pytest.mark.child_process)]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("conftest", ["conftest.py", "evalcases/conftest.py"])
def test_a_renamed_case_is_the_case_of_a_complete_run(project: Project, conftest: str, how: list[str]):
    project.cases(SOME)
    project.write(conftest, HOOK)
    result = project.run("--rageval-gate", "token_f1 >= 0.1 when category=renamed", "-rA", *how)
    result.assert_outcomes(passed=4)
    assert lines_with(result, "PASSED evalcases/a.jsonl::new-boil")
    assert result.ret == 0
    assert project.metrics()["partial"] is False
    records = project.records()
    assert records["new-boil"]["case_key"] == "evalcases/a.jsonl::new-boil"
    assert {record["category"] for record in records.values()} == {"renamed"}


def test_a_condition_on_what_the_hook_took_away_looks_at_nothing(project: Project):
    project.cases(SOME)
    project.write("evalcases/conftest.py", HOOK)
    result = project.run("--rageval-gate", "token_f1 >= 0.1 when category=factual")
    assert (result.ret, bool(lines_with(result, "no case has the category 'factual'"))) == (4, True)


def test_the_hash_of_the_dataset_is_that_of_changed_cases(project: Project):
    project.cases(SOME)
    project.run()
    plain = project.config()["dataset_hash"]
    project.write(
        "evalcases/conftest.py",
        "import dataclasses\ndef pytest_rageval_case(case):\n"
        "    return dataclasses.replace(case, question=case.question + ' Please.')\n",
    )
    project.run()
    assert project.config()["dataset_hash"] != plain


def test_a_changed_case_meets_its_baseline_and_a_part_of_them_is_partial(project: Project):
    project.cases(SOME)
    project.write("evalcases/conftest.py", HOOK)
    assert project.run("--rageval-update-baseline").ret == 0
    baseline = json.loads((project.path / "reports" / "baseline.json").read_text())
    assert "evalcases/a.jsonl::new-boil" in baseline["cases"]
    assert project.run().ret == 0
    comparison = project.metrics()["comparison"]
    assert (comparison["problems"], comparison["only_before"], comparison["only_after"]) == ([], [], [])
    assert project.run("-k", "new-boil").ret == 0
    assert project.metrics()["partial"] is True


def test_files_that_were_not_named_are_known_as_their_hook_leaves_them(project: Project):
    project.cases(SOME)
    project.cases([a_case("other")], "evalcases/sub/b.jsonl")
    project.write("evalcases/sub/conftest.py", HOOK)
    gate = "token_f1 >= 0.1 when category=renamed"
    assert project.run("evalcases/a.jsonl", "--rageval-gate", gate).ret == 0
    config = project.config()["dataset_hash"]
    project.run("--rageval-gate", gate)
    assert project.config()["dataset_hash"] == config


def test_a_hook_changes_the_cases_of_a_mark_before_they_are_selected(project: Project):
    project.cases(SOME, "mine/own.jsonl")
    project.write("mine/conftest.py", HOOK)
    project.own_test("own.jsonl", ASSERT_GATES, "mine/test_own.py", select="renamed and boil")
    project.run().assert_outcomes(passed=1)
    assert list(project.records()) == ["new-boil"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "raise KeyError('x')",
            "evalcases/a.jsonl:1: case 'boil': pytest_rageval_case: KeyError: 'x' (at evalcases/conftest.py:2)",
        ),
        ("return 'boil'", "evalcases/a.jsonl:1: case 'boil': pytest_rageval_case returned str, expected an EvalCase"),
        (
            "import dataclasses; return dataclasses.replace(case, id='same')",
            "evalcases/a.jsonl:2: case 'freeze': pytest_rageval_case: id 'same' is already used at line 1",
        ),
    ],
)
def test_what_a_hook_does_wrong_is_a_problem_of_the_file(project: Project, body: str, says: str):
    project.cases(SOME)
    project.write("evalcases/conftest.py", f"def pytest_rageval_case(case):\n    {body}\n")
    result = project.run()
    assert result.ret == 2
    assert lines_with(result, says)
    assert not lines_with(result, "Traceback")
