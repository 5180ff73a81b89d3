"""Systems with threads of their own, and chat services: what each kind of target is sent of a conversation."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from typing import Any

import pytest
from fault_server import Connection, FaultServer
from project import Project

from pytest_rageval.model import AskRequest, Turn
from pytest_rageval.targets.callable_target import CallableTarget
from pytest_rageval.targets.mapped_target import filled

TALKS = [
    {"id": f"talk{number}", "turns": [
        {"question": "What is it?", "reference": "What is it? after 0 questions"},
        {"question": "And then?", "rewrite": "What is after it?", "reference": "And then? after 1 questions"},
    ]}
    for number in range(3)
]  # fmt: skip


class Threads:
    """A server that keeps the questions of each thread."""

    def __init__(self) -> None:
        self.threads: dict[str, list[str]] = defaultdict(list)

    async def __call__(self, connection: Connection) -> None:
        body = connection.request.json
        thread = self.threads[body["thread"]]
        answer = f"{body['text']} after {len(thread)} questions"
        thread.append(body["text"])
        await connection.reply(200, json.dumps({"reply": answer}).encode())


def test_a_server_with_threads_is_told_the_conversation(project: Project):
    threads = Threads()
    project.cases(TALKS)
    with FaultServer(threads) as server:
        project.configure(
            "",
            f'[tool.rageval.target]\nurl = "{server.url}"\n'
            '[tool.rageval.target.mapping]\nrequest = {text = "{question}", thread = "{conversation_id}"}\n'
            'response = {answer = "reply"}\n',
        )
        project.run("--rageval-repeat", "2").assert_outcomes(passed=6)
    assert list(threads.threads.values()) == [["What is it?", "And then?"]] * 6
    assert "What is after it?" not in str([request.body for request in server.requests]), "a rewrite is never sent"


def test_a_native_server_is_sent_history_and_id_of_turns_alone(project: Project):
    async def answers(connection: Connection) -> None:
        await connection.reply(200, b'{"answer": "yes, it is"}')

    project.cases([TALKS[0], {"id": "single", "question": "Alone?", "reference": "yes"}])
    with FaultServer(answers) as server:
        project.configure(f'target = "{server.url}"')
        project.run()
    bodies: dict[str, Any] = {request.json["question"]: request.json for request in server.requests}
    assert bodies["Alone?"].keys() == {"question", "k"}
    assert bodies["What is it?"].keys() == {"question", "k", "conversation_id"}
    assert bodies["And then?"]["conversation_id"] == bodies["What is it?"]["conversation_id"]
    assert bodies["And then?"]["history"] == [
        {"role": "user", "text": "What is it?"},
        {"role": "assistant", "text": "yes, it is"},
    ]


ASKED = AskRequest("And?", 5, history=(Turn("user", "What?"), Turn("assistant", "That.")), conversation_id="c1")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("history", [{"role": "user", "text": "What?"}, {"role": "assistant", "text": "That."}]),
        ("messages", [{"role": "user", "content": "What?"}, {"role": "assistant", "content": "That."},
                      {"role": "user", "content": "And?"}]),
        ("conversation_id", "c1"),
    ],
)  # fmt: skip
def test_a_function_is_given_the_part_that_it_has_a_parameter_for(name: str, value: object):
    given: list[object] = []
    namespace: dict[str, Any] = {"given": given}
    exec(f"def ask(question, *, {name}):\n    given.append({name})\n    return 'yes'", namespace)
    asyncio.run(CallableTarget(namespace["ask"]).ask(ASKED))
    assert given == [value]
    assert filled({"at": f"{{{name}}}", "q": "{question}"}, ASKED)["at"] == value


def test_single_cases_are_conversations_of_their_own():
    ids = [filled({"id": "{conversation_id}"}, AskRequest("What?", 5))["id"] for _ in range(2)]
    assert all(ids)
    assert ids[0] != ids[1]
