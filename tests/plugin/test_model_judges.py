"""Judges that are models: their cache in a run, their check in later runs, the estimate of what they cost."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from judge_server import JudgeServer, a_model
from processes import wait_until
from project import SOME, Project, a_case, lines_with

from pytest_rageval.plugin import controller

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


def test_a_spoilt_cache_changes_no_score_and_is_said_once(judged: Project):
    judged.run()
    first = scores(judged)
    asked(judged)
    content = cache_of(judged).read_bytes()
    cache_of(judged).write_bytes(content[:4096] + os.urandom(len(content) - 4096))
    result = judged.run()
    result.assert_outcomes(passed=3)
    assert (asked(judged), scores(judged)) == (3, first)
    assert len(lines_with(result, "judge_cache.sqlite: ")) == 1


@pytest.fixture
def counting(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project of which the estimate says its number of cases: a server of one's own has no list prices."""
    monkeypatch.setattr(controller, "estimate", lambda judge, plan, cases: f"{cases} cases to ask")
    project.cases(SOME)
    return project


def test_cases_that_are_deselected_cost_nothing(counting: Project):
    assert lines_with(counting.run("-k", "boil"), "1 cases to ask")


def test_cases_that_a_resumed_run_has_done_cost_nothing(counting: Project):
    counting.run()
    path = counting.runs[-1] / "results.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:3]), encoding="utf-8")
    assert lines_with(counting.run("--rageval-resume", counting.runs[-1].name), "1 cases to ask")


@pytest.fixture
def checked(project: Project) -> Project:
    project.cases(SOME[:1])
    return project


def with_judge(project: Project, server: JudgeServer, *more: str) -> None:
    project.configure("\n".join(['target = "bot:answer"', f'judge = "openai:judge-1@{server.url}"', *more]))


def test_a_run_judged_by_an_unchecked_model_says_so_in_one_line_and_a_checked_one_says_what_it_failed(checked: Project):
    with JudgeServer(score=5) as server:
        with_judge(checked, server)
        result = checked.run()
        assert len(lines_with(result, "judge judge-1 was never checked here: rageval judge-check tries")) == 1
        assert checked.config()["judge_check"] is None
        first_hash = checked.config()["config_hash"]
        assert checked.rageval("judge-check", "--repeats", "2").ret == 1
        result = checked.run()
    check = checked.config()["judge_check"]
    assert check["repeats"] == 2
    assert check["unchecked"] == []
    assert check["rubrics"]["correctness"]["canaries"] == 10
    assert len(check["rubrics"]["correctness"]["failed"]) == 8
    assert "relevance" not in check["rubrics"]
    assert checked.config()["config_hash"] == first_hash
    assert not lines_with(result, "never checked")
    assert len(lines_with(result, "judge judge-1 failed canaries when it was checked (20")) == 1
    assert "correctness 8 of 10" in lines_with(result, "failed canaries")[0]


def test_a_check_is_of_the_judge_with_its_server_and_of_the_wording(checked: Project):
    with JudgeServer(score=5) as server, JudgeServer(score=5) as other:
        with_judge(checked, server)
        checked.rageval("judge-check")
        with_judge(checked, other)
        assert lines_with(checked.run(), "was never checked here")
        checked.write("own/correctness.txt", "Is {answer} right about {question}, given {contexts}?")
        with_judge(checked, server, 'rubrics = "own"')
        (line,) = lines_with(checked.run(), "was not checked with")
    assert "judge judge-1 was not checked with correctness as worded now" in line


def test_every_rubric_is_put_to_the_judge_and_the_cost_is_said_before(checked: Project):
    with JudgeServer(score=5) as server:
        with_judge(checked, server)
        result = checked.rageval("judge-check", "--json")
        asked = len(server.chats)
    told = json.loads("\n".join(result.outlines))
    assert len({verdict["rubric"] for verdict in told["verdicts"]}) == 15
    assert asked >= len(told["verdicts"])
    result.stderr.fnmatch_lines([f"judge judge-1: {len(told['verdicts'])} short requests, its price is not known"])


