"""A gate that the user wrote looks at something, and a gate for some cases leaves the others their own."""

from __future__ import annotations

import pytest
from project import SOME, Project, a_case, a_missed_case, lines_with


@pytest.mark.parametrize("how", [[], ["-n", "2"], ["--rageval-dry-run"]])
def test_a_condition_that_no_case_meets_is_a_usage_error_with_a_suggestion(project: Project, how: list[str]):
    project.cases(SOME)
    result = project.run("--rageval-gate", "token_f1 >= 0.5 when category=multihop", *how)
    assert result.ret == 4
    wanted = (
        "gate 'token_f1 >= 0.5 when category=multihop': no case has the category 'multihop'; did you mean 'multi_hop'?"
    )
    assert lines_with(result, wanted)
    assert not project.runs


def test_conditions_are_held_against_all_cases_and_not_those_selected(project: Project):
    project.cases(SOME)
    assert project.run("--rageval-gate", "token_f1 >= 0.1 when category=multi_hop", "-k", "boil").ret == 0


def test_cases_of_a_marked_test_are_known_too(project: Project):
    project.cases([a_case("own", category="odd")], "own_cases.jsonl")
    project.cases(SOME)
    project.write(
        "test_own.py",
        'import pytest\n@pytest.mark.rageval("own_cases.jsonl")\ndef test_own(eval_case, rageval):\n'
        "    rageval.evaluate(eval_case).assert_gates()\n",
    )
    assert project.run("--rageval-gate", "token_f1 >= 0.1 when category=odd").ret == 0


def test_a_gate_for_some_cases_leaves_the_default_gate_to_the_others(project: Project):
    project.cases([a_missed_case("strict"), a_missed_case("lenient", difficulty="hard")])
    result = project.run("--rageval-gate", "recall_any@5 >= 0 when difficulty=hard")
    result.assert_outcomes(passed=1, failed=1)
    assert project.outcomes() == {"strict": "failed", "lenient": "passed"}


def test_off_for_some_cases_is_off_for_them_alone(project: Project):
    project.cases([a_missed_case("strict"), a_missed_case("lenient", difficulty="hard")])
    project.run("--rageval-gate", "recall_any off when difficulty=hard")
    assert project.outcomes() == {"strict": "failed", "lenient": "passed"}
