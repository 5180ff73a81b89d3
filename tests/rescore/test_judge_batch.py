"""Judging in batches: what is submitted, what is fetched, and that nothing is asked or scored twice."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer, Result
from judge_server import JudgeServer, _fitting
from project import RUN, SOME, StoredProject, a_missed_case, command, problems

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_json
from pytest_rageval.rescore import judge_batch

CASES = [*SOME[:3], a_missed_case("missed")]


@pytest.fixture(autouse=True)
def any_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant")


@pytest.fixture(params=["openai", "anthropic"])
def provider(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def submit(server: JudgeServer, provider: str = "openai", *more: str, catch: bool = True) -> Any:
    result = command("judge", RUN, "--judge", f"{provider}:judge-1@{server.url}/v1", "--batch", *more)
    if not catch and result.exception is not None:
        raise result.exception
    return result


def collect() -> Any:
    return command("judge", RUN, "--collect")


def said_of(result: Any) -> str:
    return "; ".join(problems(result))


def state_of(project: StoredProject) -> Result:
    found: Result = project.json("judge_batch.json")
    return found


def test_a_run_is_submitted_and_scored_when_the_batch_has_ended(project: StoredProject, provider: str):
    before = project.records()
    with BatchServer(score=3) as server:
        submitted = submit(server, provider)
        assert submitted.exit_code == 0, submitted.output
        assert "submitted 6 requests as batch b-1, at half price" in submitted.output
        assert project.records() == before
        server.is_ready = False
        waiting = collect()
        assert (waiting.exit_code, project.records()) == (3, before)
        assert "in_progress, 0 of 6 requests done" in waiting.output
        server.is_ready = True
        scored = collect()
        assert scored.exit_code == 1, scored.output  # cases fail now
        assert (len(server.chats), len(server.batches)) == (0, 1)
        files, asked = project.files(), len(server.requests)
        again = collect()
        assert (again.exit_code, project.files(), len(server.requests)) == (0, files, asked)
        assert "was scored with its batch at" in again.output
        command("judge", RUN, "--judge", f"{provider}:judge-1@{server.url}/v1", "--batch", "--metrics", "relevance")
        assert len(server.batches[1]) == 3, "what the cache holds is not submitted"
    assert project.records()["boil"]["scores"]["groundedness"] == 3.0
    assert project.records()["boil"]["judge"]["model"] == "judge-1"
    key = {"openai": "Bearer sk-none", "anthropic": "sk-ant"}[provider]
    assert set(server.keys) == {key}


@pytest.mark.parametrize(
    ("provider", "states"),
    [
        ("openai", ["validating", "in_progress", "finalizing", "cancelling"]),
        ("anthropic", ["in_progress", "canceling"]),
    ],
)
def test_a_batch_is_waited_for_in_every_state_but_the_last(project: StoredProject, provider: str, states: list[str]):
    before = project.records()
    with BatchServer(score=3) as server:
        submit(server, provider)
        server.states = [*states]
        for state in states:
            waiting = collect()
            assert (waiting.exit_code, project.records()) == (3, before)
            assert f"batch b-1: {state}" in waiting.output
        assert collect().exit_code == 1


@pytest.mark.parametrize("status", ["failed", "expired", "cancelled"])
def test_what_an_unfinished_batch_holds_counts_and_the_rest_can_be_submitted_again(project: StoredProject, status: str):
    with BatchServer(score=3, fate=lambda number: "lost" if number in (1, 4) else None) as server:
        server.ends_as = status
        submit(server)
        assert "judge_batch" in collect().output
        submit(server)
        assert [len(batch) for batch in server.batches] == [6, 2]


def test_a_batch_says_what_single_requests_would_have_said(project: StoredProject, provider: str):
    with BatchServer(score=3) as server:
        command("judge", RUN, "--judge", f"{provider}:judge-1@{server.url}/v1", "--judge-cache", "off")
        alone = {id: record["scores"] for id, record in project.records().items()}
        submit(server, provider, "--judge-cache", "refresh")
        collect()
    assert len(server.batches[0]) == 6
    assert {id: record["scores"] for id, record in project.records().items()} == alone


def test_submitting_twice_is_refused_while_a_batch_is_under_way(project: StoredProject):
    with BatchServer() as server:
        submit(server)
        again = submit(server)
        assert "has a batch under way since" in said_of(again)
        assert len(server.batches) == 1
        collect()
        assert "nothing is left to ask" in submit(server).output
        assert len(server.batches) == 1


def test_tokens_are_counted_once_and_cost_half(project: StoredProject, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pytest_rageval.llm.endpoint_options.Tariff.cost", lambda *_: 0.5)
    with BatchServer() as server:
        submit(server)
        collect()
    cost = project.json("metrics.json")["volatile"]["cost"]
    assert (cost["judge_requests"], cost["judge_total_tokens"], cost["judge_total_usd"]) == (6, 720, 1.5)


def test_a_batch_beyond_the_limit_of_cost_is_not_submitted(project: StoredProject, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pytest_rageval.llm.endpoint_options.Tariff.cost", lambda *_: 9.0)
    with BatchServer() as server:
        refused = submit(server, "openai", "--max-cost", "2")
    assert server.batches == []
    assert "the batch is likely to cost $4.50, more than $2.00" in said_of(refused)


def test_a_run_submits_its_judging_and_is_finished_by_the_collection(project: StoredProject):
    with BatchServer(score=3) as server:
        judge = f"openai:judge-1@{server.url}/v1"
        result = command("run", "--judge", judge, "--run-id", "batched", "--judge-batch", "--skip-description-prompt")
        assert "submitted 6 requests as batch b-1, at half price" in result.output, result.output
        assert "within a day: rageval judge batched --collect" in result.output
        assert server.chats == []
        assert command("judge", "batched", "--collect").exit_code == 1
    scores = project.json("metrics.json", "batched")["metrics"]
    assert scores["groundedness"]["mean"] == 3.0


def test_a_run_whose_judge_takes_no_batches_asks_nothing(project: StoredProject):
    refused = command("run", "--judge", "lexical", "--run-id", "batched", "--judge-batch")
    assert refused.exit_code == 4
    assert "--judge-batch: batches are for a judge openai:MODEL or anthropic:MODEL" in refused.output
    assert not (project.folder().parent / "batched").exists()


def test_what_depends_on_a_reply_is_submitted_once_it_is_there(project: StoredProject):
    unreadable_first = iter(["no JSON"] * 6 + [None] * 100)

    class Unreadable(BatchServer):
        def _message(self, shape: Any, body: Any) -> Any:
            said = next(unreadable_first)
            return shape(self, body, _fitting(body, 2)) if said is None else shape(self, body, said)

    with Unreadable() as server:
        submit(server)
        further = collect()
        assert further.exit_code == 3
        assert "6 requests could be asked only with these replies" in further.output
        unreadable_first = iter(["no JSON"] * 6 + [None] * 100)
        assert collect().exit_code == 1
    assert [len(batch) for batch in server.batches] == [6, 6]
    assert len(server.batches[1][0]["body"]["messages"]) == 4
    assert project.records()["boil"]["scores"]["groundedness"] == 2.0


def test_a_refused_parameter_is_left_out_in_the_next_batch(project: StoredProject):
    with BatchServer(fate=lambda number: "400" if number < 6 else None) as server:
        submit(server)
        assert collect().exit_code == 3
        assert collect().exit_code == 1
    assert ["seed" in each["body"] for batch in server.batches for each in batch] == [True] * 6 + [False] * 6


class Killed(BaseException):
    """The end of the process."""


def killed_at(call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process end before the state of the batch is written for that time."""
    calls = count(1)
    write = write_json

    def write_or_end(path: Path, content: Any) -> None:
        if next(calls) == call:
            raise Killed
        write(path, content)

    monkeypatch.setattr(judge_batch, "write_json", write_or_end)


