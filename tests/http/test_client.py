"""The HTTP client: bodies, deadlines, retries, secrets, connections that are kept, probes and proxies."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from fault_server import (
    YES,
    Behaviour,
    Connection,
    FaultServer,
    closed_port,
    drips,
    failure_of,
    get,
    gives,
    hangs,
    resets,
    resets_mid_body,
    sends_chunks_for_ever,
    sends_raw,
    status,
    truncates,
    with_client,
)

from pytest_rageval.errors import SettingsError
from pytest_rageval.http.address import endpoint, probe, proxy_of
from pytest_rageval.http.client import HttpReply, SlottedClient
from pytest_rageval.http.failures import HttpFailure, longest_wait
from pytest_rageval.io.masking import public_url

pytestmark = pytest.mark.reliability("API faults", "status, deadlines, retries, redirects and proxies at the client")


def test_a_gzip_body_in_several_members_is_read_to_its_end():
    body = gzip.compress(b"one ") + gzip.compress(b"two")
    with FaultServer(status(200, body, content_encoding="gzip")) as server:
        assert get(server.url).body == b"one two"


def test_connections_are_reused_and_never_more_than_slots():
    async def use(client: SlottedClient) -> None:
        for _ in range(3):
            await asyncio.gather(*(client.request("GET", server.url) for _ in range(12)))

    with FaultServer(gives(YES)) as server:
        with_client(use, slots=3)
    assert len(server.requests) == 36
    assert server.connections <= 3


@pytest.mark.parametrize("code", [502, 503, 504])
def test_a_passing_trouble_is_retried_and_then_reported(code: int):
    with FaultServer(status(code, b"busy")) as server:
        failure = failure_of(server.url, retries=2)
    assert failure.kind == "http_5xx"
    assert str(failure) == f"GET {server.url}: status {code}: busy (tried 3 times)"
    assert len(server.requests) == 3


def test_a_refused_connection_says_so_after_its_retries():
    url = f"http://127.0.0.1:{closed_port()}"
    failure = failure_of(url)
    assert failure.kind == "connect"
    assert str(failure) == f"GET {url}: Connection refused (tried 3 times)"


SWITCHES = sends_raw(b"HTTP/1.1 101 Switching\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n")


@pytest.mark.parametrize("behaviour", [hangs, drips, SWITCHES])
def test_the_deadline_holds_for_the_attempt_as_a_whole(behaviour: Behaviour):
    with FaultServer(behaviour) as server:
        failure = failure_of(server.url, timeout=0.4, headers={"upgrade": "h2c", "connection": "upgrade"})
    assert failure.kind == "timeout"
    assert str(failure) == f"GET {server.url}: no complete reply within 0.4 s (timeout)"
    assert len(server.requests) <= 1


def test_a_failure_leaves_the_client_usable():
    async def use(client: SlottedClient) -> HttpReply:
        for _ in range(3):
            with pytest.raises(HttpFailure):
                await client.request("GET", server.url)
        client.timeout = 20.0
        return await client.request("GET", server.url)

    with FaultServer(resets_mid_body, drips, sends_chunks_for_ever, gives(YES)) as server:
        assert json.loads(with_client(use, slots=1, timeout=0.5, max_bytes=2**20).body) == YES


def test_a_redirect_is_named_and_not_followed():
    with FaultServer(status(302, location="http://user:hunter22hunter@elsewhere/x?token=abc")) as server:
        failure = failure_of(server.url)
    assert "redirect to http://elsewhere/x?token=***; not followed" in str(failure)


def test_a_refusal_is_quoted_in_one_short_escaped_line():
    with FaultServer(status(500, "Zeile\r\n\x1b[31mrot\u202e ".encode() + b"x" * 5000)) as server:
        message = str(failure_of(server.url))
    assert "status 500: Zeile \\x1b[31mrot\\u202e xxx" in message
    assert len(message) < 300


def test_nothing_is_sent_before_the_date_the_server_asks_for():
    date = (datetime.now(UTC) + timedelta(seconds=1)).replace(microsecond=0)
    with FaultServer(status(503, retry_after=format_datetime(date, usegmt=True)), gives(YES)) as server:
        get(server.url)
    assert server.requests[1].at >= date.timestamp()


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("1.5", 1.5), ("2, 1", 2.0), ("1, 3.5", 3.5), ("Wed, 21 Oct 2015 07:28:00 GMT, 2", 2.0),
        *((text, None) for text in (
            "soon", "-5", "1e3", "", "٣", "Wed, 99 Foo 2025 99:99:99 GMT", "nan", "1.2.3, -1")),
    ],
)  # fmt: skip
def test_the_longest_wait_of_a_header_is_read_and_nonsense_ignored(header: str, seconds: float | None):
    assert longest_wait(header) == seconds


@pytest.mark.parametrize(("code", "wait"), [(429, "3600"), (503, "9" * 400), (503, "Fri, 31 Dec 2100 23:59:59 GMT")])
def test_a_wait_longer_than_patience_lasts_ends_it_at_once(code: int, wait: str):
    with FaultServer(status(code, retry_after=wait)) as server:
        failure = failure_of(server.url)
    assert failure.kind == "rate_limited"
    assert "its Retry-After asks to wait" in str(failure)
    assert "more than what is left of rate_limit_patience (300 s)" in str(failure)
    assert len(server.requests) == 1


def test_a_failure_that_asks_for_a_longer_wait_than_the_time_left_ends_at_once():
    with FaultServer(status(502, retry_after="3600")) as server:
        failure = failure_of(server.url)
    assert failure.kind == "rate_limited"
    assert "asks to wait 3600 s, more than the 60 s left for this request" in str(failure)
    assert len(server.requests) == 1


def test_retries_leave_no_line_in_the_log(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING), FaultServer(status(503), gives(YES)) as server:
        get(server.url)
    assert caplog.records == []


def test_user_and_password_of_a_url_go_into_a_header_and_nowhere_else(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG), FaultServer(status(500, b"you sent hunter2hunter2")) as server:
        url = server.url.replace("http://", "http://ann:hunter2hunter2@") + "/x?api_key=0123456789abc&page=2"
        failure = failure_of(url)
    assert server.requests[0].headers["authorization"] == "Basic YW5uOmh1bnRlcjJodW50ZXIy"
    assert server.requests[0].path == "/x?api_key=0123456789abc&page=2"
    assert str(failure) == f"GET {server.url}/x?api_key=***&page=2: status 500: you sent ***"
    for secret in ("hunter2", "0123456789abc", "YW5u"):
        assert secret not in caplog.text


def test_credentials_that_a_server_echoes_are_masked():
    token = "sk-0123456789/abc"
    echo = json.dumps({"answer": f"your key is {token}"}).replace("/", "\\/").encode()
    with FaultServer(status(200, echo), status(401, b"wrong key: Bearer " + token.encode())) as server:
        headers = {"Authorization": f"Bearer {token}"}
        assert json.loads(get(server.url, headers=headers).body) == {"answer": "your key is ***"}
        assert str(failure_of(server.url, headers=headers)).endswith("status 401: wrong key: ***")


def test_a_header_that_cannot_be_sent_is_named_without_its_value():
    with pytest.raises(SettingsError, match=r"^header X-Key: its value holds characters") as caught:
        SlottedClient(headers={"X-Key": "geheim\nX-Evil: 1"})
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://localhost:8080", "http://localhost:8080"),
        ("https://a:b@host/p?x=1#frag", "https://host/p?x=1"),
        ("https://a:b@host:bad?token=1", "https://host:bad?token=***"),
        ("http://[bad/?password=1", "http://[bad/"),
        ("http://u:p@ss@host/", "http://host/"),
    ],
)
def test_a_url_is_shown_without_credentials(url: str, shown: str):
    assert public_url(url) == shown


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
    monkeypatch.setattr("pytest_rageval.http.connection.KEPT_IDLE", 0.05)
    with FaultServer(gives(YES)) as server:
        twice(server.url, pause=0.3)
    assert server.connections == 2


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
    assert proxy.requests[0].headers["proxy-authorization"] == "Basic YW5uOmh1bnRlcjJodW50ZXIy"


def test_a_proxy_that_opens_no_tunnel_is_said(set_proxy: Callable[[str], None], monkeypatch: pytest.MonkeyPatch):
    with FaultServer(status(407, b"who are you?")) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        failure = failure_of("https://rag.invalid/ask", retries=0)
    assert (failure.kind, proxy.requests[0].method) == ("connect", "CONNECT")
    assert str(failure).endswith(f"through the proxy {proxy.url}: the proxy refuses a tunnel with status 407")


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
            "http_proxy: the proxy 'ftp://proxy' cannot be used: 'ftp' is not http or https",
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
