"""The answers of a stored run, judged again: by whom, how often, and what happens when that fails."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fault_server import hangs, status
from judge_server import JudgeServer
from processes import PATIENCE_S, running, wait_until
from project import RUN, SOME, StoredProject, a_case, a_missed_case, command, problems

CASES = [*SOME[:3], a_missed_case("missed")]


@pytest.fixture(autouse=True)
def any_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def by(server: JudgeServer) -> list[str]:
    return ["--judge", f"openai:judge-1@{server.url}/v1"]


def test_another_judge_gives_other_scores_and_judges_once(project: StoredProject):
    hash_before, before = project.config_hash(), project.files()
    command("judge", RUN)
    assert project.files() == before, "the same judge changes no byte"
    with JudgeServer(score=3) as server:
        result = command("judge", RUN, *by(server))
        assert result.exit_code == 1, result.output
        asked = len(server.chats)
        assert asked == 6  # groundedness and correctness of four answers, two of them the same
        record = project.records()["boil"]
        assert (record["scores"]["groundedness"], record["outcome"]) == (3.0, "failed")
        assert record["judge"]["heuristic"] is False
        assert project.config_hash() != hash_before
        assert project.json("config.json")["judge"]["model"] == record["judge"]["model"]
        scores = {id: record["scores"] for id, record in project.records().items()}
        command("judge", RUN)
        assert len(server.chats) == asked
        assert {id: record["scores"] for id, record in project.records().items()} == scores
        files = project.files()
        command("judge", RUN)
        assert command("judge", RUN, "--judge-cache", "replay").exit_code == 1  # the missed case
        assert (len(server.chats), project.files()) == (asked, files)


def test_figures_of_cost_count_what_this_judging_asked(project: StoredProject):
    with JudgeServer() as server:
        first = command("judge", RUN, *by(server))
        assert "judging: 2 of 8 judgements from the cache, 6 requests (1.5 a case), 720 tokens" in first.output
        second = command("judge", RUN)
    assert "judging: 8 of 8 judgements from the cache, 0 tokens" in second.output
    volatile = project.json("metrics.json")["volatile"]
    assert (volatile["cache_hit_rate"], volatile["cost"]["judge_total_tokens"]) == (1.0, 0)
    assert (volatile["cost"]["judgements"], volatile["cost"]["judgements_cached"]) == (8, 8)
    summary = (project.folder() / "summary.md").read_text(encoding="utf-8")
    assert "judging: 8 of 8 judgements from the cache, 0 tokens" in summary


def test_an_answer_whose_judging_failed_can_be_judged_later(project: StoredProject):
    project.pytest("-k", "boil", run_id="part")
    with JudgeServer(score=4) as server:
        command("judge", "part", *by(server))
        # Of all answers only that one is in the cache, and a twin of it.
        result = command("judge", RUN, *by(server), "--judge-cache", "replay")
        assert "2 of 4 answers could not be judged; the first: judge_cache_miss: " in result.output
        record = project.records()["freeze"]
        assert (record["outcome"], record["error"]["kind"], record["scores"]) == ("error", "judge_cache_miss", {})
        assert record["answer"] == "Water freezes at 0 degrees."
        command("score", RUN)
        assert project.records()["freeze"] == record
        command("judge", RUN)
    record = project.records()["freeze"]
    assert (record["outcome"], record["error"]) == ("passed", None)
    assert (record["scores"]["groundedness"], record["scores"]["recall_any@5"]) == (4.0, 1.0)
    assert {line["asked_k"] for line in observations(project)} == {5}


def observations(project: StoredProject) -> list[dict[str, Any]]:
    text = (project.folder() / "observations.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_where_nothing_can_be_judged_the_run_stays_as_it_was(project: StoredProject):
    before = project.files()
    with JudgeServer(status(400, b"{}")) as server:
        (problem,) = problems(command("judge", RUN, *by(server)))
    assert problem.startswith(f"none of 4 answers could be judged, run {RUN} stays: judge_http_4xx: ")
    assert project.files() == before
    (problem,) = problems(command("judge", RUN, "--judge", "openai:judge-1@http://127.0.0.1:1/v1"))
    assert "Connection refused" in problem


STINGY = """
import pathlib
from pytest_rageval import Judgement
from pytest_rageval.errors import JudgeError

ASKED = pathlib.Path("asked.txt")

class Judge:
    model, heuristic, rubrics = "stingy/1", False, frozenset({"groundedness", "correctness"})

    async def judge(self, request):
        asked = ASKED.read_text() if ASKED.exists() else ""
        if len(asked) == 3 and not pathlib.Path("rich").exists():
            raise JudgeError("budget", "--rageval-max-cost: 3 of 3 US dollars are spent")
        ASKED.write_text(asked + ".")
        return Judgement(request.rubric, {request.rubric: 4.0}, (0.0, 5.0), model=self.model)

    async def aclose(self):
        pass
