"""Judging in batches: what is submitted, what is fetched, and that nothing is asked or scored twice."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judge_server import JudgeServer, _anthropic, _fitting, _openai
from project import RUN, SOME, StoredProject, a_missed_case, command, problems

from pytest_rageval.errors import SettingsError

CASES = [*SOME[:3], a_missed_case("missed")]
Result = dict[str, Any]


class BatchServer(JudgeServer):
    """The batch interfaces of OpenAI and Anthropic, as their references describe them.

    is_ready  the batches have ended
    fate      what becomes of the request of a number: None succeeds, else a code such as `expired`
    """

    def __init__(self, *replies: object, fate: Callable[[int], str | None] = lambda _: None, **options: Any) -> None:
        super().__init__(*replies, **options)
        self.is_ready, self.fate = True, fate
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
        elif path == "/v1/batches":
            asked = request.json
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
        state = {"id": f"b-{number}", "status": "in_progress", "request_counts": {"total": len(fates), "completed": 0}}
        if not self.is_ready:
            return state
        done = fates.count(None)
        files = {"output_file_id": f"out-{number}" if done else None}
        files["error_file_id"] = f"err-{number}" if done < len(fates) else None
        status = "expired" if "expired" in fates else "completed"
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
        counts["succeeded" if self.is_ready else "processing"] = size
        ended = {"processing_status": "ended", "results_url": "https://elsewhere.invalid/results"}
        going = {"processing_status": "in_progress", "results_url": None}
        return {"id": f"b-{number}", "request_counts": counts, **(ended if self.is_ready else going)}

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


def submit(server: JudgeServer, provider: str = "openai", *more: str) -> Any:
    return command("judge", RUN, "--judge", f"{provider}:judge-1@{server.url}/v1", "--batch", *more)


def collect() -> Any:
    return command("judge", RUN, "--collect")


def said_of(result: Any) -> str:
    return "; ".join(problems(result))


# ── the usual way ─────────────────────────────────────────────────────────────────────────────────────────────


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


# ── in several rounds ─────────────────────────────────────────────────────────────────────────────────────────


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


# ── what goes wrong ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("fate", "why"), [("expired", ""), ("lost", ""), ("errored", "max_tokens: too large")])
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
