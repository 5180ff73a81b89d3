"""What an answer may cost in bytes and seconds, whatever gives it, and that messages name the limit that was set."""

from __future__ import annotations

import asyncio
import json

import pytest
from fault_server import Connection, FaultServer
from project import Project, a_case

BOT = """
import asyncio, time
from pytest_rageval import Answer

def as_text(question):
    return "x" * 3000

def as_dict(question):
    return {"answer": "no", "own": {"note": ["y" * 3000]}}

def as_answer(question):
    return Answer(text="z" * 3000)

def slow(question):
    time.sleep(5)

async def slow_async(question):
    await asyncio.sleep(5)

async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        while True:
            await send({"type": "http.response.body", "body": b"x" * 500, "more_body": True})

async def slow_app(scope, receive, send):
    if scope["type"] == "lifespan":
        await asyncio.sleep(5)

class Judge:
    model, heuristic, rubrics = "own", False, frozenset({"groundedness"})

    async def judge(self, request):
        await asyncio.sleep(60)

    async def aclose(self):
        pass
"""
CLIENT = """
import pytest

class Client:
    base_url = "http://x"

    def post(self, path, **question):
        class Response:
            status_code = 200
            content = b'{"answer": "' + b"x" * 3000 + b'"}'
        return Response()

@pytest.fixture(scope="session")
def rag_client():
    return Client()
"""


@pytest.mark.parametrize("target", ["bot:as_text", "bot:as_dict", "bot:as_answer", "asgi:bot:app", "a client"])
def test_an_answer_larger_than_the_limit_is_an_error_that_names_it(project: Project, target: str):
    project.write("bot.py", BOT)
    if target == "a client":
        project.write("conftest.py", CLIENT)
    project.configure(f'target = "{target if ":" in target else "bot:as_text"}"\nmax_response_bytes = 2048')
    project.cases([a_case("a")])
    project.run()
    error = project.records()["a"]["error"]
    assert error["kind"] == "too_large"
    assert error["message"].endswith("the answer is larger than 2,048 bytes (max_response_bytes)")


def test_an_answer_within_the_limit_is_taken(project: Project):
    project.write("bot.py", BOT)
    project.configure('target = "bot:as_text"\nmax_response_bytes = 3002')
    project.cases([a_case("a")])
    project.run()
    assert project.records()["a"]["error"] is None


def test_a_line_of_an_answers_file_obeys_the_limit(project: Project):
    project.cases([a_case("a")])
    project.write("answers.jsonl", json.dumps({"id": "a", "answer": "x" * 3000}) + "\n")
    project.configure('target = "answers:answers.jsonl"\nmax_response_bytes = 2048')
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "the line is longer than 2,048 bytes" in result.stderr.str() + result.stdout.str()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('target = "bot:slow"', "no answer within 1 s (timeout)"),
        ('target = "bot:slow_async"', "no answer within 1 s (timeout)"),
        ('target = "asgi:bot:slow_app"', "not started up within 1 s (timeout)"),
        ('target = "URL"', "no complete reply within 1 s (timeout)"),
        ('target = "openai:m@URL"', "no complete reply within 1 s (timeout)"),
        ('target = "bot:as_text"\njudge = "openai:m@URL"', "no complete reply within 1 s (timeout)"),
        ('target = "bot:as_text"\njudge = "embedding:m@URL"', "no complete reply within 1 s (timeout)"),
    ],
)
def test_a_time_out_names_the_limit_that_was_set(project: Project, settings: str, message: str):
    async def hangs(connection: Connection) -> None:
        if connection.request.method == "GET":
            await connection.reply(404, b"{}")
        await asyncio.sleep(5)

    project.write("bot.py", BOT)
    project.cases([a_case("a", contexts=["Water boils."])])
    with FaultServer(hangs) as server:
        project.configure(f"{settings.replace('URL', server.url)}\ntimeout = 1\nretries = 0")
        project.run()
    record = project.records()["a"]
    # Where no gate reads what the judge was to score, the failed judgement alone is an error.
    assert message in json.dumps(record["error"] or record["judge"]["failed"])


@pytest.mark.parametrize("body", [b'{"answer": "a", "answer": "b"}', b'{"debug": {"k": 1, "k": 2}, "answer": "a"}'])
def test_a_reply_with_the_same_key_twice_is_an_error(project: Project, body: bytes):
    async def repeats(connection: Connection) -> None:
        await connection.reply(200, body)

    project.cases([a_case("a")])
    with FaultServer(repeats) as server:
        project.configure(f'target = "{server.url}"')
        project.run()
    error = project.records()["a"]["error"]
    assert error["kind"] == "invalid_json"
    assert "twice" in error["message"] or "duplicate" in error["message"]
