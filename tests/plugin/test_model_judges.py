"""Judges that are models, and their cache in a run: kept between runs, never smaller, replayed offline."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from judge_server import JudgeServer, a_model
from project import SOME, Project, a_case, lines_with

KEY = "rageval-judge-token-0123456789"


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
    config = project.config()
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


JUDGE = """
import pytest


class Examiner:
    model, scale = "examiner/1", (0, 5)

    async def score_groundedness(self, answer, context):
        with open("asked.txt", "a") as asked:
            asked.write("asked\\n")
        return 5.0 if answer in context else 1.0


@pytest.fixture(scope="session")
def rag_judge():
    return Examiner()
"""


@pytest.fixture
def judged(project: Project) -> Project:
    project.cases(SOME[:3])
    project.write("conftest.py", JUDGE)
    return project


def cache_of(project: Project) -> Path:
    return project.path / "reports" / "cache" / "judge_cache.sqlite"


def asked(project: Project) -> int:
    """How often the judge was asked since this was last called."""
    file = project.path / "asked.txt"
    number = len(file.read_text().splitlines()) if file.exists() else 0
    file.unlink(missing_ok=True)
    return number


def kept(project: Project) -> int:
    with closing(sqlite3.connect(cache_of(project))) as connection:
        (number,) = connection.execute("SELECT count(parts) FROM judgements").fetchone()
    return int(number)


def scores(project: Project) -> dict[str, Any]:
    return {id: record["scores"] for id, record in project.records().items()}


def test_a_run_of_fewer_cases_never_makes_the_cache_smaller(judged: Project):
    judged.run()
    judged.run("-k", "boil", "--rageval-judge-cache", "refresh")
    assert kept(judged) == 3


def test_in_replay_a_miss_is_an_error_of_its_case_that_names_the_nearest(judged: Project):
    judged.run("-k", "not boil")
    asked(judged)
    result = judged.run("--rageval-judge-cache", "replay")
    assert asked(judged) == 0
    assert judged.outcomes() == {"boil": "error", "freeze": "passed", "남산-높이": "passed"}
    error = judged.records()["boil"]["error"]
    assert error["kind"] == "judge_cache_miss"
    assert "; nearest: other question '" in error["message"]
    assert lines_with(result, "no judgement is stored for question 'What is the boiling point of water?'")


def test_the_nearest_of_a_miss_is_about_the_same_answer_before_the_same_question(judged: Project):
    judged.run()
    freezing = '"notes/water.md", "# Water > ## Freezing", "Water freezes at 0 degrees."'
    boiling = '"notes/water.md", "# Water > ## Boiling", "Water boils at 100 degrees at sea level."'
    judged.write("bot.py", (judged.path / "bot.py").read_text(encoding="utf-8").replace(boiling, freezing))
    judged.run("-k", "boil", "--rageval-judge-cache", "replay")
    message = judged.records()["boil"]["error"]["message"]
    assert (
        "; nearest: other question 'What is the freezing point?', same answer, same contexts, same citations; run"
        in message
    )


def _scribbled(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)


def _a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("spoil", [_scribbled, _a_folder])
def test_a_spoilt_cache_changes_no_score_and_is_said_once(judged: Project, spoil):
    judged.run()
    first = scores(judged)
    asked(judged)
    spoil(cache_of(judged))
    result = judged.run()
    result.assert_outcomes(passed=3)
    assert (asked(judged), scores(judged)) == (3, first)
    assert len(lines_with(result, "judge_cache.sqlite: ")) == 1
