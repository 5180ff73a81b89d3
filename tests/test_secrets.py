"""No credential of a run stands in a file that it writes or on a screen, whoever repeats it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fault_server import Connection, FaultServer
from hostile import (
    BOT_KEY,
    COOKIE,
    CORE,
    ENVIRONMENT,
    HEADER_KEY,
    JUDGE_TOKEN,
    PARAM,
    PASSWORD,
    QUERY_KEY,
    REPORTS,
    leaks,
)
from judge_server import JudgeServer
from project import ALONE_AND_WITH_WORKERS, Project, a_case

pytestmark = pytest.mark.reliability("secrets", "keys that systems and judges repeat", costs="leak")


@pytest.fixture
def project(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose environment holds keys."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    return project


CASES = ["echo", "escaped", "refuse", "redirect", "broken", "wrong", "boiling"]


async def repeats(connection: Connection) -> None:
    """Says whatever came, in all the ways that servers do."""
    request = connection.request
    echo = f"{request.headers} {request.path} {request.body.decode()}"
    if request.method == "GET":
        await connection.reply(404, b"{}")
        return
    reply = next((reply for word, reply in REPLIES.items() if word in echo), says_again)
    await reply(connection, echo)


async def refuses(connection: Connection, echo: str) -> None:
    await connection.reply(403, f"not allowed: {echo}".encode())


async def redirects(connection: Connection, echo: str) -> None:
    place = f"http://ann:{PASSWORD}@elsewhere.example/{connection.request.headers.get('x-key')}?next={echo[:900]}"
    await connection.reply(302, b"", location=place.replace(" ", "+"))


async def breaks_off(connection: Connection, echo: str) -> None:
    await connection.reply(200, echo.encode())


async def answers_wrongly(connection: Connection, echo: str) -> None:
    await connection.reply(200, json.dumps({"answer": [echo], "references": echo}).encode())


async def says_again(connection: Connection, echo: str) -> None:
    body = json.dumps(an_answer(echo))
    if "escaped" in echo:
        body = "".join(f"\\u{ord(letter):04X}" if letter in "+&<>='" else letter for letter in body)
        body = body.replace("/", "\\/")
    await connection.reply(200, body.encode(), set_cookie=f"again={CORE}", x_again=echo.replace("\n", " "))


REPLIES = {"refuse": refuses, "redirect": redirects, "broken": breaks_off, "wrong": answers_wrongly}


def an_answer(told: str) -> dict[str, Any]:
    """A reply of the native contract, of OpenAI's and of an API of somebody's own, with a text in every place."""
    chunk = {
        "chunk_id": told[-40:],
        "rel_path": "notes/a.md",
        "heading_path": told,
        "text": told,
        "debug": {"sent": told},
    }
    return {
        "answer": told,
        "references": [{"chunk_id": "c1", "text": told, "rel_path": told}],
        "abstained": False,
        "debug": {
            "retrieved_chunks": [chunk],
            "trace": {"kg_entities": [told], "concepts": [told], "own": {told: [told]}},
            "folder_selection": {"folders": ["notes"], "reasoning": told},
        },
        "versions": {"llm": told},
        "choices": [{"message": {"role": "assistant", "content": told}}],
        "request": {"headers": told},
    }


MAPPING = f"""
[tool.rageval.target.mapping]
path = "/ask"
request = {{ query = "{{question}}", auth = {{ token = "{PARAM}" }} }}
response = {{ answer = "answer", retrieved_chunks = "debug.retrieved_chunks" }}
"""
HEADERS = f'headers = {{ "x-key" = "{HEADER_KEY}", "x-gateway" = "env:GATEWAY", cookie = "{COOKIE}" }}\n'


@ALONE_AND_WITH_WORKERS
def test_what_a_server_repeats_is_masked_in_every_file_and_on_the_screen(project: Project, how: list[str]):
    project.cases([a_case(word, f"please {word}") for word in CASES])
    with FaultServer(repeats) as server:
        url = server.url.replace("//", f"//ann:{PASSWORD}@") + f"/base?api_key={QUERY_KEY}"
        params = f'{{ api_key = "{PARAM}", deep = {{ token = "{PARAM}" }} }}'
        project.configure(f'target = "{url}"\n{HEADERS}retries = 0\nparams = {params}')
        result = project.run(*REPORTS, *how)
        assert all(CORE in str(request.headers) + request.path for request in server.requests)
    assert leaks(project, result) == []
    assert project.outcomes()["echo"] == "failed", "it was asked and scored"
    assert "***" in project.records()["echo"]["answer"]
    assert project.records()["refuse"]["error"]["kind"] == "http_4xx"


@pytest.mark.parametrize("kind", ["mapped", "chat"])
def test_so_it_is_by_other_contracts(project: Project, kind: str):
    project.cases([a_case(word, f"please {word}") for word in CASES])
    with FaultServer(repeats) as server:
        url = server.url.replace("//", f"//ann:{PASSWORD}@")
        if kind == "mapped":
            project.configure(
                f"{HEADERS}retries = 0", f'[tool.rageval.target]\nurl = "{url}/base?api_key={QUERY_KEY}"\n{MAPPING}'
            )
        else:
            project.configure(f'target = "openai:parrot@{url}?key={QUERY_KEY}"\n{HEADERS}retries = 0')
        result = project.run(*REPORTS)
        assert len(server.requests) >= len(CASES)
    assert leaks(project, result) == []
    assert "***" in project.records()["echo"]["answer"]


BOT = """
import os
HEADERS = {"Authorization": "Bearer " + os.environ["BOT_API_KEY"], "token": os.environ["RAGEVAL_TARGET_TOKEN"]}

