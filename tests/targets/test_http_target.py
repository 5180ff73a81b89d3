from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import httpx
import pytest
from fault_server import Behaviour, FaultServer, closed_port, gives, hangs, resets, status

from pytest_rageval.errors import TargetError
from pytest_rageval.model import AskRequest, Turn
from pytest_rageval.targets.http_target import ClientTarget, HttpTarget
from pytest_rageval.targets.target import Connection

T = TypeVar("T")
YES = {"answer": "yes", "debug": {"retrieved_chunks": [{"chunk_id": "c1", "rank": 1}]}}
QUESTION = AskRequest("What?", 5)


def with_target(url: str, use: Callable[[HttpTarget], Coroutine[Any, Any, T]], **options: Any) -> T:
    async def run() -> T:
        target = HttpTarget(url, Connection(**{"backoff": 0.01, "timeout": 20.0} | options))
        try:
            return await use(target)
        finally:
            await target.aclose()

    return asyncio.run(run())


def failure_of(behaviour: Behaviour, **options: Any) -> TargetError:
    with FaultServer(behaviour) as server, pytest.raises(TargetError) as caught:
        with_target(server.url, lambda target: target.ask(QUESTION), **options)
    assert str(caught.value).startswith(f"POST {server.url}/api/v1/ask?debug=true: ")
    return caught.value


def test_only_what_the_case_or_the_user_set_is_sent():
    with FaultServer(gives(YES)) as server:
        answer = with_target(server.url + "/", lambda target: target.ask(AskRequest("시장?", 7, case_key="a::b")))
    assert answer.text == "yes"
    (received,) = server.requests
    assert (received.method, received.path) == ("POST", "/api/v1/ask?debug=true")
    assert received.json == {"question": "시장?", "k": 7}
    assert "authorization" not in received.headers


def test_scope_history_and_parameters_are_sent_where_they_are_set():
    request = AskRequest(
        "And then?",
        3,
        history=(Turn("user", "First?"), Turn("assistant", "This.")),
        vaults=("lab",),
        folders=("data", "display"),
        contexts=("never sent",),
        params={"folder_mode": "off", "min_score": 0.3, "k": 99},
    )
    with FaultServer(gives(YES)) as server:
        with_target(server.url, lambda target: target.ask(request))
    assert server.requests[0].json == {
        "question": "And then?",
        "k": 3,
        "history": [{"role": "user", "text": "First?"}, {"role": "assistant", "text": "This."}],
        "vaults": ["lab"],
        "folders": ["data", "display"],
        "folder_mode": "off",
        "min_score": 0.3,
    }


def test_the_token_of_the_environment_is_sent_as_a_bearer_token(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAGEVAL_TARGET_TOKEN", "sk-0123456789")
    with FaultServer(gives(YES), status(401, b"bad token sk-0123456789")) as server:
        with_target(server.url, lambda target: target.ask(QUESTION), headers={"X-Tenant": "lab"})
        with pytest.raises(TargetError, match=r"bad token \*\*\*$"):
            with_target(server.url, lambda target: target.ask(QUESTION))
    assert server.requests[0].headers["authorization"] == "Bearer sk-0123456789"
    assert server.requests[0].headers["x-tenant"] == "lab"


def test_the_name_of_a_target_holds_no_credentials():
    assert HttpTarget("http://ann:hunter2hunter2@localhost:1/x").name == "http://localhost:1/x"


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (gives({"answer": "x"}, content_type="text/html"), None),
        (status(200, b'\xef\xbb\xbf{"answer": "x"}'), None),
        (gives({"answer": ""}), None),
        (status(200, b""), "empty"),
        (status(200, b"<html>hello</html>"), "invalid_json"),
        (status(200, b'{"answer": "\xe9"}', content_type="application/json; charset=latin-1"), "invalid_json"),
        (gives({"answer": 7}), "invalid_response"),
        (gives({"reply": "x"}), "no_answer"),
        (resets, "reset"),
        (status(500), "http_5xx"),
    ],
)
def test_what_comes_is_an_answer_or_a_failure_of_a_kind_asked_for_once(behaviour: Behaviour, kind: str | None):
    with FaultServer(behaviour) as server:
        if kind is None:
            assert with_target(server.url, lambda target: target.ask(QUESTION)).text is not None
        else:
            with pytest.raises(TargetError) as caught:
                with_target(server.url, lambda target: target.ask(QUESTION))
            assert caught.value.kind == kind
            assert str(caught.value).isprintable()
    assert len(server.requests) == 1


@pytest.mark.parametrize(("code", "is_api"), [(404, True), (405, True), (422, True), (403, False)])
def test_a_server_that_knows_nothing_of_our_path_or_body_may_have_an_api_of_its_own(code: int, is_api: bool):
    assert ("described by target.mapping" in str(failure_of(status(code)))) is is_api


def test_index_statistics_are_there_or_not():
    with FaultServer(gives({"docs_processed": 60}), status(404), status(500)) as server:
        assert with_target(server.url, HttpTarget.index_stats) == {"docs_processed": 60}
        assert with_target(server.url, HttpTarget.index_stats) is None
        with pytest.raises(TargetError):
            with_target(server.url, HttpTarget.index_stats)
    assert (server.requests[0].method, server.requests[0].path) == ("GET", "/api/v1/index/stats")


def ask_through(client: Any, **options: Any) -> Any:
    return asyncio.run(ClientTarget(client, **options).ask(QUESTION))


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (status(429), "rate_limited"),
        (status(404, b"\x1b[31m"), "http_4xx"),
        (status(503), "http_5xx"),
        (status(302, location="/"), "invalid_response"),
        (status(200, b"{"), "invalid_json"),
        (resets, "reset"),
        (hangs, "timeout"),
    ],
)
def test_failures_through_a_client_of_the_users_have_kinds_too(behaviour: Behaviour, kind: str):
    with FaultServer(behaviour) as server, httpx.Client(base_url=server.url) as client:
        with pytest.raises(TargetError) as caught:
            ask_through(client, timeout=0.5 if kind == "timeout" else 20.0)
        assert caught.value.kind == kind
        assert str(caught.value).isprintable()
    assert len(server.requests) <= 1


def test_a_refused_connection_of_a_users_client_is_a_failed_connection():
    with httpx.Client(base_url=f"http://127.0.0.1:{closed_port()}") as client:
        with pytest.raises(TargetError) as caught:
            ask_through(client)
        assert caught.value.kind == "connect"
