"""Answers of a run over one connection to a server that sends more than it was asked for."""

from __future__ import annotations

import json

from fault_server import Connection, FaultServer
from project import Project, a_case


async def answers_twice(connection: Connection) -> None:
    """The question as the answer, and behind it the answer of somebody else."""
    for answer in (connection.request.json["question"], "the answer to another question"):
        body = json.dumps({"answer": answer}).encode()
        await connection.reply(200, body)


def test_a_reply_behind_a_reply_is_no_answer_to_the_next_case(project: Project):
    project.cases([a_case(f"q{number}", question=f"What is {number}?") for number in range(6)])
    with FaultServer(answers_twice) as server:
        project.run(f"--rageval-target={server.url}", "--rageval-concurrency=1")
    answers = {id: record["answer"] for id, record in project.records().items()}
    assert {id.rpartition("q")[2]: answer for id, answer in answers.items()} == {
        str(number): f"What is {number}?" for number in range(6)
    }