def answer(question):
    print("asking with", HEADERS)
    if "refuse" in question:
        raise RuntimeError(f"401 for {HEADERS}")
    if "cut" in question:
        raise RuntimeError("x" * 280 + f" {HEADERS['Authorization']}")
    if "wrong" in question:
        return {"answer": [HEADERS]}
    return {"answer": str(HEADERS), "debug": {"retrieved_chunks": [{"rel_path": "a.md", "text": str(HEADERS)}]}}

async def app(scope, receive, send):
    if scope["type"] == "http":
        raise RuntimeError(f"asked with {scope['headers']} and {HEADERS}")
"""
CLIENT = """
import os, pytest

class Client:
    base_url = "http://x"
    def post(self, path, **question):
        if "refuse" in str(question):
            raise ValueError("sent " + os.environ["BOT_API_KEY"])
        class Response:
            status_code = 200
            content = ('{"answer": "' + os.environ["BOT_API_KEY"] + '"}').encode()
        return Response()

@pytest.fixture(scope="session")
def rag_client():
    return Client()
"""
BROKEN_FIXTURE = """
import os, pytest

@pytest.fixture(scope="session")
def rag_client():
    raise RuntimeError("cannot log in with " + os.environ["BOT_API_KEY"])
"""
OWN_JUDGE = """
import os

class Plain:
    async def score_groundedness(self, answer, context):
        raise RuntimeError("x" * 180 + " judged with " + os.environ["BOT_API_KEY"])

