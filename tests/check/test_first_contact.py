"""`rageval init` and `rageval doctor` ask a server one question, and find out how its reply is read."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from fault_server import Behaviour, Connection, FaultServer
from project import Project

from pytest_rageval.targets.reply_mapping import response_mapping

TEXT = "Water boils at 100 degrees at sea level, and sooner on a mountain."


def server(path: str, key: str, reply: Any) -> Behaviour:
    """A server that answers at one path, by one key, and otherwise as frameworks do."""

    async def behave(connection: Connection) -> None:
        content: Any
        request = connection.request
        if request.path.partition("?")[0] != path:
            status, content = 404, {"detail": [{}]}
        elif key not in json.loads(request.body or b"{}"):
            status, content = 422, {"detail": [{"type": "missing", "loc": ["body", key], "msg": "Field required"}]}
        else:
            status, content = 200, reply
        await connection.reply(status, json.dumps(content).encode())

    return behave


SERVERS: dict[str, tuple[str, str, Any]] = {
    "flat": ("/ask", "question", {
        "answer": "At 100 degrees.", "sources": [{"file": "water.md", "section": "Water / Boiling", "text": TEXT}]}),
    "nested": ("/v2/query", "query", {
        "took": 3, "data": {"result": {"text": "At 100 degrees."}, "hits": [
            {"id": 7, "score": 0.5, "body": TEXT,
             "doc": {"path": "/srv/kb/water.md", "headings": ["Water", "Boiling"]}}]}}),
    "langserve": ("/chain/invoke", "input", {
        "output": {"answer": "At 100 degrees.", "context": [
            {"page_content": TEXT, "metadata": {"source": "water.md", "Header 1": "Water"}, "type": "Document"}]}}),
    "short": ("/ask", "query", {"result": {"text": "At 100 degrees.", "citations": [
        {"url": "https://wiki/notes/water.md", "title": "Boiling", "passage": "At 100 degrees.", "relevance": 1}]}}),
    "unnamed": ("/ask", "query", {"reply": "At 100 degrees.", "found": [
        {"where": "notes/water.md", "said": "At 100 degrees."}, {"where": "notes/tea.md", "said": TEXT}]}),
    "list": ("/ask", "question", [{"content": TEXT, "file": "water.md", "heading": "Boiling", "similarity": 0.5}]),
    "openai": ("/v1/chat/completions", "messages", {"object": "chat.completion", "choices": [{"index": 0, "message": {
        "role": "assistant", "content": "At 100 degrees.", "context": {"citations": [
            {"content": TEXT, "url": "https://kb/notes/water.html#boiling", "title": "Boiling"}]}}}]}),
    "texts": ("/chat", "message", {"reply": {"content": "At 100 degrees."}, "contexts": [TEXT]}),
}  # fmt: skip
MAPPINGS: dict[str, dict[str, Any]] = {
    "flat": {"answer": "answer", "retrieved_chunks": {
        "each": "sources", "rel_path": "file", "heading_path": "section", "text": "text"}},
    "nested": {"answer": "data.result.text", "retrieved_chunks": {
        "each": "data.hits", "chunk_id": "to_string(id)", "rel_path": "doc.path", "heading_path": "doc.headings",
        "text": "body", "score_final": "score"}},
    "langserve": {"answer": "output.answer", "retrieved_chunks": {
        "each": "output.context", "rel_path": "metadata.source", "heading_path":
        '[metadata."Header 1", metadata."Header 2", metadata."Header 3", metadata."Header 4"]',
        "text": "page_content"}},
    "short": {"answer": "result.text", "retrieved_chunks": {
        "each": "result.citations", "rel_path": "url", "heading_path": "title", "text": "passage",
        "score_final": "relevance"}},
    "unnamed": {"answer": "reply", "retrieved_chunks": {"each": "found", "rel_path": "where", "text": "said"}},
    "list": {"retrieved_chunks": {
        "each": "@", "rel_path": "file", "heading_path": "heading", "text": "content", "score_final": "similarity"}},
    "openai": {"answer": "choices[0].message.content", "retrieved_chunks": {
        "each": "choices[0].message.context.citations", "rel_path": "url", "heading_path": "title", "text": "content"}},
    "texts": {"answer": "reply.content", "retrieved_chunks": {"each": "contexts", "text": "@"}},
}  # fmt: skip


@pytest.fixture
def empty(project: Project) -> Project:
    for file in project.path.iterdir():
        file.unlink()
    return project


@pytest.mark.parametrize("name", SERVERS)
def test_names_and_shapes_of_a_reply_give_its_mapping(name: str):
    assert response_mapping(SERVERS[name][2])[0] == MAPPINGS[name]


@pytest.mark.parametrize("name", SERVERS)
def test_init_writes_the_mapping_with_which_the_first_run_asks(empty: Project, name: str):
    path, key, reply = SERVERS[name]
    with FaultServer(server(path, key, reply)) as running:
        url = running.url if path in ("/ask", "/chat") else f"{running.url}{path}"
        result = empty.rageval("init", "--yes", "--target", url)
        assert result.ret == 0
        result.stdout.fnmatch_lines(
            [f'status 200 of POST *{path} with *"{key}"*', "keys of the reply: *", "mapping: *"]
        )
        written = tomllib.loads((empty.path / "rageval.toml").read_text(encoding="utf-8"))
        assert written["target"]["mapping"]["response"] == MAPPINGS[name]
        sent = {"messages": "{messages}", "model": "default"} if key == "messages" else {key: "{question}"}
        assert written["target"]["mapping"]["request"] == sent
        assert empty.rageval("run", "--judge", "none").ret in (0, 1)
        answer = None if name == "list" else "At 100 degrees."
        assert {record["answer"] for record in empty.records().values()} == {answer}


def test_the_address_of_an_openapi_description_names_path_and_key(empty: Project):
    path, _, reply = SERVERS["nested"]
    schemas = {"Ask": {"properties": {"top": {"type": "integer"}, "utterance": {"type": "string"}}}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Ask"}}}}
    described = {"paths": {path: {"post": {"requestBody": body}}}, "components": {"schemas": schemas}}
    answers = server(path, "utterance", reply)

    async def behave(connection: Connection) -> None:
        if connection.request.path == "/docs/api.json":
            await connection.reply(200, json.dumps(described).encode())
        else:
            await answers(connection)

    with FaultServer(behave) as running:
        empty.rageval("init", "--yes", "--target", f"{running.url}/docs/api.json")
        written = tomllib.loads((empty.path / "rageval.toml").read_text(encoding="utf-8"))["target"]
        assert (written["url"], written["mapping"]["path"]) == (running.url, path)
        assert written["mapping"]["request"] == {"utterance": "{question}"}
        assert empty.rageval("run", "--judge", "none").ret in (0, 1)
        assert {record["answer"] for record in empty.records().values()} == {"At 100 degrees."}


def test_a_sample_reply_gives_the_mapping_without_a_question(empty: Project):
    empty.write("reply.json", json.dumps(SERVERS["nested"][2]))
    result = empty.rageval("init", "--yes", "--target", "http://127.0.0.1:9/ask", "--reply", "reply.json")
    result.stdout.fnmatch_lines(
        ["reply.json: a sample reply, nothing was asked", "mapping: answer = data.result.text*"]
    )
    written = tomllib.loads((empty.path / "rageval.toml").read_text(encoding="utf-8"))["target"]
    assert (written["url"], written["mapping"]["response"]) == ("http://127.0.0.1:9/ask", MAPPINGS["nested"])
    assert empty.rageval("init", "--yes", "--reply", "reply.json").ret == 2


def test_doctor_asks_one_question_and_says_how_places_are_named(project: Project):
    path, key, reply = SERVERS["nested"]
    gold = [{"rel_path": "water.md", "heading_path": "# Water > ## Boiling"}]
    project.cases([{"id": "boil", "question": "When does water boil?", "gold_supports": gold}])
    with FaultServer(server(path, key, reply)) as running:
        project.configure(f'target = "{running.url}{path}"')
        result = project.rageval("doctor")
        assert result.ret == 1
        result.stdout.fnmatch_lines(["*status 200 of POST *", "*put into the table: { mapping = *data.result.text*"])
        asked = len(running.requests)
        mapping = json.dumps(MAPPINGS["nested"]["retrieved_chunks"]).replace('": ', '" = ')
        project.configure(
            f'target = {{ url = "{running.url}{path}", mapping = {{ request = {{ query = "{{question}}" }}, '
            f'response = {{ answer = "data.result.text", retrieved_chunks = {mapping} }} }} }}'
        )
        result = project.rageval("doctor")
        assert result.ret == 0
        result.stdout.fnmatch_lines(
            [
                "*answers one question: 15 characters, 1 chunk*",
                "*paths such as '/srv/kb/water.md' (absolute), headings*",
            ]
        )
        assert len(running.requests) == asked + 1


def test_a_server_that_is_not_there_does_not_keep_init_from_writing(empty: Project):
    result = empty.rageval("init", "--yes", "--target", "http://ann:secret-word@127.0.0.1:9")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["POST http://*127.0.0.1:9*: Connection refused"])
    result.stderr.fnmatch_lines(["ERROR: http://*127.0.0.1:9: no readable reply, *call rageval init again"])
    assert "secret-word" not in result.stdout.str() + result.stderr.str()
    assert (empty.path / "rageval.toml").is_file()


def reply_of(status: int, body: bytes) -> Behaviour:
    async def behave(connection: Connection) -> None:
        await connection.reply(status, body)

    return behave


@pytest.mark.parametrize(
    ("status", "body"),
    [(401, b"{}"), (404, b"{}"), (500, b"{}"), (200, b"<html>"), (200, b"{}"), (200, b'{"state": 3, "sources": []}')],
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_init_fails_if_no_run_can_read_the_replies_of_the_server(
    empty: Project, status: int, body: bytes, form: tuple[str, ...]
):
    with FaultServer(reply_of(status, body)) as running:
        result = empty.rageval("init", "--yes", "--target", running.url, *form)
    assert result.ret == 1
    assert (empty.path / "evalcases" / "first.jsonl").is_file()
    if form:
        (problem,) = json.loads(result.stdout.str())["problems"]
        assert problem.startswith(f"{running.url}: no readable reply")


def test_init_reads_the_native_contract_without_a_mapping(empty: Project):
    native = json.dumps({"answer": "At 100 degrees.", "debug": {}}).encode()
    with FaultServer(reply_of(200, native)) as running:
        result = empty.rageval("init", "--yes", "--target", running.url, "--json")
    assert result.ret == 0
    assert "problems" not in json.loads(result.stdout.str())


@pytest.mark.parametrize(
    ("reply", "path", "code"),
    [
        ('{"answer": "At 100 degrees."}', "", 1),
        ('{"answer": "At 100 degrees."}', "/ask", 0),
        ("no JSON", "/ask", 1),
        ('{"state": 3}', "/ask", 1),
    ],
)
def test_init_fails_if_a_sample_reply_does_not_tell_how_to_ask(empty: Project, reply: str, path: str, code: int):
    empty.write("reply.json", reply)
    assert empty.rageval("init", "--yes", "--target", f"http://127.0.0.1:9{path}", "--reply", "reply.json").ret == code
