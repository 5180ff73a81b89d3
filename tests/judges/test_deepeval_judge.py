"""DeepEval's metrics as a judge, with the real package where it is installed, against a real server."""

from __future__ import annotations

import asyncio
import os
from importlib.util import find_spec
from typing import Any

import pytest
from judge_server import JudgeServer
from processes import python
from pydantic import BaseModel

from pytest_rageval.errors import JudgeError, SettingsError
from pytest_rageval.judges import judge_from_spec
from pytest_rageval.judges.deepeval_judge import ask, strict
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.llm.chat_model import ChatModel
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.openai import OpenAiWire
from pytest_rageval.model import Judgement, JudgeRequest

is_installed = find_spec("deepeval") is not None
needs_deepeval = pytest.mark.skipif(not is_installed, reason="DeepEval is not installed")


def a_request(rubric: str, **variables: Any) -> JudgeRequest:
    given = {
        "question": "When does water boil?",
        "answer": "At 100 degrees. It is blue.",
        "contexts": [{"chunk_id": "c1", "text": "Water boils at 100 degrees."}],
    }
    return JudgeRequest(rubric, load_rubric(rubric).prompt_version, given | variables)


def judged(spec: str, request: JudgeRequest, **options: Any) -> Judgement:
    judge = judge_from_spec(spec, options=EndpointOptions(**options))
    assert judge is not None

    async def one() -> Judgement:
        try:
            return await judge.judge(request)
        finally:
            await judge.aclose()

    return asyncio.run(one())


FAITHFUL: list[Any] = [
    {"truths": ["Water boils at 100 degrees."]},
    {"claims": ["It boils at 100 degrees.", "It is blue."]},
    {"verdicts": [{"verdict": "yes", "reason": None}, {"verdict": "no", "reason": "nothing says so"}]},
    {"reason": "half of it is borne out"},
]


class Faithful(JudgeServer):
    """Replies to each of Faithfulness' questions, told apart by their schemas: two of them come at the same time."""

    async def _route(self, connection: Any) -> None:
        schema = connection.request.json["response_format"]["json_schema"]["schema"]
        self.replies = tuple(reply for reply in FAITHFUL if set(reply) == set(schema["properties"]))
        await super()._route(connection)


@needs_deepeval
@pytest.mark.parametrize(("rubric", "score"), [("groundedness", 2.5), ("faithfulness", 0.5)])
def test_faithfulness_is_the_share_of_claims_that_hold(rubric: str, score: float):
    with Faithful() as server:
        said = judged(f"deepeval:faithfulness@openai:judge@{server.url}", a_request(rubric))
    assert said.scores == {rubric: score}
    assert (said.supported_claims, said.unsupported_claims) == (("It boils at 100 degrees.",), ("It is blue.",))
    assert said.reasoning == "half of it is borne out"
    assert (said.tokens_in, said.tokens_out) == (400, 80)
    assert said.model.startswith("deepeval/")
    assert said.model.endswith("/faithfulness:judge")


@needs_deepeval
@pytest.mark.parametrize("rubric", ["correctness", "groundedness", "relevance"])
def test_g_eval_scores_on_the_scale_of_the_rubric(rubric: str):
    with JudgeServer({"reason": "nearly", "score": 8}) as server:
        said = judged("deepeval:g-eval@judge", a_request(rubric, references=["100 degrees"]), base_url=server.url)
    top = load_rubric(rubric).scale[1]
    assert said.scores == {rubric: pytest.approx(0.8 * top)}
    assert said.reasoning == "nearly"
    assert len(server.chats) == 1


@needs_deepeval
def test_a_score_outside_of_the_scale_is_an_error():
    with (
        JudgeServer({"reason": "", "score": 11}) as server,
        pytest.raises(JudgeError, match=r"score is 1\.1") as caught,
    ):
        judged("deepeval:g-eval@judge", a_request("relevance"), base_url=server.url)
    assert caught.value.kind == "invalid_reply"


@needs_deepeval
def test_it_calls_nobody_reads_no_dotenv_and_writes_nothing(tmp_path):
    (tmp_path / ".env").write_text("OPENAI_API_KEY=from-a-dotenv-file\n")
    script = """
import asyncio, os, socket, sys
connect = socket.socket.connect
def only_loopback(self, address):
    assert address[0] == "127.0.0.1", address
    return connect(self, address)
socket.socket.connect = only_loopback
from pytest_rageval.judges import judge_from_spec
from pytest_rageval.model import JudgeRequest
judge = judge_from_spec("deepeval:g-eval@openai:judge@" + sys.argv[1])
print(asyncio.run(judge.judge(JudgeRequest("relevance", "1", {"question": "q", "answer": "a"}))).scores)
print(os.environ.get("OPENAI_API_KEY"))
"""
    environment = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    with JudgeServer({"reason": "fine", "score": 10}) as server:
        ran = python("-c", script, server.url, cwd=tmp_path, env=environment)
    assert (ran.stdout, ran.stderr) == ("{'relevance': 1.0}\nNone\n", "")
    assert [path.name for path in tmp_path.iterdir()] == [".env"]


@pytest.mark.skipif(is_installed, reason="DeepEval is installed")
def test_without_the_extra_it_says_what_to_install():
    with pytest.raises(SettingsError, match=r"pip install -U 'pytest-rageval\[deepeval\]'"):
        judge_from_spec("deepeval:faithfulness@judge", options=EndpointOptions(base_url="http://localhost:1"))


class Verdict(BaseModel):
    verdict: str
    reason: str | None = None


class Verdicts(BaseModel):
    verdicts: list[Verdict]


def test_a_schema_is_made_strict_all_the_way_down():
    made = strict(Verdicts.model_json_schema())
    assert made["additionalProperties"] is False
    assert made["$defs"]["Verdict"]["required"] == ["verdict", "reason"]
    assert "required" in Verdicts.model_json_schema()["$defs"]["Verdict"], "the schema that came is left as it was"


def asked_for(*replies: object, schema: Any = Verdict) -> tuple[Any, JudgeServer]:
    with JudgeServer(*replies) as server:

        async def one() -> Any:
            chat = ChatModel(OpenAiWire(server.url), "judge", EndpointOptions())
            try:
                return await ask(chat, [], "Is it so?", schema)
            finally:
                await chat.aclose()

        return asyncio.run(one()), server


def test_a_reply_is_read_by_its_schema_in_a_fence_or_not():
    said, _ = asked_for('```json\n{"verdict": "yes", "reason": null}\n```')
    assert said == Verdict(verdict="yes")
    assert asked_for("plain words", schema=None)[0] == "plain words"


def test_a_reply_that_does_not_fit_is_asked_for_once_more():
    said, server = asked_for({"verdict": 7}, {"verdict": "no", "reason": "r"})
    assert said == Verdict(verdict="no", reason="r")
    assert "verdict: Input should be a valid string" in server.chats[1].json["messages"][2]["content"]
