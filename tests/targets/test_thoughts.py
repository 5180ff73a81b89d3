"""Thoughts in front of an answer: no metric reads them, and alone they are no answer."""

from __future__ import annotations

import json

import pytest
from project import Project

from pytest_rageval.llm.thoughts import thoughts_and_answer
from pytest_rageval.targets.native_contract import answer_from_response, answer_to_response

DENYING = "I do not know this. The first document does not mention it."
FORMS = [
    "<think>{thoughts}</think>{answer}",
    "<think>\n{thoughts}\n</think>\n\n{answer}",
    "<THINK>{thoughts}</THINK> {answer}",
    "<thinking>{thoughts}</thinking>\n{answer}",
    "<thought>{thoughts}</thought>{answer}",
    "<reasoning>{thoughts}</reasoning>\n{answer}",
    "<scratchpad>{thoughts}</scratchpad>\n{answer}",
    "<think>{thoughts}</think>\n<answer>{answer}</answer>",
    "<think>Hm.</think>\n<think>{thoughts}</think>\n{answer}",
    "[THOUGHT] {thoughts} [/THOUGHT] {answer}",
    "[THINK]{thoughts}[/THINK]{answer}",
    "◁think▷{thoughts}◁/think▷{answer}",
    "<|begin_of_thought|>{thoughts}<|end_of_thought|>{answer}",
    "<|channel|>analysis<|message|>{thoughts}<|end|><|start|>assistant<|channel|>final<|message|>{answer}",
    '<details type="reasoning" done="true">\n<summary>Thought</summary>\n{thoughts}\n</details>\n{answer}',
    "{thoughts}</think>{answer}",
    "{thoughts}\n</think>\n\n{answer}",
    "Thought: {thoughts}\nAction: search\nObservation: 50 MB\nFinal Answer: {answer}",
    "Thought: {thoughts}\nFinal Answer: {answer}",
    "Thoughts: {thoughts}\n\nAnswer: {answer}",
    "**Reasoning:** {thoughts}\n\n**Answer:** {answer}",
    "Question: What is the limit?\nThought: {thoughts}\nFinal Answer: {answer}",
]
MENTIONS = [
    "End the thoughts with </think> and go on.",
    "The tag is `</think>`.",
    "`<think>` opens the thoughts, `</think>` ends them.",
    "<think> and </think> are the tags.",
    "<think> is the opening tag.",
    "<think>, <thinking> and <reasoning> are common.",
    "Write:\n```\n<think>\nreasoning\n</think>\nanswer\n```\nThat is all.",
    'Models print "</think>" there.',
    "Some models write <think>so</think> in front of an answer.",
    "The [THINK] token opens the thoughts of that model.",
    "Thought: the shop's own magazine. It appears monthly.",
    "Reasoning: the leaflet says 50 MB.",
    "Thoughts are free.",
    "[1] The limit is 50 MB.",
    "If a < b and b > c, the answer is open.",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("answer", ["The limit is 50 MB.", "It is 50 MB.\n\n- a\n- b", "50 MB [1]"])
def test_an_answer_is_what_is_left_without_thoughts(form: str, answer: str):
    thoughts, said = thoughts_and_answer(form.format(thoughts=DENYING, answer=answer))
    assert said.strip() == answer
    assert DENYING in thoughts


@pytest.mark.parametrize("text", MENTIONS)
def test_an_answer_that_mentions_the_marks_of_thoughts_is_whole(text: str):
    assert thoughts_and_answer(text) == ("", text)


@pytest.mark.parametrize(
    "text",
    [
        "<think>I should look at the notes first.</think>",
        "<think>\nThe user wants the limit, so I look",
        "[THINK]Which limit?[/THINK]\n",
        "Thought: I should search.\nAction: search\nAction Input: limit",
    ],
)
def test_thoughts_alone_leave_nothing(text: str):
    thoughts, said = thoughts_and_answer(text)
    assert thoughts
    assert not said.strip()


def test_thoughts_are_kept_beside_the_answer_and_read_back():
    answer = answer_from_response({"answer": "<think>Hm.</think>50 MB"}, "here")
    assert (answer.text, dict(answer.extra)) == ("50 MB", {"thoughts": "Hm."})
    assert answer_from_response(answer_to_response(answer), "here") == answer


LIMIT = {"question": "What is the limit?", "gold": {"answer": "50 MB"}}
FOUNDER = {"question": "Who founded it?", "answerable": False}
ANSWERS = {
    "right": f"<think>{DENYING} Wait, limits.md says 50 MB.</think>The limit is 50 MB.",
    "by-label": f"Thought: {DENYING}\nFinal Answer: 50 MB",
    "only-thought-of": "<think>50 MB</think>The limit is large.",
    "made-up": "<think>I can't find it, no information in the documents.</think>It was founded by Maria Lopez.",
    "declined": "<think>Maria Lopez?</think>The documents do not say who founded it.",
    "thoughts-alone": "<think>It is 50 MB.</think>",
    "cut-off": "<think>The documents do not mention a founder. I do not know",
}
EXPECTED = {
    "right": "passed",
    "by-label": "passed",
    "only-thought-of": "failed",
    "made-up": "failed",
    "declined": "passed",
    "thoughts-alone": "error",
    "cut-off": "error",
}
BOT = """\
ANSWERS = {answers}

def answer(question, case_id=None):
    return ANSWERS[question.split(": ")[0]]
"""


def cases() -> list[dict[str, object]]:
    made = []
    for name in ANSWERS:
        case = FOUNDER if name in ("made-up", "declined", "cut-off") else LIMIT
        made.append({"id": name, **case, "question": f"{name}: {case['question']}"})
    return made


@pytest.mark.reliability("false greens", "thoughts read as the answer", costs="false green")
@pytest.mark.parametrize("target", ["answers", "callable"])
def test_thoughts_decide_no_verdict(project: Project, target: str):
    project.cases(cases())
    if target == "answers":
        lines = [json.dumps({"id": id, "answer": said}) for id, said in ANSWERS.items()]
        project.write("answers.jsonl", "\n".join(lines))
        project.configure('target = "answers:answers.jsonl"\njudge = "none"')
    else:
        project.write("bot.py", BOT.format(answers=ANSWERS))
        project.configure('target = "bot:answer"\njudge = "none"')
    project.run()
    records = project.records()
    assert {name: record["outcome"] for name, record in records.items()} == EXPECTED
    for name in ("thoughts-alone", "cut-off"):
        assert records[name]["error"]["kind"] == "no_answer"
    assert records["right"]["answer"] == "The limit is 50 MB."
