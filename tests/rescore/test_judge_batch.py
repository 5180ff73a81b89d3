"""Judging in batches: what is submitted, what is fetched, and that nothing is asked or scored twice."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from judge_server import JudgeServer, _anthropic, _fitting, _openai
from project import RUN, SOME, StoredProject, a_missed_case, command, problems

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_json
from pytest_rageval.rescore import judge_batch

CASES = [*SOME[:3], a_missed_case("missed")]
Result = dict[str, Any]


class BatchServer(JudgeServer):
    """The batch interfaces of OpenAI and Anthropic, as their references describe them.

    states    what the batches say in turn before they have ended, each once
    is_ready  the batches have ended
    ends_as   OpenAI's status of an ended batch, if none of its requests expired
    fate      what becomes of the request of a number: None succeeds, else a code such as `expired`
    """

    def __init__(self, *replies: object, fate: Callable[[int], str | None] = lambda _: None, **options: Any) -> None:
        super().__init__(*replies, **options)
        self.is_ready, self.fate, self.ends_as = True, fate, "completed"
        self.states: list[str] = []
        self.names: list[Any] = []
        self.begun_at = datetime.now(UTC)
        self.batches: list[list[Result]] = []
        self.files: list[bytes] = []
        self.keys: list[str] = []

    async def _route(self, connection: Any) -> None:
        request = connection.request
        path, method = request.path, request.method
        self.keys.append(request.headers.get("authorization") or request.headers.get("x-api-key", ""))
        reply: Any = None
        if path == "/v1/files":
            assert b'name="purpose"\r\n\r\nbatch' in request.body
            self.files.append(re.split(rb"filename=.*?\r\n\r\n", request.body, maxsplit=1, flags=re.S)[1])
            reply = {"id": f"file-{len(self.files)}", "purpose": "batch"}
        elif path.startswith(("/v1/batches?", "/v1/messages/batches?")):
            one = self._openai_state if "messages" not in path else self._anthropic_state
            reply = {"data": [one(number) for number in range(len(self.batches), 0, -1)], "has_more": False}
        elif path == "/v1/batches":
            asked = request.json
            self.names.append(asked["metadata"])
            assert (asked["endpoint"], asked["completion_window"]) == ("/v1/chat/completions", "24h")
            content = self.files[int(asked["input_file_id"].removeprefix("file-")) - 1].rpartition(b"\n--")[0]
            lines = [json.loads(line) for line in content.splitlines() if line.strip()]
            assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}
            reply = self._begin([{"custom_id": line["custom_id"], "body": line["body"]} for line in lines])
        elif path == "/v1/messages/batches" and method == "POST":
            listed = request.json["requests"]
            self._begin([{"custom_id": each["custom_id"], "body": each["params"]} for each in listed])
            reply = self._anthropic_state(len(self.batches))
        elif found := re.fullmatch(r"/v1/batches/b-(\d+)", path):
            reply = self._openai_state(int(found[1]))
        elif found := re.fullmatch(r"/v1/messages/batches/b-(\d+)(/results)?", path):
            number = int(found[1])
            reply = self._anthropic_lines(number) if found[2] else self._anthropic_state(number)
        elif found := re.fullmatch(r"/v1/files/(out|err)-(\d+)/content", path):
            reply = self._openai_lines(int(found[2]), is_error=found[1] == "err")
        if reply is None:
            await super()._route(connection)
        else:
            body = reply if isinstance(reply, list) else [reply]
            await connection.reply(200, "\n".join(map(json.dumps, body)).encode())

    def _begin(self, requests: list[Result]) -> Result:
        ids = [each["custom_id"] for each in requests]
        assert len(ids) == len(set(ids))
        assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", each) for each in ids)
        self.batches.append(requests)
        return {"id": f"b-{len(self.batches)}", "status": "validating"}

    def _fates(self, number: int) -> list[tuple[Result, str | None]]:
        before = sum(map(len, self.batches[: number - 1]))
        return [(each, self.fate(before + at)) for at, each in enumerate(self.batches[number - 1])]

    def _message(self, shape: Any, body: Any) -> Any:
        reply = self.replies[min(self._answered, len(self.replies) - 1)] if self.replies else None
        self._answered += 1
        return shape(self, body, _fitting(body, self.score) if reply is None else reply)

    def _openai_state(self, number: int) -> Result:
        fates = [fate for _, fate in self._fates(number)]
        state: Result = {
            "id": f"b-{number}",
            "status": "in_progress",
            "request_counts": {"total": len(fates), "completed": 0},
        }
        state["metadata"] = self.names[number - 1] if self.names else None
        if self.states or not self.is_ready:
            return state | {"status": self.states.pop(0) if self.states else "in_progress"}
        done = fates.count(None)
        files = {"output_file_id": f"out-{number}" if done else None}
        files["error_file_id"] = f"err-{number}" if done < len(fates) else None
        status = "expired" if "expired" in fates else self.ends_as
        return state | files | {"status": status, "request_counts": {"total": len(fates), "completed": done}}

    def _openai_lines(self, number: int, *, is_error: bool) -> list[Result]:
        lines = []
        for each, fate in self._fates(number):
            line = {"id": "x", "custom_id": each["custom_id"], "response": None, "error": None}
            if fate == "400":
                body = {"error": {"message": "Unsupported parameter: seed", "type": "invalid_request_error"}}
                line["response"] = {"status_code": 400, "body": body}
            elif fate is not None:
                line["error"] = {"code": f"batch_{fate}", "message": "This request could not be executed in time."}
            else:
                line["response"] = {"status_code": 200, "body": self._message(_openai, each["body"])}
            if is_error == (fate is not None) and fate != "lost":
                lines.append(line)
        return lines[::-1]  # in any order

    def _anthropic_state(self, number: int) -> Result:
        size = len(self.batches[number - 1])
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        is_ended = self.is_ready and not self.states
        counts["succeeded" if is_ended else "processing"] = size
        ended = {"processing_status": "ended", "results_url": "https://elsewhere.invalid/results"}
        going = {"processing_status": self.states.pop(0) if self.states else "in_progress", "results_url": None}
        made = {"id": f"b-{number}", "created_at": self.begun_at.isoformat(), "request_counts": counts}
        return made | (ended if is_ended else going)

    def _anthropic_lines(self, number: int) -> list[Result]:
        lines = []
        for each, fate in self._fates(number):
            result: Result = {"type": fate}
            if fate is None:
                result = {"type": "succeeded", "message": self._message(_anthropic, each["body"])}
            elif fate == "errored":
                error = {"type": "invalid_request_error", "message": "max_tokens: too large"}
                result["error"] = {"type": "error", "error": error}
            if fate != "lost":
                lines.append({"custom_id": each["custom_id"], "result": result})
        return lines[::-1]


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
