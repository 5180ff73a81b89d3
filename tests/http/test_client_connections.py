"""Connections of the HTTP client: addresses, the probe, kept ones, proxies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from fault_server import (
    YES,
    Behaviour,
    Connection,
    FaultServer,
    closed_port,
    failure_of,
    get,
    gives,
    resets,
    resets_mid_body,
    status,
    truncates,
    with_client,
)

from pytest_rageval.errors import SettingsError
from pytest_rageval.http.address import endpoint, probe, proxy_of
from pytest_rageval.http.client import HttpReply, SlottedClient
from pytest_rageval.http.failures import HttpFailure
from pytest_rageval.io.masking import public_url

# ── addresses and the probe ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("base", "address"),
    [
        ("http://h:1", "http://h:1/api/v1/ask?debug=true"),
        ("http://h:1/", "http://h:1/api/v1/ask?debug=true"),
        ("https://h/rag/?tenant=a", "https://h/rag/api/v1/ask?tenant=a&debug=true"),
    ],
)
def test_a_path_is_added_below_the_base_url(base: str, address: str):
    assert endpoint(base, "/api/v1/ask", debug="true") == address


@pytest.mark.parametrize("url", ["ftp://host", "http://", "http:///path", "localhost:8080", "http://host:x"])
def test_what_is_no_http_url_is_a_settings_error(url: str):
    with pytest.raises(SettingsError):
        endpoint(url, "/x")


def test_the_probe_finds_a_server_that_listens_and_sends_it_nothing():
    with FaultServer(gives(YES)) as server:
        assert probe(server.url) is None
    assert server.requests == []


def test_the_probe_says_in_one_line_why_there_is_no_connection():
    url = f"http://ann:secret@127.0.0.1:{closed_port()}"
    reason = probe(url)
    assert reason == f"cannot connect to {public_url(url)}: Connection refused"


def test_the_probe_tries_tls_where_the_url_says_https():
    with FaultServer(gives(YES)) as server:
        reason = probe(server.url.replace("http:", "https:"), 1.0)
    assert reason is not None
    assert reason.startswith("cannot connect to https://127.0.0.1")


# ── kept connections ──────────────────────────────────────────────────────────────────────────────────────────


async def closes(connection: Connection) -> None:
    """A farewell in place of a reply."""
    connection.close()


def twice(url: str, pause: float = 0.0, method: str = "POST") -> HttpReply:
    """The second of two requests of one client."""

    async def use(client: SlottedClient) -> HttpReply:
        await client.request(method, url)
        await asyncio.sleep(pause)
        return await client.request(method, url)

    return with_client(use, slots=1)


@pytest.mark.parametrize("farewell", [closes, resets])
def test_a_kept_connection_that_the_server_closed_is_replaced_once_and_counted(farewell: Behaviour):
    with FaultServer(gives(YES), farewell, gives(YES)) as server:
        reply = twice(server.url)
    assert (reply.status, reply.attempts, len(server.requests)) == (200, 2, 3)


@pytest.mark.parametrize(
    "behaviours", [(closes,), (gives(YES), closes, closes), (gives(YES), resets_mid_body), (gives(YES), truncates)]
)
def test_what_ends_on_a_new_connection_or_amid_a_reply_is_an_error(behaviours: tuple[Behaviour, ...]):
    with FaultServer(*behaviours) as server, pytest.raises(HttpFailure) as caught:
        twice(server.url)
    assert caught.value.kind == "reset"
    assert len(server.requests) == len(behaviours)


def test_a_connection_that_was_idle_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pytest_rageval.http.carrier.KEPT_IDLE", 0.05)
    with FaultServer(gives(YES)) as server:
        twice(server.url, pause=0.3)
    assert server.connections == 2


# ── proxies ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def set_proxy(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return lambda url: monkeypatch.setenv("http_proxy", url)


def test_a_proxy_in_the_way_is_named_without_its_password(set_proxy: Callable[[str], None]):
    with FaultServer(status(503, b"no route; ann:hunter2hunter2")) as proxy:
        set_proxy(proxy.url.replace("//", "//ann:hunter2hunter2@"))
        failure = failure_of("http://rag.invalid/ask", retries=0)
    assert str(failure).startswith(f"GET http://rag.invalid/ask through the proxy {proxy.url}: status 503: no route")
    assert "hunter2" not in str(failure)
    assert proxy.requests[0].path == "http://rag.invalid/ask"


def test_a_proxy_that_is_not_there_is_named(set_proxy: Callable[[str], None]):
    port = closed_port()
    set_proxy(f"127.0.0.1:{port}")
    failure = failure_of("http://rag.invalid/", retries=0)
    assert failure.kind == "connect"
    assert f"through the proxy http://127.0.0.1:{port}: Connection refused" in str(failure)


def test_this_machine_is_asked_directly(set_proxy: Callable[[str], None]):
    set_proxy(f"http://127.0.0.1:{closed_port()}")
    with FaultServer(gives(YES)) as server:
        assert get(server.url).status == 200
        assert get(server.url.replace("127.0.0.1", "localhost")).status == 200
        assert probe(server.url) is None


def test_what_no_proxy_names_is_asked_directly(set_proxy: Callable[[str], None], monkeypatch: pytest.MonkeyPatch):
    set_proxy("http://proxy.example:3128")
    assert proxy_of("http://rag.example/") == "http://proxy.example:3128"
    monkeypatch.setenv("no_proxy", "rag.example")
    assert proxy_of("http://rag.example/") is None


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        (
            "ftp://ann:pw@proxy",
            "http_proxy: the proxy 'ftp://proxy' cannot be used: 'ftp' is not http, https",
        ),
        ("http://", "it names no host"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_said_before_anything_is_asked(
    set_proxy: Callable[[str], None], proxy: str, said: str
):
    set_proxy(proxy)
    with pytest.raises(SettingsError) as caught:
        endpoint("http://rag.example", "/ask")
    assert said in str(caught.value)
    assert str(caught.value).endswith("set another, or name rag.example in NO_PROXY")
    assert endpoint("http://localhost:8080", "/ask") == "http://localhost:8080/ask"
