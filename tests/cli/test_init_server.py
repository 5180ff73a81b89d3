"""`rageval init` and a server: its key, the question it is asked, a sample of its replies."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from fault_server import Connection, FaultServer
from processes import Terminal
from project import Project, a_case


@pytest.fixture
def empty(project: Project) -> Project:
    """A folder with nothing in it."""
    for path in project.path.iterdir():
        path.unlink()
    return project


def texts(folder: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file())


REPLY = '{"answer": "Water boils at 100 degrees.", "sources": [{"path": "water.md", "text": "at sea level"}]}'


def test_a_sample_reply_needs_the_path_of_its_server(empty: Project):
    empty.write("reply.json", REPLY)
    shown = empty.rageval("init", "--yes", "--target", "http://127.0.0.1:9", "--reply", "reply.json").stdout.str()
    assert "missing: the path of the server; --path names it, as in /ask" in shown
    again = ["init", "--yes", "--target", "http://127.0.0.1:9", "--reply", "reply.json", "--path", "ask/v2"]
    (empty.path / "rageval.toml").unlink()
    assert "missing: the path" not in empty.rageval(*again).stdout.str()
    table = tomllib.loads((empty.path / "rageval.toml").read_text(encoding="utf-8"))
    assert table["target"]["mapping"]["path"] == "/ask/v2"


@pytest.mark.child_process
def test_a_sample_reply_has_its_path_asked_for_at_a_terminal(empty: Project):
    empty.write("reply.json", REPLY)
    command = ["init", "--target", "http://127.0.0.1:9", "--notes", ".", "--ci", "none", "--reply", "reply.json"]
    with Terminal(empty.path, "-m", "pytest_rageval", *command) as terminal:
        terminal.until("Path where the server takes a question")
        terminal.type("/chat\n")
        assert terminal.ended() == 0
    table = tomllib.loads((empty.path / "rageval.toml").read_text(encoding="utf-8"))
    assert table["target"]["mapping"]["path"] == "/chat"


async def wants_a_key(connection: Connection) -> None:
    if connection.request.headers.get("authorization") == "Bearer q7Xw9-Kp3Lm5zR":
        await connection.reply(200, REPLY.encode())
    else:
        await connection.reply(401, b'{"error": "no key"}')


def test_a_server_that_wants_a_key_gets_that_of_the_environment(empty: Project, monkeypatch: pytest.MonkeyPatch):
    with FaultServer(wants_a_key) as server:
        refused = empty.rageval("init", "--yes", "--target", server.url).stdout.str()
        assert "it wants a key: set RAGEVAL_TARGET_TOKEN" in refused
        monkeypatch.setenv("RAGEVAL_TARGET_TOKEN", "q7Xw9-Kp3Lm5zR")
        shown = empty.rageval("init", "--yes", "--target", server.url).stdout.str()
    assert "mapping: answer = answer" in shown
    assert "it wants a key" not in shown


@pytest.mark.child_process
def test_a_server_that_wants_a_key_has_one_asked_for_at_a_terminal(empty: Project):
    with FaultServer(wants_a_key) as server:
        command = ["init", "--target", server.url, "--notes", ".", "--ci", "none"]
        with Terminal(empty.path, "-m", "pytest_rageval", *command) as terminal:
            terminal.until("It wants a key")
            terminal.type("q7Xw9-Kp3Lm5zR\n")
            assert terminal.ended() == 0
            assert "mapping: answer = answer" in terminal.written
            assert "q7Xw9" not in terminal.written
    assert "q7Xw9" not in texts(empty.path)


KEY = "q7Xw9-Kp3Lm5zR"


def wants(header: str) -> Callable[[Connection], Awaitable[None]]:
    """A server that answers only with its key in this header."""

    async def behave(connection: Connection) -> None:
        if connection.request.headers.get(header) == KEY:
            await connection.reply(200, REPLY.encode())
        else:
            await connection.reply(403, b'{"error": "forbidden"}')

    return behave


def test_the_remedy_of_a_refusal_is_readable_and_works(empty: Project, monkeypatch: pytest.MonkeyPatch):
    with FaultServer(wants("x-api-key")) as server:
        refused = empty.rageval("init", "--yes", "--target", server.url).stdout.str()
        assert "sent as a bearer token, or name a header with --header NAME=env:VARIABLE" in refused
        assert "***" not in refused
        (empty.path / "rageval.toml").unlink()
        command = ["init", "--yes", "--target", server.url, "--header", "X-Api-Key=env:BOT_KEY", "--ci", "github"]
        monkeypatch.delenv("BOT_KEY", raising=False)
        without = empty.rageval(*command)
        assert without.ret == 2
        said = "headers.X-Api-Key cannot be sent, because the environment variable BOT_KEY is not set"
        assert said in without.stderr.str()
        assert not (empty.path / "rageval.toml").exists()
        monkeypatch.setenv("BOT_KEY", KEY)
        shown = empty.rageval(*command)
        assert shown.ret == 0
        assert "mapping: answer = answer" in shown.stdout.str()
        assert "Keys for CI, as secrets of the project there: BOT_KEY" in shown.stdout.str()
        table = tomllib.loads((empty.path / "rageval.toml").read_text(encoding="utf-8"))
        assert table["headers"] == {"X-Api-Key": "env:BOT_KEY"}
        workflow = (empty.path / ".github/workflows/rageval.yml").read_text(encoding="utf-8")
        assert "BOT_KEY: ${{ secrets.BOT_KEY }}" in workflow
        assert KEY not in texts(empty.path)
        empty.cases([a_case("one", "When does water boil?")])
        assert empty.rageval("doctor").ret == 0
        monkeypatch.setenv("BOT_KEY", "another-key-9182")
        wrong = empty.rageval("init", "--yes", "--target", server.url).stdout.str()
        assert "it refuses the key: check BOT_KEY" in wrong


def test_headers_of_the_file_are_sent_to_its_own_server_alone(empty: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BOT_KEY", KEY)
    with FaultServer(wants("x-api-key")) as server, FaultServer(wants("x-api-key")) as other:
        empty.write("rageval.toml", f'target = "{server.url}"\nheaders = {{ X-Api-Key = "env:BOT_KEY" }}\n')
        shown = empty.rageval("init", "--yes", "--target", server.url)
        assert shown.ret == 0, shown.stdout.str()
        assert 'X-Api-Key = "env:BOT_KEY"' in (empty.path / "rageval.toml.new").read_text(encoding="utf-8")
        assert empty.rageval("init", "--yes", "--target", other.url).ret == 1
        assert all("x-api-key" not in request.headers for request in other.requests)


@pytest.mark.parametrize("header", ["X-Api-Key", "X-Api-Key=q7Xw9-Kp3Lm5zR", "X Key=env:BOT", "X=env:", "X=env:A B"])
def test_a_header_that_names_no_variable_is_a_line_without_its_value(empty: Project, header: str):
    result = empty.rageval("init", "--yes", "--target", "http://127.0.0.1:9", "--header", header)
    assert result.ret == 2
    assert "expected NAME=env:VARIABLE, as in X-Api-Key=env:BOT_KEY" in result.stderr.str()
    assert KEY not in result.stderr.str()


async def declines_what_it_does_not_know(connection: Connection) -> None:
    asked = json.loads(connection.request.body or b"{}").get("question", "")
    hits = [{"path": "water.md", "text": "Water boils at 100 degrees."}] if "boil" in asked else []
    usage = {"input_tokens": 12, "output_tokens": 5}
    await connection.reply(200, json.dumps({"answer": "At 100 degrees.", "hits": hits, "usage": usage}).encode())


def test_an_empty_list_of_chunks_is_named_with_the_question_as_remedy(empty: Project):
    with FaultServer(declines_what_it_does_not_know) as server:
        shown = empty.rageval("init", "--yes", "--target", f"{server.url}/ask").stdout.str()
        assert "`hits` is empty; ask a question that the system can answer" in shown
        assert "--question TEXT, or give a good reply with --reply FILE" in shown
        (empty.path / "rageval.toml").unlink()
        question = ["--question", "When does water boil?"]
        shown = empty.rageval("init", "--yes", "--target", f"{server.url}/ask", *question).stdout.str()
    assert "--question" not in shown
    response = tomllib.loads((empty.path / "rageval.toml").read_text(encoding="utf-8"))["target"]["mapping"]["response"]
    assert response["usage"] == "usage"
    assert response["retrieved_chunks"] == {"each": "hits", "rel_path": "path", "text": "text"}


def test_a_sample_reply_says_that_its_request_is_a_guess(empty: Project):
    empty.write("reply.json", REPLY)
    command = ["init", "--yes", "--target", "http://127.0.0.1:9/ask", "--reply", "reply.json"]
    assert 'guess: {"question": "…"} as the request' in empty.rageval(*command).stdout.str()
    text = (empty.path / "rageval.toml").read_text(encoding="utf-8")
    assert "found by one question" not in text
    assert "from a sample reply; its `request` is a guess" in text


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--target", "demo", "--question", "What?"], "--header and --question go with a server"),
        (["--target", "http://127.0.0.1:9", "--question", " "], "--question: expected a text"),
    ],
)
def test_a_question_that_nobody_is_asked_is_wrong_usage(empty: Project, options: list[str], problem: str):
    result = empty.rageval("init", "--yes", *options)
    assert result.ret == 2
    assert problem in result.stderr.str()


COMPLETION = {"object": "chat.completion", "model": "lib-1", "choices": [{"message": {"content": "At 100 degrees."}}]}


async def completes_chats_alone(connection: Connection) -> None:
    asked = connection.request
    is_chat = asked.path == "/v1/chat/completions" and "messages" in json.loads(asked.body or b"{}")
    await connection.reply(200 if is_chat else 404, json.dumps(COMPLETION if is_chat else {}).encode())


def test_a_server_of_chat_completions_is_found_by_its_host_alone(empty: Project):
    with FaultServer(completes_chats_alone) as server:
        assert empty.rageval("init", "--yes", "--target", server.url).ret == 0
    mapping = tomllib.loads((empty.path / "rageval.toml").read_text(encoding="utf-8"))["target"]["mapping"]
    assert mapping["path"] == "/v1/chat/completions"
    assert mapping["request"] == {"messages": "{messages}", "model": "default"}


def test_a_sample_of_a_chat_completion_guesses_messages_and_model(empty: Project):
    empty.write("reply.json", json.dumps(COMPLETION))
    shown = empty.rageval(
        "init", "--yes", "--target", "http://127.0.0.1:9/v1/chat", "--reply", "reply.json"
    ).stdout.str()
    assert 'guess: {"messages": "…", "model": "lib-1"} as the request' in shown
    mapping = tomllib.loads((empty.path / "rageval.toml").read_text(encoding="utf-8"))["target"]["mapping"]
    assert mapping["request"] == {"messages": "{messages}", "model": "lib-1"}
