"""The default gates of an answer, as a user meets them: what is gated, and what a failing case says."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from project import Project, lines_with


def answers(project: Project, texts: Mapping[str, object], table: str = "") -> None:
    lines = [
        {"id": id, **(text if isinstance(text, dict) else {"answer": text, "abstained": False})}
        for id, text in texts.items()
    ]
    project.write("answers.jsonl", "\n".join(map(json.dumps, lines)))
    project.configure('target = "answers:answers.jsonl"\njudge = "none"', table)


def test_a_right_answer_in_a_sentence_passes_and_another_value_fails_with_what_it_says(project: Project):
    case = {"question": "How long is the warranty?", "gold": {"answer": "24 months"}}
    project.cases([{"id": id, **case} for id in ("right", "wrong")])
    answers(
        project, {"right": "Every device that we sell comes with a two-year warranty.", "wrong": "It is 12 months."}
    )
    result = project.run()
    assert project.outcomes() == {"right": "passed", "wrong": "failed"}
    assert lines_with(result, "missing    `24 months` is not in the answer; it says 12 months")
    (wrong,) = [line for line in project.results() if line["outcome"] == "failed"]
    assert wrong["verdict"]["failed_gates"][0]["metric"] == "gold_in_answer"
    assert wrong["score_details"]["gold_in_answer"]["missing"] == "`24 months` is not in the answer; it says 12 months"
    explained = project.rageval("explain", "latest", "wrong")
    assert lines_with(explained, "`24 months` is not in the answer; it says 12 months")


def test_in_the_layered_format_f1_gates_unless_the_gold_stands_in_the_answer(project: Project):
    gold = {"answer": "a fast red car", "concepts": []}
    project.cases([{"id": id, "question": "What is it?", "gold": gold} for id in ("whole", "part")])
    answers(project, {"whole": "What they drive around in every Sunday afternoon is a fast red car.",
                      "part": "What they drive around in every Sunday afternoon is a red car."})  # fmt: skip
    project.run()
    assert project.outcomes() == {"whole": "passed", "part": "failed"}
    (part,) = [line for line in project.results() if line["outcome"] == "failed"]
    assert [gate["metric"] for gate in part["verdict"]["failed_gates"]] == ["token_f1"]


FACTS = [
    {"id": id, "question": "What is the tower like?", "expected_key_facts": ["236 metres", "opened in 1975"]}
    for id in ("all", "some")
]
TOWER = {"all": "The tower is 236 metres high and opened in 1975.", "some": "The tower is 236 metres high."}


def test_key_facts_alone_are_gated(project: Project):
    project.cases(FACTS)
    answers(project, TOWER)
    result = project.run()
    assert project.outcomes() == {"all": "passed", "some": "failed"}
    assert lines_with(result, "key_fact_recall is 0.5, gate >= 1")


@pytest.mark.parametrize("gate", ["key_fact_recall off", "key_fact_recall off when category=uncategorised"])
def test_key_facts_that_no_gate_looks_at_are_counted(project: Project, gate: str):
    project.cases(FACTS)
    answers(project, TOWER)
    result = project.run("--rageval-gate", gate)
    assert project.outcomes() == {"all": "passed", "some": "passed"}
    assert lines_with(result, "2 cases have key facts that no gate looks at")


def test_key_facts_beside_a_gold_answer_are_not_counted(project: Project):
    project.cases([{**FACTS[0], "gold": {"answer": "236 metres"}}])
    answers(project, TOWER)
    assert not lines_with(project.run(), "key facts that no gate looks at")


def test_a_run_gate_counts_refusals(project: Project):
    project.cases([{"id": f"q{at}", "question": "Where?", "gold": {"answer": "Paris"}} for at in range(8)])
    refusal = {"answer": "I do not know.", "abstained": True}
    answers(project, {"q0": "Paris", **{f"q{at}": refusal for at in range(1, 8)}})
    result = project.run("--rageval-gate", "run token_f1 >= 0.9")
    assert lines_with(result, "token_f1 is 0.125, gate >= 0.9 · 8 of 8 cases")
    assert result.ret == 1
