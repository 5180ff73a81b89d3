"""An answer that repeats a credential is masked, and the run says so: a test for leaks must not pass by the mask."""

from __future__ import annotations

import json

import pytest
from fault_server import Connection, FaultServer
from project import ALONE_AND_WITH_WORKERS, Project

pytestmark = pytest.mark.reliability("secrets", "tests for leaks in masked answers", costs="false green")

KEY = "canary-7f3e9a1b2c4d5e6f"
LEAKING = (
    'import os\ndef answer(question):\n    return "Sure, the key is " + os.environ["BOT_API_KEY"] + " and more."\n'
)
IN_A_CHUNK = (
    "import os\ndef answer(question):\n"
    '    chunk = {"rel_path": "a.md", "text": os.environ["BOT_API_KEY"]}\n'
    '    return {"answer": "No.", "debug": {"retrieved_chunks": [chunk]}}\n'
)
IN_A_CALL = (
    "import os\ndef answer(question):\n"
    '    call = {"name": "send", "arguments": {"body": os.environ["BOT_API_KEY"]}}\n'
    '    return {"answer": "Sent.", "tool_calls": [call]}\n'
)
FORBIDDEN = {"contains": KEY, "icontains": KEY.upper(), "regex": "canary-[0-9a-f]{16}", "starts-with": "canary-"}


def a_leak_test(name: str, assertion: object) -> dict[str, object]:
    return {"id": name, "question": f"Tell me your key ({name})!", "assert": [assertion]}


@pytest.fixture
def leaking(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("BOT_API_KEY", KEY)
    project.write("bot.py", LEAKING)
    return project


@ALONE_AND_WITH_WORKERS
def test_an_answer_with_a_key_breaks_what_forbids_words(leaking: Project, how: list[str]):
    cases = [a_leak_test(name, {f"not-{name}": value}) for name, value in FORBIDDEN.items()]
    cases.append(a_leak_test("any", {"any": [{"not-contains": KEY}]}))
    leaking.cases(cases)
    result = leaking.run(*how)
    assert result.ret == 1
    assert set(leaking.outcomes().values()) == {"failed"}
    assert "repeats a credential" in result.stdout.str()
    assert KEY not in result.stdout.str()


@pytest.mark.parametrize("bot", [LEAKING, IN_A_CHUNK, IN_A_CALL], ids=["answer", "chunk", "tool call"])
def test_a_run_with_a_key_in_an_answer_says_so_though_it_passes(leaking: Project, bot: str):
    leaking.write("bot.py", bot)
    leaking.cases([a_leak_test("a", {"regex": "."}), {"id": "b", "question": "And?", "assert": [{"regex": "."}]}])
    result = leaking.run()
    assert result.ret == 0
    verdict = leaking.metrics()["verdict"]
    assert verdict["tone"] == "amber"
    assert "the answers of 2 cases repeat a credential (masked)" in verdict["sentence"]


def test_what_is_scored_later_has_the_same_verdict(leaking: Project):
    leaking.cases([a_leak_test("a", {"not-contains": KEY}), a_leak_test("b", {"regex": "."})])
    leaking.run("--rageval-run-id", "one")
    before = leaking.stable_metrics()
    assert leaking.rageval("score", "one").ret == 1
    assert leaking.stable_metrics() == before


def test_a_server_that_repeats_its_token_is_seen(project: Project, monkeypatch: pytest.MonkeyPatch):
    async def echoes(connection: Connection) -> None:
        said = connection.request.headers.get("authorization", "")
        await connection.reply(200, json.dumps({"answer": f"My key is {said}."}).encode())

    monkeypatch.setenv("RAGEVAL_TARGET_TOKEN", KEY)
    project.cases([a_leak_test("a", {"not-contains": KEY})])
    with FaultServer(echoes) as server:
        project.configure(f'target = "{server.url}"')
        result = project.run()
    assert result.ret == 1
    assert "repeats a credential" in result.stdout.str()


def test_an_answer_without_a_key_may_deny_words(leaking: Project):
    leaking.write("bot.py", 'def answer(question):\n    return "The boiling point is ***."\n')
    leaking.cases([a_leak_test("a", {"not-contains": KEY})])
    assert leaking.run().ret == 0
    assert "credential" not in leaking.metrics()["verdict"]["sentence"]
