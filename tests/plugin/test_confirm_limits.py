"""What is confirmed of a known failure, and when so many cases newly fail that none is asked again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest
from project import Project, a_case, lines_with
from wavering import answers, asked, outcomes, wavering_project, with_baseline

from pytest_rageval.run.attempts import MOST_BY_CHANCE

BOT = """
import json
from pathlib import Path

PLACE = {"rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling"}
CHUNK = {"chunk_id": "c1", "text": "At 100 degrees.", **PLACE}

def answer(question):
    turns = json.loads(Path("turns.json").read_text())
    asked = Path("asked.txt")
    number = int(asked.read_text())
    asked.write_text(str(number + 1))
    turn = turns[number % len(turns)]
    if turn == "error":
        raise ValueError("the index is gone")
    return {
        "answer": "It boils at 100 degrees." if "text" in turn else "Nobody has measured it, in 7 places.",
        "abstained": False,
        "retrieved_chunks": [CHUNK] if "chunk" in turn else [],
    }
"""
KEY = "evalcases/a.jsonl::known"
TABLE = """target = "two_parts:answer"
report = false
judge = "none"
known_failures = "ratchet"
concurrency = 1
allow_regressions = true
[tool.rageval.gates]
case = ["recall_any >= 1", "gold_in_answer >= 0.5"]
"""


@pytest.fixture
def known(project: Project) -> Project:
    """A case that retrieves nothing in the baseline, and answers well."""
    project.write("two_parts.py", BOT)
    project.configure(TABLE)
    project.cases([a_case("known", gold={"answer": "At 100 degrees."})])
    turns(project, ["text"])
    project.run("--rageval-update-baseline", "--rageval-known-failures", "report")
    return project


def turns(project: Project, each: Sequence[str]) -> None:
    project.write("turns.json", json.dumps(each))
    project.write("asked.txt", "0")


def flips(project: Project) -> Mapping[str, object]:
    comparison = project.metrics()["comparison"]
    return {name: comparison[name] for name in ("fails_new_gate", "new_gates")}


def test_a_new_gate_of_a_known_failure_is_confirmed(known: Project):
    turns(known, ["none"])
    result = known.run()
    assert result.ret == 1
    assert (known.path / "asked.txt").read_text() == "3"
    assert "1 known failure fails a new gate" in known.metrics()["verdict"]["sentence"]
    assert known.metrics()["volatile"]["new_failures"] == {"confirmed": 1}
    assert flips(known)["new_gates"] == {KEY: ["gold_in_answer"]}


def test_a_new_gate_that_fails_by_chance_leaves_a_known_failure(known: Project):
    turns(known, ["none", "text", "text"])
    result = known.run()
    assert result.ret == 0
    assert outcomes(known) == {"xfailed": 1}
    assert flips(known) == {"fails_new_gate": [], "new_gates": {}}
    [flaky] = known.metrics()["flaky"]
    assert flaky["why"] == "gold_in_answer is 0, gate >= 0.5 failed in 1 of 3 attempts"
    assert flaky["spared"] == ["gold_in_answer"]
    assert "1 case is flaky (known)" in known.metrics()["verdict"]["sentence"]
    assert {gate["metric"] for record in known.results() for gate in record["verdict"]["failed_gates"]} == {
        "recall_any@5"
    }
    for command in (["compare", "baseline", "latest"], ["gate", "latest"]):
        assert known.rageval(*command).ret == 0, command
    assert lines_with(known.rageval("explain", "latest", "known"), "failed in 1 of 3 attempts")


def test_a_known_failure_that_is_fixed_while_a_new_gate_wavers_passes(known: Project):
    turns(known, ["chunk", "chunk text", "chunk text"])
    assert known.run().ret == 0
    assert outcomes(known) == {"passed": 1}
    assert "1 fixed; 1 case is flaky (known)" in known.metrics()["verdict"]["sentence"]


@pytest.mark.parametrize("each", [["none", "none", "text"], ["none", "error", "error"], ["none", "text", "error"]])
def test_a_new_gate_that_fails_in_most_attempts_stays_new(known: Project, each: list[str]):
    turns(known, each)
    assert known.run().ret == 1
    assert flips(known)["new_gates"] == {KEY: ["gold_in_answer"]}


def test_a_spared_gate_is_no_excuse_in_the_next_baseline(known: Project):
    turns(known, ["none", "text", "text"])
    assert known.run("--rageval-update-baseline").ret == 0
    turns(known, ["none"])
    assert known.run().ret == 1
    assert flips(known)["new_gates"] == {KEY: ["gold_in_answer"]}


def test_deciding_a_run_again_spares_the_same_gate(known: Project):
    turns(known, ["none", "text", "text"])
    known.run()
    assert known.rageval("score", "latest").ret == 0
    assert outcomes(known) == {"xfailed": 1}
    assert flips(known) == {"fails_new_gate": [], "new_gates": {}}


def test_a_bot_that_broke_altogether_is_not_asked_three_times_over(project: Project):
    names = [f"c{number:03}" for number in range(60)]
    wavering = with_baseline(wavering_project(project, names))
    answers(wavering, {name: ["wrong"] for name in names})
    result = wavering.run()
    assert result.ret == 1
    assert outcomes(wavering) == {"failed": 60}
    assert sum(asked(wavering).values()) == 60 + 2 * MOST_BY_CHANCE
    metrics = wavering.metrics()
    counts = {"confirmed": MOST_BY_CHANCE, "not_asked_again": 40}
    assert metrics["volatile"]["new_failures"] == counts
    assert "40 more were not asked again, since too many cases newly fail" in result.stdout.str()
    # Decided again, the run says the same of them.
    wavering.rageval("score", "latest")
    assert wavering.metrics()["volatile"]["new_failures"] == counts


def test_new_failures_among_many_cases_that_pass_are_all_asked_again(project: Project):
    names = [f"c{number:03}" for number in range(75)]
    wavering = with_baseline(wavering_project(project, names))
    answers(wavering, {name: ["wrong"] for name in names[::3]})
    assert wavering.run("-p", "no:randomly").ret == 1
    assert wavering.metrics()["volatile"]["new_failures"] == {"confirmed": 25}
    assert sum(asked(wavering).values()) == 75 + 2 * 25
