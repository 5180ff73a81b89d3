"""Chat models as targets: which key goes where, and how a model and its server are spelt."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from chat_asking import KEY, QUESTION, completion, failure_of, ollama_reply, with_target
from fault_server import FaultServer, gives, status

from pytest_rageval.errors import SettingsError
from pytest_rageval.llm.model_spec import model_and_url
from pytest_rageval.targets.chat_target import ChatTarget


class Recorder:
    """An application that notes the headers it is asked with, in place of a host that no test may ask."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.asked.append((f"{scope['scheme']}://{headers['host']}{scope['path']}", headers.get("authorization")))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(completion()).encode()})


def authorisations(urls: Iterable[str | None], **options: Any) -> list[tuple[str, str | None]]:
    recorder = Recorder()
    for url in urls:
        with_target("openai", url, lambda target: target.ask(QUESTION), app=recorder, **options)
    return recorder.asked


def test_the_key_of_openai_goes_to_openai(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    expected = ("https://api.openai.com/v1/chat/completions", f"Bearer {KEY}")
    urls = [None, "https://api.openai.com", "https://API.openai.com:443/v1"]
    assert authorisations(urls) == [expected] * 3


def test_keys_are_looked_up_in_the_environment_of_the_connection():
    assert [key for _, key in authorisations([None], environment={"OPENAI_API_KEY": KEY})] == [f"Bearer {KEY}"]
    with pytest.raises(SettingsError, match="OPENAI_API_KEY is not set"):
        authorisations([None], environment={})


@pytest.mark.parametrize(
    "url",
    [
        "http://api.openai.com",
        "https://api.openai.com:8443",
        "https://api.openai.com.example.org",
        "https://api.openai.com@example.org",
        "https://example.org/api.openai.com",
        "https://example.org/?https://api.openai.com",
        "https://eu.api.openai.com",
        "http://localhost:8000/v1",
    ],
)
def test_the_key_of_openai_goes_to_no_other_address(monkeypatch: pytest.MonkeyPatch, url: str):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    ((_, authorisation),) = authorisations([url])
    assert authorisation is None or KEY not in authorisation


def test_the_key_of_openai_never_goes_to_ollama(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FaultServer(gives(ollama_reply())) as server:
        with_target("ollama", server.url, lambda target: target.ask(QUESTION))
    assert "authorization" not in server.requests[0].headers


def test_the_token_of_the_target_goes_to_any_and_a_header_wins(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("RAGEVAL_TARGET_TOKEN", "t-0123456789")
    assert [bearer for _, bearer in authorisations(["http://localhost:8000", None])] == ["Bearer t-0123456789"] * 2
    headers = {"Authorization": "Basic abc"}
    assert [bearer for _, bearer in authorisations([None], headers=headers)] == ["Basic abc"]


def test_openai_without_a_key_is_a_settings_error():
    with pytest.raises(SettingsError, match="the environment variable OPENAI_API_KEY is not set"):
        ChatTarget("openai", "gpt-4o")


def test_a_refused_key_is_not_repeated(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAGEVAL_TARGET_TOKEN", KEY)
    failure = failure_of("openai", status(401, f'{{"error": "Incorrect API key provided: {KEY}"}}'.encode()))
    assert failure.kind == "http_4xx"
    assert "status 401" in str(failure)
    assert KEY not in str(failure)
    assert "Incorrect API key provided: ***" in str(failure)


@pytest.mark.parametrize(
    ("spelling", "model", "url"),
    [
        ("gpt-4o", "gpt-4o", None),
        ("llama3.1:8b@http://localhost:11434", "llama3.1:8b", "http://localhost:11434"),
        ("@cf/meta/llama@https://ann:pw@host/v1", "@cf/meta/llama", "https://ann:pw@host/v1"),
        ("org/model@2024@http://h", "org/model@2024", "http://h"),
    ],
)
def test_model_and_url_are_told_apart(spelling: str, model: str, url: str | None):
    assert model_and_url("openai", spelling) == (model, url)


@pytest.mark.parametrize("spelling", ["", "gpt-4o@localhost:8000", "@http://h", "http://h", "m\nx@http://h"])
def test_what_is_neither_is_said(spelling: str):
    with pytest.raises(SettingsError, match=r"openai:MODEL or openai:MODEL@URL"):
        model_and_url("openai", spelling)


def test_the_name_holds_no_credentials():
    assert ChatTarget("openai", "m", "http://ann:hunter2@h:1/x?key=abc").name == "openai:m@http://h:1/x?key=***"
