"""Conversations of other tools become records with turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from project import Project

from pytest_rageval.cases.exchange.exchange import OtherTestSet
from pytest_rageval.cases.exchange.formats import read_other
from pytest_rageval.cases.loading import load_file
from pytest_rageval.errors import CaseError
from pytest_rageval.model import EvalCase


def converted(folder: Path, *rows: object, form: str | None = None) -> OtherTestSet:
    path = folder / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return read_other(path, "rows.jsonl", form)


def cases_of(folder: Path, *rows: object) -> list[EvalCase]:
    """The cases that the converted file is read as."""
    path = folder / "converted.jsonl"
    path.write_text("\n".join(map(json.dumps, converted(folder, *rows).cases)), encoding="utf-8")
    return list(load_file(path, folder).cases)


def a_task(number: int, answerability: str, *said: str, **fields: Any) -> dict[str, Any]:
    """A task of MTRAG: its question is the last that is said."""
    speakers = ("user", "agent")
    messages = [{"speaker": speakers[place % 2], "text": text} for place, text in enumerate(said)]
    return {
        "conversation_id": "c", "task_id": f"c::{number}", "turn": number, "collection": "clapnq", "contexts": [],
        "input": messages, "answerability": [answerability], "Question Type": ["Factoid"], "Multi-Turn": None, **fields,
    }  # fmt: skip


def a_target(text: str) -> list[dict[str, str]]:
    return [{"speaker": "agent", "text": text}]


def a_context(name: str, said: str | None) -> dict[str, Any]:
    feedback = {"feedback": {"relevant": {"someone": {"value": said}}}} if said else {}
    return {"document_id": name, "text": "…", "score": 2.5, **feedback}


def test_tasks_of_mtrag_are_the_turns_of_a_conversation(tmp_path: Path):
    contexts = [a_context("p1", "yes"), a_context("p2", "no")]
    tasks = [
        a_task(3, "UNANSWERABLE", "Who?", "Me.", "Where?", "There.", "When?", targets=a_target("I do not know.")),
        a_task(1, "ANSWERABLE", "Who?", targets=a_target("Me."), contexts=contexts, predictions=[{"text": "You."}]),
        a_task(4, "CONVERSATIONAL", "Who?", "Me.", "Where?", "There.", "When?", "I do not know.", "Thanks!"),
    ]
    first, second, third, fourth = cases_of(tmp_path, *tasks)
    assert [case.id for case in (first, second, third, fourth)] == ["c[1]", "c[2]", "c[3]", "c[4]"]
    assert (first.question, first.gold.answers, first.gold.chunk_ids) == ("Who?", ("Me.",), ("p1",))
    assert (second.question, second.gold.answers) == ("Where?", ("There.",)), "known from a later task alone"
    assert (third.question, third.answerable, third.gold.answers) == ("When?", False, None)
    assert (fourth.question, fourth.conversational) == ("Thanks!", True)
    assert [turn.question for turn in fourth.earlier] == ["Who?", "Where?", "When?"]
    assert converted(tmp_path, *tasks).answers == [{"id": "c[1]", "answer": "You."}]


def test_passages_that_a_system_retrieved_are_no_gold(tmp_path: Path):
    task = a_task(1, "ANSWERABLE", "Who?", targets=a_target("Me."), contexts=[a_context("p1", None)])
    (case,) = cases_of(tmp_path, task)
    assert case.gold.chunk_ids is None
    (answer,) = converted(tmp_path, task).answers
    assert answer["retrieved_chunks"] == [{"rank": 1, "chunk_id": "p1", "text": "…"}]


def test_turns_with_questions_take_the_names_that_they_have_here(tmp_path: Path):
    turns = [
        {"turn": 1, "question": "Who?", "standalone": "Who?", "reference_answer": "Me.", "answerability": "answerable",
         "relevant": ["p1", "p2"]},
        {"turn": 2, "question": "And when?", "standalone": "When did I?", "reference_answer": "Nobody knows.",
         "answerability": "unanswerable", "relevant": []},
        {"turn": 3, "question": "Ok!", "answerability": "conversational", "relevant": []},
    ]  # fmt: skip
    first, second, third = cases_of(tmp_path, {"id": "c", "collection": "govt", "turns": turns})
    assert (first.gold.answers, first.gold.chunk_ids) == (("Me.",), ("p1", "p2"))
    assert (second.rewrite, second.answerable, second.gold.answers) == ("When did I?", False, None)
    assert third.conversational


def test_conversational_goldens_of_deepeval_are_read(tmp_path: Path):
    said = [{"role": "user", "content": "A return?"}, {"role": "assistant", "content": "4 euros."},
            {"role": "user", "content": "And from Jeju?"}, {"role": "assistant", "content": "6 euros."}]  # fmt: skip
    golden = {"scenario": "Someone asks for prices.", "expectedOutcome": "Both are known.", "turns": said,
              "userDescription": "In haste", "additionalMetadata": {"source": "x"}, "name": None}  # fmt: skip
    first, second = cases_of(tmp_path, golden)
    assert (first.question, first.gold.answers) == ("A return?", ("4 euros.",))
    assert (second.question, second.gold.answers, second.expected_outcome) == (
        "And from Jeju?", ("6 euros.",), "Both are known."
    )  # fmt: skip
    assert second.metadata["scenario"] == "Someone asks for prices."


@pytest.mark.parametrize("turns", [{}, {"turns": None}, {"turns": []}])
def test_a_scenario_without_turns_asks_nothing_and_is_an_error(tmp_path: Path, turns: dict[str, Any]):
    with pytest.raises(CaseError, match=r"rows.jsonl:1.*has no turns, so that nothing is asked; a scenario alone"):
        converted(tmp_path, {"scenario": "Someone asks.", "expected_outcome": "Known.", **turns})


def test_multi_turn_samples_of_ragas_are_read(tmp_path: Path):
    said = [{"content": "A return?", "type": "human"}, {"content": "4 euros.", "type": "ai", "tool_calls": None},
            {"content": "{}", "type": "tool"}, {"content": "And from Jeju?", "type": "human"}]  # fmt: skip
    first, second = cases_of(
        tmp_path, {"user_input": said, "reference": "Both prices.", "reference_topics": ["prices"]}
    )
    assert first.gold.answers == ("4 euros.",)
    assert (second.gold.answers, second.expected_outcome) == (None, "Both prices.")
    assert second.metadata["reference_topics"] == ["prices"]
    (answer,) = converted(tmp_path, {"id": "x", "user_input": said, "reference": "Both prices."}).answers
    assert answer == {"id": "x[1]", "answer": "4 euros."}


def test_messages_with_gold_of_the_last_question_stay_one_case(tmp_path: Path):
    said = [{"role": "user", "content": "A return?"}, {"role": "assistant", "content": "4 euros."},
            {"role": "user", "content": "And from Jeju?"}]  # fmt: skip
    (case,) = converted(tmp_path, {"input": said, "ideal": "6 euros."}).cases
    assert (case["question"], case["reference"], len(case["history"])) == ("And from Jeju?", "6 euros.", 2)
    (conversation,) = converted(tmp_path, {"messages": said}).cases
    assert len(conversation["messages"]) == 3
    shared = [{"from": "human", "value": "A?"}, {"from": "gpt", "value": "B."}, {"from": "human", "value": "C?"}]
    (conversation,) = converted(tmp_path, {"conversations": shared}).cases
    assert [message["role"] for message in conversation["messages"]] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"turns": [3]}, "turns[0] is 3"),
        ({"turns": [{"question": 3}]}, "question is 3"),
        ({"turns": [{"role": "user", "content": None}]}, "question"),
        ({"turns": [{"question": "a?", "relevant": 7}]}, "relevant_ids is 7"),
        ({"turns": [{"question": "a?"}] * 501}, "more than 500"),
    ],
)
def test_what_is_no_conversation_is_said_in_a_line(tmp_path: Path, row: dict[str, Any], problem: str):
    with pytest.raises(CaseError) as error:
        converted(tmp_path, row)
    assert problem in str(error.value)


def test_a_damaged_task_is_no_traceback(tmp_path: Path):
    task = a_task(1, "ANSWERABLE", "Who?")
    with pytest.raises(CaseError, match="question"):
        converted(tmp_path, {**task, "input": [{"speaker": "user"}]})
    (case,) = cases_of(tmp_path, {**task, "targets": 3, "contexts": {"a": 1}, "answerability": 7})
    assert case.question == "Who?"


def test_the_command_writes_a_file_that_runs(project: Project):
    said = [{"role": "user", "content": "boiling?"}, {"role": "assistant", "content": "100 degrees."},
            {"role": "user", "content": "And freezing?"}]  # fmt: skip
    (project.path / "chat.jsonl").write_text(json.dumps({"id": "chat", "messages": said}), encoding="utf-8")
    result = project.rageval("cases", "convert", "chat.jsonl", "-o", "evalcases/chat.jsonl")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["evalcases/chat.jsonl: 2 cases; gold answer 1, none 1"])
    assert "replies of the assistant are read as the right answers" in str(result.stderr)
    result = project.rageval("cases", "validate", "evalcases/chat.jsonl")
    result.stdout.fnmatch_lines(["1 file, 2 cases, 0 problems"])


def a_chat(*said: str, **fields: Any) -> dict[str, Any]:
    messages = []
    for place, text in enumerate(said):
        messages.append({"role": ("user", "assistant")[place % 2], "content": text})
    return {"messages": messages, **fields}


@pytest.mark.parametrize("talk", ["Hi there", "Thanks!", "Danke schön!", "감사합니다", "Ok"])
def test_a_turn_of_small_talk_has_no_right_answer(tmp_path: Path, talk: str):
    chat = a_chat(talk, "Hello! How nice.", "Which regions are there?", "Two.")
    greeting, question = cases_of(tmp_path, chat)
    assert (greeting.question, greeting.conversational, greeting.gold.answers) == (talk, True, None)
    assert (question.conversational, question.gold.answers) == (False, ("Two.",))
    assert "1 turn of small talk, such as a greeting" in converted(tmp_path, chat).notes[-1]


@pytest.mark.parametrize("said", ["Hi, which regions are there?", "Ok"])
def test_what_asks_or_agrees_to_something_is_no_small_talk(tmp_path: Path, said: str):
    chat = a_chat("What is the fee?", "Five euros. Shall I add the tax?", said, "It is six euros then.")
    _, last = cases_of(tmp_path, chat)
    assert (last.conversational, last.gold.answers) == (False, ("It is six euros then.",))
    assert not any("small talk" in note for note in converted(tmp_path, chat).notes)


def test_what_a_system_replied_to_small_talk_is_kept_as_its_answer(tmp_path: Path):
    said = [("human", "Hello"), ("ai", "Hi!"), ("human", "How long are books lent?"), ("ai", "28 days")]
    sample = {"user_input": [{"type": role, "content": text} for role, text in said]}
    answers = [record["answer"] for record in converted(tmp_path, sample).answers]
    assert answers == ["Hi!", "28 days"]
