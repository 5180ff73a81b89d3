"""A run against a chat endpoint, and one against an API with a mapping: real servers, a real pytest, its files."""

from __future__ import annotations

import json

import pytest
from fault_server import Connection, FaultServer
from project import Project, a_case

KEY = "sk-proj-0123456789abcdef"
BOILING = "Water boils at 100 degrees at sea level."


async def chats(connection: Connection) -> None:
    """A model that repeats the passage it was given."""
    prompt = connection.request.json["messages"][-1]["content"]
    said = BOILING if BOILING in prompt else "I do not know."
    choice = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
    await connection.reply(200, json.dumps({"choices": [choice], "model": "m1-exact", "usage": {"total": 9}}).encode())


async def searches(connection: Connection) -> None:
    """A system with words of its own for everything."""
    hit = {"nr": 1, "file": "notes/water.md", "section": "# Water > ## Boiling", "body": BOILING}
    await connection.reply(200, json.dumps({"out": {"text": BOILING}, "hits": [hit]}).encode())


def test_a_chat_endpoint_is_asked_with_the_contexts_and_its_keys_are_written_nowhere(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    project.cases([a_case("boil", contexts=[BOILING, "Ice floats."]), a_case("비다", "빈 문맥?", answerable=False)])
    with FaultServer(chats) as server:
        target = f"openai:m1@{server.url.replace('//', '//ann:hunter2hunter2@')}/v1?api_key={KEY}"
        result = project.run("--rageval-target", target, "--rageval-param", "max_tokens=50")
    result.assert_outcomes(passed=2)
    assert [request.json["max_tokens"] for request in server.requests] == [50, 50]
    record = project.records()["boil"]
    assert "recall_any@5" not in record["scores"]
    assert record["groundedness"]["score"] == 5
    assert record["cost"]["target_usage"] == {"total": 9}
    config = json.loads((project.runs[-1] / "config.json").read_text(encoding="utf-8"))
    assert config["target"] == config["settings"]["target"] == f"openai:m1@{server.url}/v1?api_key=***"
    assert config["params"] == {"max_tokens": 50}
    assert config["observed"]["llm"] == "m1-exact"
    written = [path.read_text(encoding="utf-8") for path in project.path.rglob("reports/**/*") if path.is_file()]
    assert not [text for text in written if KEY in text or "hunter2" in text]


@pytest.mark.child_process
def test_an_api_is_asked_by_its_mapping_on_every_worker(project: Project):
    project.configure(
        "k = 3",
        """
[tool.rageval.target]
url = "http://127.0.0.1:9"
[tool.rageval.target.mapping]
request = { query = "{question}", top = "{k}", options = { session_key = "not-for-files", key = "{question}" } }
[tool.rageval.target.mapping.response]
answer = "out.text"
usage = "usage"
[tool.rageval.target.mapping.response.retrieved_chunks]
each = "hits"
chunk_id = "to_string(nr)"
rel_path = "file"
heading_path = "section"
text = "body"
""",
    )
    project.cases([a_case("a"), a_case("b")])
    with FaultServer(searches) as server:
        result = project.run("--rageval-target", server.url, "-n", "2")
    result.assert_outcomes(passed=2)
    assert {request.json["query"] for request in server.requests} == {a_case("a")["question"]}
    assert project.records()["a"]["scores"]["recall_any@3"] == 1
    config = json.loads((project.runs[-1] / "config.json").read_text(encoding="utf-8"))
    assert config["target"] == server.url
    options = config["settings"]["mapping"]["request"]["options"]
    assert options == {"session_key": "***", "key": "{question}"}
    assert config["settings"]["mapping"]["response"]["answer"] == "out.text"