plain = Plain()
"""


def test_what_a_function_says_or_raises_is_masked(project: Project):
    project.write("bot.py", BOT)
    project.cases([a_case(word, f"please {word}") for word in ("echo", "refuse", "cut", "wrong")])
    result = project.run(*REPORTS)
    assert leaks(project, result) == []
    assert BOT_KEY[:10] not in str(result.outlines)
    assert "***" in project.records()["echo"]["answer"]
    assert project.records()["refuse"]["error"]["message"].startswith("bot:answer: RuntimeError: 401 for")


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("VAULT_PASSPHRASE", "four words make a phrase", "four words make a phrase"),
        ("SIGNING_SECRET", "first-line-of-it\nsecond-line-of-it", "second-line-of-it"),
        ("SIGNING_SECRET", "first-line-of-it\nsecond-line-of-it", "first-line-of-it second-line-of-it"),
        ("BOT_API_KEYS", "key-of-the-first-bot,key-of-the-second-bot", "key-of-the-second-bot"),
    ],
)
def test_a_secret_of_several_words_or_lines_is_masked(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str, value: str, shown: str
):
    monkeypatch.setenv(name, value)
    project.write("bot.py", f"def answer(question):\n    return 'It is: {shown}'\n")
    project.cases([a_case("echo")])
    project.run()
    assert project.records()["echo"]["answer"] == "It is: ***"


@pytest.mark.parametrize("source", [CLIENT, BROKEN_FIXTURE], ids=["client", "fixture that breaks"])
def test_what_an_overridden_fixture_brings_or_raises_is_masked(project: Project, source: str):
    project.write("conftest.py", source)
    project.cases([a_case(word, f"please {word}") for word in ("echo", "refuse")])
    result = project.run(*REPORTS)
    assert leaks(project, result) == []
    assert project.outcomes()["refuse"] == "error"


def test_what_an_application_raises_is_masked(project: Project):
    project.write("bot.py", BOT)
    project.cases([a_case("echo", "please echo")])
    result = project.run(*REPORTS, "--rageval-target", "asgi:bot:app")
    assert leaks(project, result) == []
    assert "RuntimeError: asked with" in project.records()["echo"]["error"]["message"]


def test_a_module_that_cannot_be_imported_tells_no_key(project: Project):
    project.write("bot.py", 'import os\nraise RuntimeError("no " + os.environ["BOT_API_KEY"])\n')
    project.cases([a_case("echo")])
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert leaks(project, result) == []


class EchoingJudge(JudgeServer):
    """Puts the headers that it was sent into all that it says; of a `refuse` makes an error, of `broken` prose."""

    async def _route(self, connection: Connection) -> None:
        told = str(connection.request.headers) + connection.request.path
        asked = connection.request.body.decode()
        claims = {"supported_claims": [told], "unsupported_claims": [told]}
        self.replies = ({"score": 4, "reasoning": told, **claims, "claims": [told], "abstained": False},)
        if "please broken" in asked:
            self.replies = (f"I cannot say: {told}",)
        if "please refuse" in asked:
            await connection.reply(401, json.dumps({"error": {"message": f"Incorrect API key: {told}"}}).encode())
            return
        await super()._route(connection)


@pytest.mark.parametrize(
    ("kind", "how"), [("openai", ["-n", "1"]), ("anthropic", [])], ids=["openai, worker", "anthropic, alone"]
)
def test_what_a_judge_repeats_is_masked_in_judgements_caches_and_errors(project: Project, kind: str, how: list[str]):
    project.cases([a_case(word, f"please {word} the boiling point") for word in ("echo", "broken", "refuse")])
    with EchoingJudge() as server:
        url = server.url.replace("//", f"//ann:{PASSWORD}@") + f"?api_key={QUERY_KEY}"
        first = project.run(*REPORTS, *how, "--rageval-judge", f"{kind}:judge-1@{url}")
        from_cache = project.run("-k", "echo", "--rageval-judge", f"{kind}:judge-1@{url}")
        assert JUDGE_TOKEN in str(server.chats[0].headers)
    assert leaks(project, first, from_cache) == []
    assert "***" in project.records()["echo"]["groundedness"]["reasoning"]


def test_a_judge_of_the_users_own_that_raises_tells_no_key(project: Project):
    project.write("own.py", OWN_JUDGE)
    project.cases([a_case("echo")])
    result = project.run(*REPORTS, "--rageval-judge", "own:plain")
    assert leaks(project, result) == []
    assert project.records()["echo"]["error"]["kind"] == "judge_exception"
    assert BOT_KEY[:6] not in str(result.outlines)


def test_commands_over_such_runs_show_none_of_it(project: Project):
    project.cases([a_case(word, f"please {word}") for word in CASES])
    with FaultServer(repeats) as server, EchoingJudge() as judge:
        project.configure(f'target = "{server.url}"\n{HEADERS}retries = 0\nparams = {{ api_key = "{PARAM}" }}')
        told = ["--rageval-judge", f"openai:judge-1@{judge.url.replace('//', f'//ann:{PASSWORD}@')}"]
        project.run(*told, "--rageval-run-id", "a", "--rageval-shard", "1/2")
        project.run(*told, "--rageval-run-id", "b", "--rageval-shard", "2/2")
        project.run(*told, "--rageval-run-id", "whole", "--rageval-update-baseline", "--rageval-force")
    commands = [
        ["explain", "whole", "echo"], ["explain", "whole", "refuse"], ["compare", "whole", "baseline"],
        ["export", "whole", "--format", "json"], ["export", "whole", "--format", "csv", "--full-text"],
        ["history"], ["merge", "a", "b"], ["runs", "show", "whole"], ["judge-cache", "stats"],
        ["judge-check", "--judge", told[1]],
    ]  # fmt: skip
    results = [project.rageval(*command) for command in commands]
    assert leaks(project, *results) == []
    assert "***" in results[0].stdout.str()


MISSPELT = (f"htp:/ann:{CORE}@host", f"http//ann:{CORE}@host", f"ann:{CORE}@host:80", f"htps://ann:{CORE}@host")


@pytest.mark.parametrize(
    "table",
    [
        f'target = "ftp://ann:{PASSWORD}@host/"',
        f'target = {{ url = "ftp://ann:{PASSWORD}@host/?api_key={QUERY_KEY}" }}',
        f'target = "bot:answer"\nheaders = "Bearer {HEADER_KEY}"',
        f'target = "bot:answer"\nheaders = {{ authorization = ["Bearer {HEADER_KEY}"] }}',
        f'target = "bot:answer"\njudge = "opnai:judge@http://ann:{PASSWORD}@host/?api_key={QUERY_KEY}"',
        'target = { url = "http://x", mapping = { path = "/ask?api_key='
        + QUERY_KEY
        + '", request = { q = "{question}" }, response = { answer = "answer" } } }',
        f'target = "http://ann:{PASSWORD}@127.0.0.1:1/?api_key={QUERY_KEY}"',
        *(f'target = "{misspelt}"' for misspelt in MISSPELT),
        *(f'target = "bot:answer"\njudge = "{misspelt}"' for misspelt in MISSPELT),
    ],
)
def test_a_wrong_setting_is_said_without_its_credentials(project: Project, table: str):
    project.configure(table)
    project.cases([a_case("echo")])
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert leaks(project, result) == []
