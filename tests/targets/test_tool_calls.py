"""Tool calls of answers in the forms of chat services and frameworks, and by a mapping."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from fault_server import FaultServer, gives
from project import Project

from pytest_rageval.errors import TargetError
from pytest_rageval.model import Chunk, ToolCall
from pytest_rageval.targets.native_contract import answer_from_record, answer_from_response, answer_to_response

CHUNKS = (Chunk(rel_path="a.md", text="A"), Chunk(rel_path="b.md", text="B"))
PASSAGES = [{"rel_path": "a.md", "text": "A"}, {"rel_path": "b.md", "text": "B"}]
SEARCH = {"query": "jeju"}
OPENAI = {"id": "1", "type": "function", "function": {"name": "search", "arguments": json.dumps(SEARCH)}}
MESSAGES: dict[str, list[Any]] = {
    "OpenAI": [
        {"role": "user", "content": "What?"},
        {"role": "assistant", "content": None, "tool_calls": [OPENAI]},
        {"role": "tool", "tool_call_id": "1", "content": json.dumps(PASSAGES)},
    ],
    "Anthropic": [
        {"role": "user", "content": "What?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "search", "input": SEARCH}]},
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "1",
                    "content": [{"type": "text", "text": json.dumps(PASSAGES)}],
                }
            ],
        },
    ],
    "LangChain": [
        {"type": "human", "content": "What?"},
        {"type": "ai", "content": "", "tool_calls": [{"name": "search", "args": SEARCH, "id": "1"}]},
        {"type": "tool", "tool_call_id": "1", "content": json.dumps({"documents": PASSAGES})},
    ],
    "Responses": [
        {"type": "function_call", "call_id": "1", "name": "search", "arguments": json.dumps(SEARCH)},
        {"type": "function_call_output", "call_id": "1", "output": json.dumps(PASSAGES)},
    ],
    "contract": [{"name": "search", "arguments": SEARCH, "retrieved_chunks": PASSAGES}],
}


@pytest.mark.parametrize("form", MESSAGES)
def test_calls_are_read_in_the_forms_of_others(form: str):
    answer = answer_from_response({"answer": "Yes.", "tool_calls": MESSAGES[form]}, "here")
    (call,) = answer.tool_calls or ()
    assert (call.name, call.arguments, call.error, call.retrieved_chunks) == ("search", SEARCH, None, CHUNKS)
    assert answer.chunks == CHUNKS


@pytest.mark.parametrize("form", MESSAGES)
def test_an_answer_with_calls_reads_back_equal(form: str):
    answer = answer_from_response({"answer": "Yes.", "tool_calls": MESSAGES[form]}, "here")
    assert answer_from_response(json.loads(json.dumps(answer_to_response(answer))), "here") == answer


def test_messages_of_earlier_turns_are_left_out():
    earlier = [*MESSAGES["OpenAI"], {"role": "assistant", "content": "Yes."}]
    messages = [*earlier, {"role": "user", "content": "And now?"}, {"role": "assistant", "content": "No."}]
    assert answer_from_response({"answer": "No.", "messages": messages}, "here").tool_calls is None
    assert len(answer_from_response({"answer": "No.", "messages": earlier}, "here").tool_calls or ()) == 1


@pytest.mark.parametrize(
    "call",
    [
        {"name": "pay", "error": "no money"},
        {"name": "pay", "error": {"code": 3, "message": "no money"}},
        {"name": "pay", "is_error": True, "result": "no money"},
        {"name": "pay", "status": "failed", "output": "no money"},
    ],
)
def test_an_error_is_an_error_in_any_form(call: dict[str, Any]):
    for read in (answer_from_response, answer_from_record):
        (read_call,) = read({"answer": "Yes.", "tool_calls": [call]}, "here").tool_calls or ()
        assert read_call.error == "no money"


@pytest.mark.parametrize(
    "result",
    [
        [{"id": "o1", "status": "sent"}],
        [],
        "no JSON",
        "[" * 10_000,
        [1, 2],
        {"results": "none"},
        [{"text": "a text without a place"}],
    ],
)
def test_a_result_without_places_is_no_search(result: Any):
    (call,) = (
        answer_from_response({"answer": "Yes.", "tool_calls": [{"name": "x", "result": result}]}, "h").tool_calls or ()
    )
    assert call.retrieved_chunks is None
    assert call.result == result


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        (3, "tool_calls is 3 (a number), expected a list of objects"),
        (["search"], "tool_calls[0] is 'search' (a string), expected an object"),
        ([{"arguments": {}}], "tool_calls[0] has no name"),
        ([{"name": "x", "arguments": [1]}], "tool_calls[0].arguments is a list, expected an object"),
        ([{"name": "x", "retrieved_chunks": [{"chunk_id": 3}]}], "retrieved_chunks[0].chunk_id is 3 (a number)"),
    ],
)
def test_what_is_no_call_is_named(calls: Any, said: str):
    with pytest.raises(TargetError) as raised:
        answer_from_response({"answer": "Yes.", "tool_calls": calls}, "here")
    assert said in str(raised.value)


def test_a_call_of_type_tool_is_no_message_and_an_odd_status_no_error():
    calls: list[Any] = [{"type": "tool", "name": "x", "arguments": {}, "status": {"code": [1]}}]
    (call,) = answer_from_response({"answer": "Yes.", "tool_calls": calls}, "here").tool_calls or ()
    assert (call.name, call.error) == ("x", None)


def test_messages_of_another_form_are_left_alone():
    for call in ({"id": "1"}, {"name": "x", "args": [1]}, {"name": 3}):
        data = {"answer": "Yes.", "messages": [{"role": "assistant", "tool_calls": [call]}, 3, {"role": ["user"]}]}
        answer = answer_from_response(data, "here")
        assert answer.tool_calls is None
        assert answer.extra["messages"] == data["messages"]


def test_many_searches_with_one_long_one_take_no_time():
    found = [{"rel_path": f"{number}.md"} for number in range(5_000)]
    calls = [{"name": "s", "retrieved_chunks": found[:1]}] * 5_000 + [{"name": "s", "retrieved_chunks": found}]
    begun = time.process_time()
    answer = answer_from_response({"answer": "Yes.", "tool_calls": calls}, "here")
    assert time.process_time() - begun < 2
    assert len(answer.chunks or ()) == 5_000


def test_chunks_of_searches_are_interleaved_and_each_comes_once():
    first, second = [{"rel_path": name, "rank": rank} for rank, name in enumerate("ab", start=1)], [{"rel_path": "c"}]
    calls = [{"name": "s", "retrieved_chunks": chunks} for chunks in (first, [], second, first)]
    answer = answer_from_response({"answer": "Yes.", "tool_calls": calls}, "here")
    assert [chunk.rel_path for chunk in answer.chunks or ()] == ["a", "c", "b"]
    own = answer_from_response({"answer": "Yes.", "tool_calls": calls, "debug": {"retrieved_chunks": []}}, "here")
    assert own.chunks == ()


MAPPING = """
[tool.rageval.target.mapping]
path = "/ask"
request = { text = "{question}" }
[tool.rageval.target.mapping.response]
answer = "out"
[tool.rageval.target.mapping.response.tool_calls]
each = "steps[?kind == 'tool']"
name = "tool"
arguments = "input"
error = "failure"
[tool.rageval.target.mapping.response.tool_calls.retrieved_chunks]
each = "hits"
rel_path = "document.path"
"""


def test_a_mapping_finds_calls_and_the_chunks_of_searches(project: Project):
    steps = [
        {"kind": "thought", "text": "Let me look."},
        {"kind": "tool", "tool": "lookup", "input": {"q": "jeju"}, "hits": [{"document": {"path": "islands.md"}}]},
        {"kind": "tool", "tool": "pay", "input": {}, "failure": "no money"},
    ]
    tools = [{"name": "lookup", "args": {"q": "jeju"}}]
    gold = [{"rel_path": "islands.md"}]
    project.cases([{"id": "one", "question": "What?", "gold_supports": gold, "expected_tools": tools}])
    with FaultServer(gives({"out": "6 euros.", "steps": steps})) as server:
        project.configure("", f'[tool.rageval.target]\nurl = "{server.url}"\n{MAPPING}')
        project.run()
    record = project.records()["one"]
    assert record["tool_calls"] == ["1 lookup(q='jeju') → 1 chunk, gold at rank 1", "2 pay() → failed: no money"]
    assert record["scores"]["tool_error_rate"] == 0.5
    assert record["scores"]["search_recall@5"] == 1.0


@pytest.mark.parametrize("form", MESSAGES)
@pytest.mark.parametrize("key", ["tool_calls", "messages"])
def test_a_file_of_answers_holds_calls_in_any_form(project: Project, form: str, key: str):
    if key == "messages" and form == "contract":
        return
    answer = {"id": "one", "answer": "Yes.", key: MESSAGES[form]}
    project.write("answers.jsonl", json.dumps(answer) + "\n")
    project.cases([{"id": "one", "question": "What?", "expected_tools": [{"name": "search", "args": SEARCH}]}])
    project.run("--rageval-target", "answers:answers.jsonl")
    record = project.records()["one"]
    assert record["tool_calls"] == ["1 search(query='jeju') → 2 chunks"]
    assert project.outcomes() == {"one": "passed"}


def test_a_call_without_arguments_or_result_is_one():
    (call,) = answer_from_response({"answer": "Yes.", "tool_calls": [{"name": "now"}]}, "here").tool_calls or ()
    assert call == ToolCall("now")


GRAPH = """
from types import SimpleNamespace as Message