def test_a_check_without_any_score_says_nothing_about_the_judge_and_is_not_kept(checked: Project):
    with JudgeServer("I would rather not.") as server:
        with_judge(checked, server)
        result = checked.rageval("judge-check")
    assert result.ret == 1
    result.stderr.fnmatch_lines(["not kept: no score came, which says nothing about the judge"])
    assert not (checked.path / "reports/cache/judge_checks.json").exists()


def diagnoses(project: Project, *arguments: str) -> dict[str, list[dict[str, str]]]:
    result = project.rageval("doctor", "--json", *arguments)
    told = json.loads("\n".join(result.outlines))
    assert told["ready"] == (result.ret == 0) == all(one["mark"] != "problem" for one in told["findings"])
    by_check: dict[str, list[dict[str, str]]] = {}
    for finding in told["findings"]:
        by_check.setdefault(finding["check"], []).append(finding)
    return by_check


def test_doctor_costs_nothing_unless_it_is_to_try_the_judge(checked: Project):
    with JudgeServer(score=5) as server:
        with_judge(checked, server)
        found = diagnoses(checked)
        assert not server.chats
        (unchecked,) = [one for one in found["judge"] if "was never checked here" in one["what"]]
        assert "rageval judge-check tries whether it can be trusted" in unchecked["what"]
        tried = checked.rageval("doctor", "--judge")
        assert server.chats
        assert tried.ret == 0
        tried.stderr.fnmatch_lines(["judge judge-1: * short requests, *"])
        tried.stdout.fnmatch_lines(["!  judge check *cannot be trusted with correctness, 8 of 10 canaries failed*"])
        (line,) = [one for one in diagnoses(checked)["judge"] if "failed canaries when it was checked" in one["what"]]
    assert line["mark"] == "warning"


def test_doctor_tells_all_that_is_wrong_at_once(checked: Project):
    checked.configure('target = "bot:answer"\njudge = "openai:judge-1@http://127.0.0.1:9"\njudge_cache = "replay"')
    checked.write("evalcases/a.jsonl", "{}\n")
    found = diagnoses(checked)
    assert found["cases"][0]["what"].startswith("evalcases/a.jsonl:1:")
    assert found["cache"][0]["fix"].startswith("rageval judge-cache import FILE")
    checked.configure('judge = "openai:judge-1@http://127.0.0.1:9"\nmetrics.enabled = ["mrrr"]')
    found = diagnoses(checked)
    assert "refused" in found["judge"][0]["what"]
    assert found["configuration"][0]["what"] == "unknown metric 'mrrr'; did you mean 'mrr'?"
    checked.configure("k = 0\ncases = 3")
    assert {one["mark"] for one in diagnoses(checked)["configuration"]} == {"problem"}


@pytest.mark.parametrize("spec", ["openai:judge-1@{}", "{}"])
def test_doctor_waits_for_a_server_only_so_long(checked: Project, spec: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pytest_rageval.check.doctor.SERVER_S", 0.3)
    with JudgeServer(delay=120) as server:
        checked.configure(f'target = "bot:answer"\njudge = "{spec.format(server.url)}"')
        threads = threading.active_count()
        found = diagnoses(checked)
        # A thread that is left behind would hold up the end of the program.
        wait_until(lambda: threading.active_count() <= threads, "no thread is left behind")
    assert found["judge"][0]["mark"] == "problem"
    assert "did not answer within 0.3 s" in found["judge"][0]["what"]
    assert found["cases"][0]["mark"] == "ok"


def test_a_broken_cache_is_said(checked: Project):
    checked.write("reports/cache/judge_cache.sqlite", "no database" * 1000)
    (finding,) = diagnoses(checked)["cache"]
    assert finding["mark"] == "problem"
    assert finding["fix"] == "the next run sets it aside and begins anew"
