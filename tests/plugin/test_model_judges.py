"""A run with a judge that is a model: a real server, a real pytest, its files."""

from __future__ import annotations

import json

import pytest
from fault_server import status
from judge_server import JudgeServer, a_model
from project import SOME, Project, a_case, lines_with

KEY = "rageval-judge-token-0123456789"


def test_a_model_judges_once_and_its_keys_are_written_nowhere(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAGEVAL_JUDGE_TOKEN", KEY)
    project.cases(SOME)
    with JudgeServer(key=KEY) as server:
        judge = f"openai:judge@{server.url.replace('//', '//ann:hunter2hunter2@')}/v1?api_key={KEY}"
        project.run("--rageval-judge", judge)
        asked = len(server.chats)
        result = project.run("--rageval-judge", judge)
        assert len(server.chats) == asked > 0, "the second run is judged from the cache"
    record = project.records()["boil"]
    assert (record["groundedness"]["score"], record["groundedness"]["model"]) == (4.0, "judge")
    assert record["judge"]["heuristic"] is False
    config = json.loads((project.runs[-1] / "config.json").read_text(encoding="utf-8"))
    assert config["settings"]["judge"] == f"openai:judge@{server.url}/v1?api_key=***"
    written = [path.read_bytes() for path in project.path.rglob("reports/**/*") if path.is_file()]
    assert not [content for content in written if KEY.encode() in content or b"hunter2" in content]
    assert not lines_with(result, KEY)


def test_what_the_provider_is_told_stands_in_the_configuration_and_its_headers_nowhere(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GATEWAY_KEY", KEY)
    options = 'max_tokens = 700\nheaders = { "X-Gateway-Key" = "env:GATEWAY_KEY" }'
    project.configure('target = "bot:answer"', f"[tool.rageval.judge_options]\n{options}\n")
    project.cases(SOME)
    with JudgeServer() as server:
        project.run("--rageval-judge", f"openai:judge@{server.url}")
    assert {(chat.json["max_tokens"], chat.headers["x-gateway-key"]) for chat in server.chats} == {(700, KEY)}
    config = (project.runs[-1] / "config.json").read_text(encoding="utf-8")
    assert json.loads(config)["judge"]["options"] == {"max_tokens": 700}
    assert KEY not in config
    assert "GATEWAY" not in config


def test_a_name_for_the_server_lets_two_addresses_share_a_cache(project: Project):
    project.configure('target = "bot:answer"\njudge_name = "ours"')
    project.cases(SOME)
    with JudgeServer() as laptop, JudgeServer() as ci:
        project.run("--rageval-judge", f"openai:judge@{laptop.url}")
        project.run("--rageval-judge", f"openai:judge@{ci.url}/v1")
    assert (bool(laptop.chats), ci.chats) == (True, [])
    config = json.loads((project.runs[-1] / "config.json").read_text(encoding="utf-8"))
    assert config["judge"]["identity"] == "openai:judge@ours"


@pytest.mark.child_process
def test_workers_ask_the_same_model_with_a_base_url_as_well(project: Project):
    project.cases(SOME)
    with JudgeServer() as server:
        base_url = server.url.replace("//", "//ann:hunter2hunter2@")
        project.run("--rageval-judge", "judge", "--rageval-judge-base-url", base_url, "-n", "2")
    assert project.records()["boil"]["groundedness"]["score"] == 4.0
    assert "hunter2" not in (project.runs[-1] / "config.json").read_text(encoding="utf-8")


def test_a_cross_encoder_judges_grounding_once_and_what_it_does_not_have_is_not_applicable(project: Project):
    known = "Water boils at 100 degrees at sea level. Iron melts beyond 1538."
    a_model(project.path / "models" / "small", [known])
    project.write(
        "talk.py",
        "import bot\n"
        "def answer(question):\n"
        "    return bot.answer(question) | ({'answer': 'Iron melts beyond 1538.'} if 'iron' in question else {})\n",
    )
    project.cases([a_case("boil"), {"id": "iron", "question": "What is the boiling point of iron?"}])
    run = ["--rageval-target", "talk:answer", "--rageval-judge", "nli:models/small"]
    result = project.run(*run)
    result.assert_outcomes(passed=1, failed=1)
    assert lines_with(result, "iron - groundedness is 0, gate >= 3.5")
    record = project.records()["boil"]
    assert record["groundedness"]["score"] > 4.9
    assert record["judge"]["heuristic"] is False
    assert "correctness" in record["skipped_metrics"]
    again = project.run(*run)
    assert lines_with(again, "judging: 2 of 2 judgements from the cache")


def test_a_judge_that_fails_is_an_error_of_the_case_and_never_a_score(project: Project):
    project.cases([a_case("boil")])
    with JudgeServer("5 out of 5!", status(404)) as server:
        result = project.run("--rageval-judge", f"openai:judge@{server.url}")
    result.assert_outcomes(errors=1)
    record = project.records()["boil"]
    assert (record["outcome"], record["scores"]) == ("error", {})
    assert record["error"]["kind"] == "judge_http_4xx"
