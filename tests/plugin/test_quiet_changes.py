"""Changes that fail no build, and that the verdict says all the same."""

from __future__ import annotations

from typing import Any

import pytest
from project import Project, a_case, lines_with

pytestmark = pytest.mark.reliability("false greens", "a quiet change for the worse", costs="false green")

SAYS = """
def answer(question):
    return {{"answer": "{}", "retrieved_chunks": [{{"rel_path": "air.md"}}, {{"rel_path": "water.md"}}]}}
"""
FACTS = ["100 degrees", "sea level", "blue water"]


def says(project: Project, text: str) -> None:
    project.write("says.py", SAYS.format(text))


@pytest.fixture
def stated(project: Project) -> Project:
    """A project with a baseline of two cases, one of which fails for a fact that the answer leaves out."""
    says(project, "Blue is the flower. It boils at 100 degrees at sea level.")
    project.configure('target = "says:answer"\nknown_failures = "ratchet"')
    project.cases([fact_case("facts", FACTS), fact_case("plain", None)])
    project.run("--rageval-update-baseline")
    return project


def fact_case(name: str, facts: list[str] | None) -> dict[str, Any]:
    place = [{"rel_path": "water.md"}]
    case = {"id": name, "question": f"boiling point of {name}?", "gold_supports": place}
    return case | ({"expected_key_facts": facts} if facts else {})


def sentence(project: Project) -> str:
    return str(project.metrics()["verdict"]["sentence"])


def test_a_known_failure_that_got_clearly_worse_is_told(stated: Project):
    says(stated, "It is hot there, as everyone knows.")
    result = stated.run()
    assert "Passes: 1 known failure got worse, " in sentence(stated)
    assert (stated.metrics()["verdict"]["tone"], stated.metrics()["verdict"]["word"]) == ("amber", "Worse")
    assert result.ret == 0
    shown = stated.rageval("compare", "baseline", "latest").stdout.str()
    assert "1 known failure got worse" in shown


def test_one_fact_less_is_no_clear_fall(stated: Project):
    says(stated, "It boils at 100 degrees, as everyone knows.")
    stated.run()
    assert "known failure got worse" not in sentence(stated)


def test_a_removed_case_is_told(stated: Project):
    stated.cases([fact_case("facts", FACTS)])
    stated.run()
    assert "; 1 case of the baseline was removed" in sentence(stated)
    assert stated.metrics()["verdict"]["word"] == "Partly comparable"
    assert "1 case of the baseline was removed" in stated.rageval("comment", "latest").stdout.str()


def test_cases_that_were_not_selected_are_not_removed(stated: Project):
    stated.run("-k", "facts")
    assert "removed" not in sentence(stated)


def test_cases_that_fail_only_by_a_gate_that_was_added_are_counted_and_named(stated: Project):
    result = stated.run("--rageval-gate", "mrr >= 0.9")
    assert "; 1 case fails only by the new gate mrr >= 0.9" in sentence(stated)
    assert lines_with(result, "1 case fails only by the new gate mrr >= 0.9: evalcases/a.jsonl::plain")
    decided = stated.rageval("gate", "latest", "--gate", "mrr >= 0.8").stdout.str()
    assert "1 case fails only by the new gate mrr >= 0.8" in " ".join(decided.split())


def test_a_gate_that_was_already_there_is_not_new(project: Project):
    says(project, "It boils.")
    project.configure('target = "says:answer"\nknown_failures = "ratchet"')
    project.cases([a_case("one", "boil?", gold=None, gold_supports=[{"rel_path": "water.md"}])])
    project.run("--rageval-gate", "mrr >= 0.9", "--rageval-update-baseline")
    project.run("--rageval-gate", "mrr >= 0.9")
    assert "new gate" not in sentence(project)


def test_a_misspelt_key_of_the_answer_is_named(project: Project):
    project.write("typo.py", "def answer(question):\n    return {'anwser': 'hot', 'retrieved_chunks': []}\n")
    project.configure('target = "typo:answer"')
    project.cases([a_case("one")])
    result = project.run()
    assert "'answer' is not among the keys, but anwser" in " ".join(result.outlines)
    assert project.outcomes() == {"one": "error"}


def test_a_run_in_which_some_cases_have_no_answer_does_not_count_all_as_a_part(project: Project):
    project.cases([a_case("one"), a_case("two")])
    project.write("answers.jsonl", '{"id": "one", "answer": "100 degrees"}\n')
    project.configure('target = "answers:answers.jsonl"')
    project.run("--rageval-allow-partial")
    assert "only 2 of 2 cases ran" not in sentence(project)
    assert "not all cases have an answer; " in sentence(project)
