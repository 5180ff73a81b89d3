"""The demo resolves follow-ups, and the shipped conversations show what it loses without."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from demo_notes import ask, chunks
from project import Project

from pytest_rageval.demo.parameters import Ask, PriorTurn
from pytest_rageval.demo.rewriting import LONGEST, standalone_question

SHIPPED_TALKS = Path(__file__).parents[2] / "evalcases" / "conversations.jsonl"
LOST_WITHOUT = [
    "cameras[3]",
    "fragrance[4]",
    "korea-by-year[2]",
    "kyoto[2]",
    "price-list[3]",
    "raw-data[2]",
]
"""Follow-ups that the demo cannot answer as they stand."""


def rewritten(*questions: str, **fields: Any) -> str:
    """The last question as it stands alone, after the others."""
    history = [PriorTurn(role="user", text=question) for question in questions[:-1]]
    return standalone_question(Ask(question=questions[-1], history=history, **fields))


@pytest.mark.parametrize(
    ("questions", "alone"),
    [
        (("What does a return cost?", "And from Jeju?"), "What does a return cost from Jeju?"),
        (("What does a return from Seoul cost?", "And from Jeju?"), "What does a return from Jeju cost?"),
        (("How long are they kept on tape?", "And on disk?"), "How long are they kept on disk?"),
        (("How much does the Dew Mask cost?", "And the Lip Balm?"), "How much does the Lip Balm cost?"),
        (("How much does the Dew Mask cost?", "What about the Lip Balm?"), "How much does the Lip Balm cost?"),
        (("What did Laneige hold in 2024?", "And in 2023?"), "What did Laneige hold in 2023?"),
        (("2024년 한국 시장 점유율은?", "그럼 2023년에는?"), "2023년 한국 시장 점유율은?"),
        (("How much does the Dew Mask cost?", "Who makes it?"), "Who makes the Dew Mask?"),
        (("How fast is the face camera?", "What is its exposure?"), "What is the face camera's exposure?"),
        (("Is the Dew Mask new?", "And the Lip Balm?", "Where is it sold?"), "Where is the Lip Balm sold?"),
        (("Is the Dew Mask new?", "Thanks!", "Where is it sold?"), "Where is the Dew Mask sold?"),
        (("How is the return rate defined?", "Why?"), "Why? How is the return rate defined?"),
    ],
)
def test_a_follow_up_takes_what_it_leaves_out_from_the_question_before(questions: tuple[str, ...], alone: str):
    assert rewritten(*questions) == alone


@pytest.mark.parametrize(
    "question",
    [
        "Who won the election in 2087?",
        "And how long is the nightly backup?",
        "Thanks a lot!",
        f"And {'x' * LONGEST}?",
        "",
    ],
)
def test_a_question_that_stands_alone_or_asks_nothing_stays(question: str):
    assert rewritten("How much does the Dew Mask cost?", question) == question


def test_without_an_earlier_question_or_with_the_step_off_nothing_is_rewritten():
    assert rewritten("And from Jeju?") == "And from Jeju?"
    assert rewritten("Thanks!", "And from Jeju?") == "And from Jeju?"
    assert rewritten("How much does the Dew Mask cost?", "Who makes it?", rewrite=False) == "Who makes it?"


def test_the_response_says_what_was_asked_in_place_of_a_follow_up():
    history = [{"role": "user", "text": "How long are raw data kept on tape?"}]
    response = ask("And on disk?", history=history)
    assert response["debug"]["rewritten_question"] == "How long are raw data kept on disk?"
    assert chunks(response)[0]["rel_path"] == "data-management/retention-and-backup.md"
    assert ask("And on disk?", history=history, rewrite=False)["abstained"] is True


def test_thanks_are_answered_and_not_looked_up():
    response = ask("Thanks!", history=[{"role": "user", "text": "How long are raw data kept on tape?"}])
    assert response["answer"].startswith("You are welcome.")
    assert response["references"] == []
    assert chunks(response) == []


def outcomes(project: Project) -> dict[str, str]:
    lines = (project.runs[-1] / "results.jsonl").read_text("utf-8").splitlines()
    return {record["test_case_id"]: record["outcome"] for record in map(json.loads, lines) if "outcome" in record}


def test_the_shipped_conversations_pass_and_name_the_turns_lost_without_the_step(project: Project):
    (project.path / "evalcases").mkdir()
    shutil.copy(SHIPPED_TALKS, project.path / "evalcases")
    project.configure('target = "demo"')
    with_step = project.rageval("run", "--run-id", "a")
    assert with_step.ret == 0
    assert set(outcomes(project).values()) == {"passed"}
    assert project.rageval("run", "--run-id", "b", "--param", "rewrite=false").ret == 1
    assert sorted(name for name, outcome in outcomes(project).items() if outcome == "failed") == LOST_WITHOUT


@pytest.mark.parametrize("step", ["true", "false"])
def test_the_gap_to_the_rewrites_is_what_the_demo_loses_without_the_step(project: Project, step: str):
    (project.path / "evalcases").mkdir()
    shutil.copy(SHIPPED_TALKS, project.path / "evalcases")
    project.configure('target = "demo"\nrewrites = true\ngates.run = ["run rewrite_gap@recall@5 <= 0.1"]')
    result = project.rageval("run", "--param", f"rewrite={step}")
    gap = project.metrics()["metrics"]["rewrite_gap@recall_any@5"]
    assert (gap["n_expected"], gap["n_independent"]) == (11, 6)
    assert gap["rewritten"] > 0.9
    if step == "true":
        assert result.ret == 0
        assert abs(gap["mean"]) < 0.05
    else:
        assert result.ret == 1
        assert gap["mean"] > 0.3