class Graph:
    def invoke(self, question):
        document = Message(page_content="6 euros.", metadata={"source": "islands.md"})
        call = {"name": "search", "args": {"query": question}, "id": "c1", "type": "tool_call"}
        failed = {"name": "pay", "args": {}, "id": "c2", "type": "tool_call"}
        return {
            "messages": [
                Message(type="human", content=question),
                Message(type="ai", content="", tool_calls=[call, failed]),
                Message(type="tool", content="1 passage", artifact=[document], tool_call_id="c1", status="success"),
                Message(type="tool", content="no money", tool_call_id="c2", status="error"),
                Message(type="ai", content="6 euros."),
            ]
        }

graph = Graph()
"""


def test_the_messages_of_a_graph_hold_its_calls(project: Project):
    project.write("bot.py", GRAPH)
    project.configure('target = "bot:graph"')
    tools = [{"name": "search", "args": {"query": "What?"}}]
    gold = [{"rel_path": "islands.md"}]
    project.cases([{"id": "one", "question": "What?", "gold_supports": gold, "expected_tools": tools}])
    project.run()
    assert project.records()["one"]["tool_calls"] == [
        "1 search(query='What?') → 1 chunk, gold at rank 1",
        "2 pay() → failed: no money",
    ]
    assert project.outcomes() == {"one": "passed"}
