"""Answers of a run over one connection to a server that sends more than it was asked for."""

from __future__ import annotations

import json
import re
import time

import pytest
from fault_server import Connection, FaultServer, gives, status
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


def test_retries_are_counted_and_their_waits_are_no_latency(project: Project):
    project.cases([a_case("q0"), a_case("q1")])
    answer = {"answer": "Water boils at 100 degrees at sea level."}
    began = time.perf_counter()
    with FaultServer(status(503, retry_after="1"), status(503), gives(answer), gives(answer)) as server:
        project.run(f"--rageval-target={server.url}", "--rageval-concurrency=1", "--rageval-judge=none")
    wall_ms = (time.perf_counter() - began) * 1000
    retried, plain = project.records().values()
    assert (retried["requests"], plain["requests"]) == (3, 1)
    assert plain["latency"]["retry_wait_ms"] == 0
    waited, taken = retried["latency"]["retry_wait_ms"], retried["latency"]["total_ms"]
    assert waited >= 1000
    assert waited + taken <= wall_ms
    latency = project.metrics()["volatile"]["latency"]
    assert (latency["requests"], latency["retry_wait_ms"]) == (4, waited)
    assert latency["p95_ms"] <= max(taken, plain["latency"]["total_ms"])
    assert latency["total_ms"] == pytest.approx(taken + plain["latency"]["total_ms"])
    explained = project.rageval("explain", "latest", "q0")
    assert re.search(r"retry wait \d\.\d+ s.*3 requests", explained.stdout.str())


def test_a_python_function_sends_no_requests(project: Project):
    project.cases([a_case("q0")])
    project.run()
    (record,) = project.records().values()
    assert (record["requests"], record["latency"]["retry_wait_ms"]) == (None, None)
