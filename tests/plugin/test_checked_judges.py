"""A judge check in later runs: in config.json, in a line where it is missing or was failed, and in `rageval doctor`."""

from __future__ import annotations

import json
import threading
import time

import pytest
from judge_server import JudgeServer
from processes import wait_until
from project import SOME, Project, lines_with


@pytest.fixture
def judged(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    for name in ("OPENAI_API_KEY", "RAGEVAL_JUDGE_TOKEN", "RAGEVAL_JUDGE"):
        monkeypatch.delenv(name, raising=False)
    project.cases(SOME[:1])
    return project


def with_judge(project: Project, server: JudgeServer, *more: str) -> None:
    project.configure("\n".join(['target = "bot:answer"', f'judge = "openai:judge-1@{server.url}"', *more]))


def test_a_run_judged_by_an_unchecked_model_says_so_in_one_line_and_a_checked_one_says_what_it_failed(judged: Project):
    with JudgeServer(score=5) as server:
        with_judge(judged, server)
        result = judged.run()
        assert len(lines_with(result, "judge judge-1 was never checked here: rageval judge-check tries")) == 1
        assert judged.config()["judge_check"] is None
        first_hash = judged.config()["config_hash"]
        checked = judged.rageval("judge-check", "--repeats", "2")
        assert checked.ret == 1
        result = judged.run()
    check = judged.config()["judge_check"]
    assert check["repeats"] == 2
    assert check["unchecked"] == []
    assert check["rubrics"]["correctness"]["canaries"] == 10
    assert len(check["rubrics"]["correctness"]["failed"]) == 8
    assert "relevance" not in check["rubrics"]
    assert judged.config()["config_hash"] == first_hash
    assert not lines_with(result, "never checked")
    assert len(lines_with(result, "judge judge-1 failed canaries when it was checked (20")) == 1
    assert "correctness 8 of 10" in lines_with(result, "failed canaries")[0]


def test_a_check_is_of_the_judge_with_its_server_and_of_the_wording(judged: Project):
    with JudgeServer(score=5) as server, JudgeServer(score=5) as other:
        with_judge(judged, server)
        judged.rageval("judge-check")
        with_judge(judged, other)
        assert lines_with(judged.run(), "was never checked here")
        judged.write("own/correctness.txt", "Is {answer} right about {question}, given {contexts}?")
        with_judge(judged, server, 'rubrics = "own"')
        (line,) = lines_with(judged.run(), "was not checked with")
    assert "judge judge-1 was not checked with correctness as worded now" in line


def test_every_rubric_is_put_to_the_judge_and_the_cost_is_said_before(judged: Project):
    with JudgeServer(score=5) as server:
        with_judge(judged, server)
        result = judged.rageval("judge-check", "--json")
        asked = len(server.chats)
    told = json.loads("\n".join(result.outlines))
    assert len({verdict["rubric"] for verdict in told["verdicts"]}) == 13
    assert asked >= len(told["verdicts"])
    result.stderr.fnmatch_lines([f"judge judge-1: {len(told['verdicts'])} short requests, its price is not known"])


def test_a_check_without_any_score_says_nothing_about_the_judge_and_is_not_kept(judged: Project):
    with JudgeServer("I would rather not.") as server:
        with_judge(judged, server)
        result = judged.rageval("judge-check")
    assert result.ret == 1
    result.stderr.fnmatch_lines(["not kept: no score came, which says nothing about the judge"])
    assert not (judged.path / "reports/cache/judge_checks.json").exists()


# ── doctor ────────────────────────────────────────────────────────────────────────────────────────────────────


def diagnoses(project: Project, *arguments: str) -> dict[str, list[dict[str, str]]]:
    result = project.rageval("doctor", "--json", *arguments)
    told = json.loads("\n".join(result.outlines))
    assert told["ready"] == (result.ret == 0) == all(one["mark"] != "problem" for one in told["findings"])
    by_check: dict[str, list[dict[str, str]]] = {}
    for finding in told["findings"]:
        by_check.setdefault(finding["check"], []).append(finding)
    return by_check


def test_doctor_costs_nothing_unless_it_is_to_try_the_judge(judged: Project):
    with JudgeServer(score=5) as server:
        with_judge(judged, server)
        found = diagnoses(judged)
        assert not server.chats
        assert [one["fix"] for one in found["judge"] if one["what"].startswith("never checked")] == [
            "rageval doctor --judge"
        ]
        tried = judged.rageval("doctor", "--judge")
        assert server.chats
        assert tried.ret == 0
        tried.stderr.fnmatch_lines(["judge judge-1: * short requests, *"])
        tried.stdout.fnmatch_lines(["!  judge check *cannot be trusted with correctness, 8 of 10 canaries failed*"])
        (line,) = [one for one in diagnoses(judged)["judge"] if one["what"].startswith("failed canaries on ")]
    assert line["mark"] == "warning"


def test_doctor_tells_all_that_is_wrong_at_once(judged: Project):
    judged.configure('target = "bot:answer"\njudge = "openai:judge-1@http://127.0.0.1:9"\njudge_cache = "replay"')
    judged.write("evalcases/a.jsonl", "{}\n")
    found = diagnoses(judged)
    assert found["cases"][0]["what"].startswith("evalcases/a.jsonl:1:")
    assert found["cache"][0]["fix"].startswith("rageval judge-cache import FILE")
    judged.configure('judge = "openai:judge-1@http://127.0.0.1:9"\nmetrics.enabled = ["mrrr"]')
    found = diagnoses(judged)
    assert "refused" in found["judge"][0]["what"]
    assert found["configuration"][0]["what"] == "unknown metric 'mrrr'; did you mean 'mrr'?"
    judged.configure("k = 0\ncases = 3")
    assert {one["mark"] for one in diagnoses(judged)["configuration"]} == {"problem"}


@pytest.mark.parametrize("spec", ["openai:judge-1@{}", "{}"])
def test_doctor_waits_two_seconds_whatever_hangs(judged: Project, spec: str):
    with JudgeServer(delay=120) as server:
        judged.configure(f'target = "bot:answer"\njudge = "{spec.format(server.url)}"')
        threads = threading.active_count()
        started = time.monotonic()
        found = diagnoses(judged)
        assert time.monotonic() - started < 30, "2 s of waiting, and what a slow machine takes"
        # A thread that is left behind would hold up the end of the program.
        wait_until(lambda: threading.active_count() <= threads, "no thread is left behind")
    assert found["judge"][0]["mark"] == "problem"
    assert "did not answer within 2 s" in found["judge"][0]["what"]
    assert found["cases"][0]["mark"] == "ok"


def test_a_broken_cache_is_said(judged: Project):
    judged.write("reports/cache/judge_cache.sqlite", "no database" * 1000)
    (finding,) = diagnoses(judged)["cache"]
    assert finding["mark"] == "problem"
    assert finding["fix"] == "the next run sets it aside and begins anew"
