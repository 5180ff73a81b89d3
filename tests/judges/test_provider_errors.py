"""What comes of each provider's errors, by their literal bodies at a real server: left out, sent again, or told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fault_server import Connection
from judge_server import JudgeServer
from model_judges import GOOD, a_judge, failure_of, judged

FOLDER = Path(__file__).parents[1] / "data" / "provider_errors"
ERRORS = {
    f"{file.stem}: {error['name']}": {"api": "anthropic" if file.stem == "anthropic" else "openai", **error}
    for file in sorted(FOLDER.glob("*.json"))
    for error in json.loads(file.read_text(encoding="utf-8"))
}
SENT_AS = {"temperature": ("temperature",), "seed": ("seed",), "schema": ("response_format", "tools")}


class Provider(JudgeServer):
    """Sends an error as long as the request holds what it is about."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(GOOD)
        self.error = error

    async def _chat(self, connection: Connection, shape: Any) -> None:
        asked = connection.request.json
        unwanted = [field for name in self.error.get("drops", ()) for field in SENT_AS[name]]
        unwanted += [self.error["renames"]] if "renames" in self.error else []
        has_role = any(message["role"] == "system" for message in asked["messages"])
        is_refused = any(field in asked for field in unwanted) or (has_role and self.error.get("drops_role"))
        if is_refused or not (unwanted or "drops_role" in self.error):
            await connection.reply(self.error["status"], json.dumps(self.error["body"]).encode())
        else:
            await self._next(connection, shape)


@pytest.mark.parametrize("name", [name for name, error in ERRORS.items() if "kind" not in error])
def test_what_a_provider_refuses_is_left_out_and_the_request_repeated(name: str):
    error = ERRORS[name]
    with Provider(error) as server:
        (said,) = judged(a_judge(server, error["api"]))
    assert said.scores == {"groundedness": 4.0}
    drops = error.get("drops", [])
    assert said.extra.get("left_out", []) == drops
    # A schema is asked for as any JSON object before it is left to the prompt; Anthropic has no such form.
    assert len(server.chats) == 1 + max(1, len(drops)) + ("schema" in drops and error["api"] == "openai")
    last = server.chats[-1].json
    assert ("max_completion_tokens" in last) == ("renames" in error)


@pytest.mark.parametrize("name", [name for name, error in ERRORS.items() if "kind" in error])
def test_what_cannot_be_left_out_is_told_in_the_providers_words(name: str):
    error = ERRORS[name]
    with Provider(error) as server:
        failure = failure_of(a_judge(server, error["api"], retries=1))
    assert failure.kind == error["kind"]
    if "means" in error and error["status"] == 200:
        assert f"status 200 with an error of status {error['means']}" in str(failure)
    assert len(server.chats) == (2 if error.get("retried") else 1)


def test_every_provider_has_its_file():
    assert {file.stem for file in FOLDER.glob("*.json")} == {
        "anthropic", "azure", "bedrock", "gemini", "mistral", "ollama", "openai", "openrouter", "vllm",
    }  # fmt: skip
