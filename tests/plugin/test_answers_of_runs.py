"""Runs over answers as they come: files, earlier runs, chat models, mapped APIs; limits in bytes and seconds."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping

import pytest
from fault_server import Connection, FaultServer, gives, status
from project import SOME, Project, a_case, lines_with


def configured(project: Project, *rows: Mapping[str, object]) -> Project:
    project.cases([a_case("boil"), a_case("freeze", "What is the freezing point of water?")])
    project.write("answers.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    project.configure('target = "answers:answers.jsonl"')
    return project


BOIL: dict[str, object] = {
    "question": "what is the BOILING point of water?",
    "answer": "Water boils at 100 degrees at sea level.",
}
FREEZE: dict[str, object] = {"id": "freeze", "answer": "It freezes at 0 degrees."}


def test_an_answer_to_another_question_is_an_error_of_its_case(project: Project):
    configured(project, BOIL | {"id": "boil", "question": "Who won?"}, FREEZE)
    result = project.run()
    assert project.records()["boil"]["error"]["message"] == (
        "answers.jsonl:1: question is 'Who won?', but the case asks 'What is the boiling point of water?'; "
        "answer that one, or leave question out"
    )
    assert project.records()["freeze"]["error"] is None
    assert result.parseoutcomes()["errors"] == 1


def test_keys_that_are_not_read_are_named_once_with_the_known_ones_that_they_resemble(project: Project):
    configured(project, BOIL | {"retreived_chunks": [], "colour": 1}, FREEZE | {"retreived_chunks": []})
    for lines in (project.run().outlines, project.rageval("run").outlines):
        noted = [line for line in lines if "retreived_chunks" in line]
        assert noted == [
            "answers.jsonl: kept as metadata and not read: colour (line 1), "
            "retreived_chunks; did you mean 'retrieved_chunks'? (line 1)"
        ]


def test_texts_without_a_place_leave_gold_places_unexamined_and_are_no_miss(project: Project):
    contexts: dict[str, object] = {"contexts": ["At sea level water boils at 100 degrees."]}
    configured(project, BOIL | contexts, FREEZE | contexts).run()
    record = project.records()["boil"]
    assert not [name for name in record["scores"] if name.startswith("recall")]
    assert "texts without a place" in record["skipped_metrics"]["recall_any@5"]
    assert record["retrieved_chunks"][0]["text"] == "At sea level water boils at 100 degrees."


@pytest.mark.parametrize(("reference", "how"), [("latest", ["-n", "2"]), ("reports/runs/first", [])])
def test_an_earlier_run_is_the_target_by_any_of_its_names(project: Project, reference: str, how: list[str]):
    project.cases(SOME)
    project.run("--rageval-run-id", "first")
    project.run("--rageval-target", f"run:{reference}", "--rageval-run-id", "again", *how)
    again = json.loads((project.path / "reports/runs/again/config.json").read_text(encoding="utf-8"))
    assert again["target"] == "run:first"
    assert project.metrics()["volatile"]["run_id"] == "again"
    assert project.metrics()["outcomes"]["passed"] == len(SOME)


def test_a_torn_line_of_the_run_that_answers_is_said_once_at_the_end(project: Project):
    project.cases(SOME)
    project.run("--rageval-run-id", "first")
    with (project.path / "reports/runs/first/observations.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"schema": 2, "case_')
    result = project.run("--rageval-target", "run:first")
    assert len(lines_with(result, "dropped, the line was cut off while it was written")) == 1


async def answers_twice(connection: Connection) -> None:
    """The question as the answer, and behind it, sent with it, the answer of somebody else."""
    replies = b""
    for answer in (connection.request.json["question"], "the answer to another question"):
        body = json.dumps({"answer": answer}).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        replies += head.encode() + body
    await connection.send(replies)


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
    config = project.config()
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
    config = project.config()
    assert config["target"] == server.url
    options = config["settings"]["mapping"]["request"]["options"]
    assert options == {"session_key": "***", "key": "{question}"}
    assert config["settings"]["mapping"]["response"]["answer"] == "out.text"


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
        ('target = "bot:slow"', "no answer within 0.5 s (timeout)"),
        ('target = "bot:slow_async"', "no answer within 0.5 s (timeout)"),
        ('target = "asgi:bot:slow_app"', "not started up within 0.5 s (timeout)"),
        ('target = "URL"', "no complete reply within 0.5 s (timeout)"),
        ('target = "openai:m@URL"', "no complete reply within 0.5 s (timeout)"),
        ('target = "bot:as_text"\njudge = "openai:m@URL"', "no complete reply within 0.5 s (timeout)"),
        ('target = "bot:as_text"\njudge = "embedding:m@URL"', "no complete reply within 0.5 s (timeout)"),
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
        project.configure(f"{settings.replace('URL', server.url)}\ntimeout = 0.5\nretries = 0")
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