@pytest.mark.parametrize("is_begun", [True, False])
def test_a_submission_whose_answer_was_not_noted_is_found_and_not_paid_twice(
    project: StoredProject, provider: str, monkeypatch: pytest.MonkeyPatch, is_begun: bool
):
    with BatchServer(score=3) as server:
        with monkeypatch.context() as patched:
            killed_at(2, patched)
            with pytest.raises(Killed):
                submit(server, provider, catch=False)
        assert (len(server.batches), state_of(project)["batches"]) == (1, [])
        if not is_begun:  # the process ended before its request went out
            server.batches.clear()
        assert "has a batch under way since" in said_of(submit(server, provider))
        if not is_begun:
            assert "6 requests had not been submitted" in collect().output
        assert collect().exit_code == 1
        assert len(server.batches) == 1
        assert project.records()["boil"]["scores"]["groundedness"] == 3.0


def test_a_submission_that_is_not_answered_is_sent_once_and_one_that_is_refused_can_be_repeated(
    project: StoredProject,
):
    refuse = {"status": 504}

    class Unanswering(BatchServer):
        async def _route(self, connection: Any) -> None:
            if refuse and connection.request.path == "/v1/batches":
                if refuse["status"] == 504:
                    self._begin([{"custom_id": str(number)} for number in range(6)])
                await connection.reply(refuse["status"], b"{}")
            else:
                await super()._route(connection)

    with Unanswering() as server:
        assert "the batch cannot be submitted" in said_of(submit(server))
        assert len(server.batches) == 1
        assert "has a batch under way" in said_of(submit(server))
        (project.folder() / "judge_batch.json").unlink()
        refuse["status"] = 400
        assert "the batch cannot be submitted" in said_of(submit(server))
        refuse.clear()
        assert "submitted 6 requests" in submit(server).output


