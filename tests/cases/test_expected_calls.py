"""Expected tool calls in the files of other tools, and in the turns of conversations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from project import Project

from pytest_rageval.cases.loading import load_file


@pytest.mark.parametrize(
    ("row", "tools"),
    [
        (
            {"input": "What?", "expected_output": "4", "expected_tools": [{"name": "s", "input_parameters": {"q": 1}}]},
            [{"name": "s", "args": {"q": 1}}],
        ),
        (
            {"input": "What?", "expected_tools": [{"name": "s", "description": "It searches.", "output": "x"}, "t"]},
            [{"name": "s"}, {"name": "t"}],
        ),
        (
            {"user_input": "What?", "reference": "4", "reference_tool_calls": [{"name": "s", "args": {"q": "a"}}]},
            [{"name": "s", "args": {"q": "a"}}],
        ),
        ({"input": "What?", "expected_output": "4", "expected_tools": []}, None),
        ({"input": "What?", "expected_output": "4", "expected_tools": [3]}, None),
        ({"input": "What?", "expected_output": "4", "expected_tools": None}, None),
    ],
)
def test_calls_that_other_tools_expect_are_converted(project: Project, row: dict[str, Any], tools: Any):
    project.write("goldens.json", json.dumps([row]))
    converted = project.rageval("cases", "convert", "goldens.json", "-o", "evalcases/b.jsonl")
    assert converted.ret == 0
    case = json.loads((project.path / "evalcases" / "b.jsonl").read_text(encoding="utf-8"))
    assert case.get("expected_tools") == tools
    assert project.rageval("cases", "validate", "evalcases/b.jsonl").ret == 0


def said(role: str, text: str, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"type": role, "content": text, **({"tool_calls": [*calls]} if calls else {})}


BOOKS = {"name": "search", "args": {"q": "books"}}
FILMS = {"name": "search", "args": {"q": "films"}}


@pytest.mark.parametrize(
    ("calls", "made", "tools"),
    [
        ([FILMS], BOOKS, [None, [FILMS], None]),
        ([BOOKS], BOOKS, [[BOOKS], None, None]),
        ([BOOKS, FILMS], BOOKS, [[BOOKS], [FILMS], None]),
        ([BOOKS, BOOKS], BOOKS, [[BOOKS], [BOOKS], None]),
        ([], BOOKS, [None, None, None]),
    ],
)
def test_calls_of_a_conversation_belong_to_the_turn_that_makes_them_or_the_last(
    project: Project, calls: list[Any], made: dict[str, Any], tools: list[Any]
):
    messages = [said("human", "Books?"), said("ai", "28 days", made), said("human", "Films?"), said("ai", "7 days"),
                said("human", "Thanks!")]  # fmt: skip
    sample = {"user_input": messages, "reference": "Both are known.", "reference_tool_calls": calls}
    project.write("ragas.json", json.dumps([sample]))
    assert project.rageval("cases", "convert", "ragas.json", "-o", "evalcases/b.jsonl").ret == 0
    read = load_file(project.path / "evalcases" / "b.jsonl", project.path).cases
    written = json.loads((project.path / "evalcases" / "b.jsonl").read_text(encoding="utf-8"))
    assert len([*read]) == 3
    questions = [message for message in written["messages"] if message["role"] == "user"]
    assert [message.get("expected_tools") for message in questions] == tools


def test_an_answer_that_rests_on_nothing_retrieved_keeps_the_empty_list(project: Project):
    rows = [
        {"user_input": "A?", "reference": "a", "response": "b", "retrieved_contexts": []},
        {"user_input": "B?", "reference": "a", "response": "b", "retrieved_contexts": ["c"]},
        {"user_input": "C?", "reference": "a", "response": "b"},
        {"user_input": "D?", "reference": "a", "retrieved_contexts": []},
    ]
    project.write("ragas.json", json.dumps(rows))
    assert project.rageval("cases", "convert", "ragas.json", "-o", "b.jsonl", "--answers", "a.jsonl").ret == 0
    lines = (project.path / "a.jsonl").read_text(encoding="utf-8").splitlines()
    retrieved = [json.loads(line).get("retrieved_chunks") for line in lines]
    assert retrieved == [[], [{"text": "c", "rank": 1}], None]


AGENT = """
def answer(question):
    return {"answer": "4 euros.", "tool_calls": [{"name": "search", "arguments": {"q": question}}]}
"""


def test_each_turn_has_its_own_expected_calls(project: Project):
    project.write("bot.py", AGENT)
    turns = [
        {
            "question": "What does it cost?",
            "expected_tools": [{"name": "search", "args": {"q": {"icontains": "cost"}}}],
        },
        {"question": "And now?", "expected_tools": [{"name": "search", "args": {"q": {"icontains": "tomorrow"}}}]},
        {"question": "Thanks!"},
    ]
    project.cases([{"id": "chat", "forbidden_tools": ["delete_*"], "turns": turns}])
    project.run()
    scores = [record["scores"].get("tools_as_expected") for record in project.results()]
    assert scores == [1.0, 0.0, None]
    assert [record["scores"]["forbidden_tool_called"] for record in project.results()] == [0.0, 0.0, 0.0]


def test_expected_calls_of_a_conversation_as_a_whole_are_refused(project: Project):
    project.cases([{"id": "chat", "expected_tools": [{"name": "search"}], "turns": [{"question": "What?"}]}])
    result = project.run()
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["*a.jsonl:1:*: case 'chat': expected_tools is gold of no turn; write it into its turn*"]
    )