"""


def test_a_limit_of_cost_ends_it_and_leaves_the_run(project: StoredProject, monkeypatch: pytest.MonkeyPatch):
    project.write("stingy.py", STINGY)
    monkeypatch.syspath_prepend(project.path)
    monkeypatch.delitem(sys.modules, "stingy", raising=False)
    before = project.files()
    assert problems(command("judge", RUN, "--judge", "stingy:Judge")) == [
        f"--rageval-max-cost: 3 of 3 US dollars are spent; run {RUN} stays as it was"
    ]
    assert project.files() == before
    # What was paid for is kept: with more money it goes on from there.
    project.write("rich", "")
    command("judge", RUN, "--judge", "stingy:Judge")
    assert len((project.path / "asked.txt").read_text()) == 6
    assert project.records()["boil"]["scores"]["groundedness"] == 4.0


def test_claims_are_judged_where_that_is_wanted(project: StoredProject):
    verdicts = [{"number": number, "reasoning": "so", "supported": True} for number in (1, 2)]
    said = {"claims": ["It boils.", "It is wet."], "verdicts": verdicts, "score": 1, "reasoning": "so"}
    with JudgeServer(said) as server:
        result = command("judge", RUN, *by(server), "--claim-level")
        assert "claim_support" in project.records()["boil"]["scores"], result.output
    command("judge", RUN, "--judge", "stub:4", "--metrics", "relevance, faithfulness")
    assert project.records()["boil"]["scores"]["faithfulness"] == 1.0
    assert {"claim_support", "relevance"} < set(project.json("config.json")["metrics"])


def test_rubrics_of_another_folder_are_put_to_the_judge(project: StoredProject):
    shipped = Path(sys.modules["pytest_rageval"].__path__[0]) / "judges/rubrics/correctness.toml"
    project.write("own/correctness.toml", shipped.read_text(encoding="utf-8") + "\n# mine\n")
    before = project.records()["boil"]["judge"]["prompt_versions"]
    command("judge", RUN, "--rubrics", "own")
    after = project.records()["boil"]["judge"]["prompt_versions"]
    assert after["correctness"] != before["correctness"]
    assert after["groundedness"] == before["groundedness"]
    assert project.json("config.json")["settings"]["rubrics"] == "own"


def test_a_run_of_retrieval_only_can_be_judged_where_it_is_said_for_what(project: StoredProject):
    project.pytest("--rageval-retrieval-only", run_id="bare")
    (problem,) = problems(command("judge", "bare"))
    assert problem.startswith("run bare measures nothing that is judged; name what to judge")
    command("judge", "bare", "--metrics", "correctness")
    assert project.records("bare")["boil"]["scores"]["correctness"] == 5.0
    assert project.json("config.json", "bare")["settings"]["retrieval_only"] is False


def test_a_judge_of_a_fixture_cannot_be_made_again(project: StoredProject):
    project.write(
        "conftest.py",
        "import pytest\nclass Mine:\n    model, scale = 'mine/1', (0, 5)\n"
        "    async def score_groundedness(self, answer, context):\n        return 4.0\n"
        "@pytest.fixture(scope='session')\ndef rag_judge():\n    return Mine()\n",
    )
    project.pytest(run_id="fixture")
    assert problems(command("judge", RUN, "--judge", "none")) == [
        "judge 'none': nobody judges; name a judge with --judge"
    ]
    (problem,) = problems(command("judge", "fixture"))
    assert problem.startswith("run fixture was judged by mine/1, which the configuration does not name")
    assert command("judge", "fixture", "--judge", "lexical").exit_code == 1


CTRL_C_AMID_WRITING = """
import os, runpy, signal

replace = os.replace

def replacing(source, target):
    replace(source, target)
    if str(target).endswith("observations.jsonl"):
        os.kill(os.getpid(), signal.SIGINT)

os.replace = replacing
runpy.run_module("pytest_rageval.cli.main", run_name="__main__", alter_sys=True)
"""
"""The command, to which a signal comes as soon as the first file of the run is replaced."""


def _judging(
    project: StoredProject, server: JudgeServer, *how: str
) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    """`rageval judge` in a process of its own."""
    command = [sys.executable, *(how or ("-m", "pytest_rageval.cli.main")), "judge", RUN, *by(server)]
    environment = os.environ | {"OPENAI_API_KEY": "none"}
    return running(command, cwd=project.path, env=environment, stderr=subprocess.PIPE, text=True)


def _arrived(server: JudgeServer) -> int:
    """How many answers the judge was given, of which it may have said nothing yet."""
    return sum(request.path.endswith("/chat/completions") for request in server.requests)


@pytest.mark.child_process
def test_ctrl_c_leaves_the_run_and_keeps_what_was_judged(project: StoredProject):
    before = project.files()
    judged = {"score": 4, "reasoning": "so"}
    with JudgeServer(judged, judged, hangs) as server, _judging(project, server) as process:
        wait_until(lambda: _arrived(server) >= 3, "three answers are sent to the judge", process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert f"interrupted: run {RUN} is as it was; what was judged is in the judge cache" in said
    assert "Traceback" not in said
    assert project.files() == before
    assert [path.name for path in project.folder().iterdir() if path.name.startswith(".")] == []


@pytest.mark.child_process
def test_ctrl_c_while_the_run_is_written_waits_until_it_is(tmp_path: Path):
    project = StoredProject.new(tmp_path / "p", [a_case(f"q{number}") for number in range(150)])
    project.pytest()
    with JudgeServer(score=3) as server, _judging(project, server, "-c", CTRL_C_AMID_WRITING) as process:
        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert f"interrupted: run {RUN} was written by then, with what was judged" in said
    assert "Traceback" not in said
    assert {record["scores"]["groundedness"] for record in project.records().values()} == {3.0}
    assert project.json("metrics.json")["metrics"]["groundedness"]["mean"] == 3.0
    assert "groundedness" in (project.folder() / "summary.md").read_text(encoding="utf-8")


def test_no_key_is_written(project: StoredProject, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "s3cr3t-t0k3n-of-mine")
    with JudgeServer(key="s3cr3t-t0k3n-of-mine") as server:
        command("judge", RUN, "--judge", f"openai:judge-1@{server.url.replace('//', '//user:hidden-pw@')}/v1")
        assert server.chats
    for path in project.folder().iterdir():
        text = path.read_text(encoding="utf-8")
        assert "s3cr3t" not in text
        assert "hidden-pw" not in text, path
    assert json.loads((project.folder() / "config.json").read_text())["judge"]["model"]
