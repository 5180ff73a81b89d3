"""Expected tool calls in the files of other tools, and in the turns of conversations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from project import Project


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