def test_another_batch_of_the_same_account_is_not_taken_for_ours(
    project: StoredProject, monkeypatch: pytest.MonkeyPatch
):
    with BatchServer() as server:
        with monkeypatch.context() as patched:
            killed_at(2, patched)
            with pytest.raises(Killed):
                submit(server, catch=False)
        server.names[0] = {"rageval": "of another run"}
        assert "6 requests had not been submitted" in collect().output


def test_scoring_again_after_the_end_was_not_noted_asks_and_changes_nothing(project: StoredProject, provider: str):
    with BatchServer(score=3) as server:
        submit(server, provider)
        collect()
        scores = {id: record["scores"] for id, record in project.records().items()}
        path = project.folder() / "judge_batch.json"
        path.write_text(json.dumps(state_of(project) | {"collected": None}))
        assert collect().exit_code == 1
        assert (len(server.batches), len(server.chats)) == (1, 0)
    assert {id: record["scores"] for id, record in project.records().items()} == scores


@pytest.mark.parametrize(
    ("fate", "why"), [("expired", ""), ("canceled", ""), ("lost", ""), ("errored", "max_tokens: too large")]
)
def test_a_request_that_came_to_nothing_is_an_error_of_its_case_and_can_be_submitted_again(
    project: StoredProject, provider: str, fate: str, why: str
):
    with BatchServer(score=3, fate=lambda number: fate if number == 2 else None) as server:
        submit(server, provider)
        scored = collect()
        assert "1 of 4 answers could not be judged; the first: judge_" in scored.output
        errors = [record["error"] for record in project.records().values() if record["outcome"] == "error"]
        assert len(errors) == 1
        assert provider == "openai" or why in str(errors)
        submit(server, provider)
        assert [len(batch) for batch in server.batches] == [6, 1]
        collect()
    assert [record["outcome"] for record in project.records().values()].count("error") == 0


def test_a_batch_that_expired_as_a_whole_leaves_the_run_as_it_was(project: StoredProject, provider: str):
    before = project.records()
    with BatchServer(fate=lambda _: "expired") as server:
        submit(server, provider)
        assert "none of 4 answers could be judged" in said_of(collect())
        assert project.records() == before
        assert submit(server, provider).exit_code == 0


def test_a_server_without_batches_and_one_that_is_gone_are_said(project: StoredProject):
    with JudgeServer() as server:
        refused = submit(server)
    assert "the batch cannot be submitted: POST" in said_of(refused)
    with BatchServer() as server:
        submit(server)
    assert "the batch cannot be fetched" in said_of(collect())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--collect",), "has no batch; `rageval judge"),
        (("--batch", "--collect"), "three things"),
        (("--collect", "--metrics", "mrr"), "judges as was submitted"),
        (("--batch", "--judge", "stub:3"), "batches are for openai:MODEL and anthropic:MODEL"),
        (("--batch", "--judge-cache", "replay"), "in replay nothing is asked"),
    ],
)
def test_what_makes_no_sense_is_wrong_usage(project: StoredProject, arguments: tuple[str, ...], said: str):
    if arguments == ("--collect",):
        Path(project.folder() / "judge_batch.json").write_text("[1]")
        assert "judge_batch.json" in said_of(collect()), "a file that is no submission"
        Path(project.folder() / "judge_batch.json").unlink()
    result = command("judge", RUN, *arguments)
    assert said in (said_of(result) if isinstance(result.exception, SettingsError) else result.output)
