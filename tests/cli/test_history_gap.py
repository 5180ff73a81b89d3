"""Conversations that a mapped server is asked without their history: init, doctor and the end of a run say so."""

from __future__ import annotations

import json
import tomllib

from fault_server import Connection, FaultServer
from project import Project

from pytest_rageval.targets.reply_mapping import response_mapping

REPLY = {"reply": {"text": "Water boils at 100 degrees.", "declined": False}, "sources": [{"path": "water.md"}]}
GAP = "the request sends neither {history} nor {messages}"


async def answers(connection: Connection) -> None:
    await connection.reply(200, json.dumps(REPLY).encode())


def talks() -> list[dict[str, object]]:
    gold = {"answer": "100 degrees"}
    turns = [{"question": "When does water boil?", "gold": gold}, {"question": "And at sea level?", "gold": gold}]
    return [{"id": name, "turns": turns} for name in ("one", "two")]


def table(url: str, request: str) -> str:
    mapping = f'request = {{ {request} }}\nresponse = {{ answer = "reply.text" }}'
    return f'[target]\nurl = "{url}"\n[target.mapping]\npath = "/ask"\n{mapping}\n'


def test_init_doctor_and_a_run_say_that_conversations_are_asked_without_history(project: Project):
    project.cases(talks())
    (project.path / "pyproject.toml").unlink()
    with FaultServer(answers) as server:
        shown = project.rageval("init", "--yes", "--target", server.url).stdout.str()
        assert f"2 conversations: {GAP}; add one of them to target.mapping.request" in shown
        project.write("rageval.toml", table(server.url, 'q = "{question}"'))
        assert f"2 conversations: {GAP}" in project.rageval("doctor").stdout.str()
        said = project.run().stdout.str()
        assert f"2 questions were asked without what was said before: {GAP}" in said
        project.write("rageval.toml", table(server.url, 'q = "{question}", said = "{messages}"'))
        assert GAP not in project.rageval("doctor").stdout.str()
        assert GAP not in project.run().stdout.str()


def test_single_questions_need_no_history(project: Project):
    (project.path / "pyproject.toml").unlink()
    project.cases([{"id": "a", "question": "When does water boil?", "gold": {"answer": "100 degrees"}}])
    with FaultServer(answers) as server:
        assert GAP not in project.rageval("init", "--yes", "--target", server.url).stdout.str()
        assert tomllib.loads((project.path / "rageval.toml").read_text(encoding="utf-8"))
        assert GAP not in project.run().stdout.str()


def test_a_sign_that_the_server_declines_is_mapped():
    assert response_mapping(REPLY)[0]["abstained"] == "reply.declined"
    assert "abstained" not in response_mapping({"answer": "no", "declined": "by the bank", "is_final": True})[0]
