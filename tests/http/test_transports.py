"""What carries requests: which library it is, and that a user meets the same failures whichever it is."""

from __future__ import annotations

import asyncio
import gc
import logging
import ssl
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from client_calls import YES, failure_of, get, with_client
from fault_server import (
    Behaviour,
    Connection,
    FaultServer,
    closed_port,
    gives,
    gzip_bomb,
    gzipped,
    hangs,
    resets,
    resets_mid_body,
    sends_chunks_for_ever,
    sends_raw,
    status,
    truncates,
)

from pytest_rageval.errors import SettingsError
from pytest_rageval.http.client import SlottedClient
from pytest_rageval.http.failures import HttpFailure
from pytest_rageval.http.transport import transport_name

pytest.importorskip("aiohttp")
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
LAST = b"1\r\nx\r\n0\r\n"
"""The end of a body in chunks, up to its trailers."""
FIELDS = b"x: y\r\n" * 1000


@pytest.fixture
def each_transport(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Iterator[str]]:
    """Goes through both, one after the other, for comparing what they do."""

    def names() -> Iterator[str]:
        for name in ("httpx", "aiohttp"):
            monkeypatch.setenv("RAGEVAL_HTTP", name)
            yield name

    return names


EachTransport = Callable[[], Iterator[str]]


async def sends_a_header_without_end(connection: Connection) -> None:
    await connection.send(OK + b"x: ")
    while True:
        await connection.send(b"y" * 65536)


async def sends_headers_without_end(connection: Connection) -> None:
    await connection.send(OK)
    while True:
        await connection.send(FIELDS)


async def sends_trailers_without_end(connection: Connection) -> None:
    await connection.send(CHUNKED + LAST)
    while True:
        await connection.send(FIELDS)


def sends_in_two(head: bytes, rest: bytes) -> Behaviour:
    """The rest, again and again, when the head was read."""

    async def behave(connection: Connection) -> None:
        await connection.send(head)
        await asyncio.sleep(0.1)
        while True:
            await connection.send(rest)

    return behave


async def sends_interim_replies_without_end(connection: Connection) -> None:
    while True:
        await connection.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 10)
        await asyncio.sleep(0.01)


ODD_REPLIES: dict[str, tuple[Behaviour, str]] = {
    "another protocol": (sends_raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), "the reply is not HTTP: SSH-2.0-OpenSSH_9.6"),
    "HTML alone": (sends_raw(b"<html>it's \"so\"</html>\r\n\r\n"), "the reply is not HTTP: <html>it's \"so\"</html>"),
    "bytes": (sends_raw(b"\x16\x03\x01\x00hi\r\n\r\n"), "the reply is not HTTP: \\x16\\x03\\x01\\x00hi"),
    "no number as status": (sends_raw(b"HTTP/1.1 abc OK\r\n\r\n"), "the reply is not HTTP: HTTP/1.1 abc OK"),
    "a status of four digits": (sends_raw(b"HTTP/1.1 2000 OK\r\n\r\n"), "the reply is not HTTP: HTTP/1.1 2000 OK"),
    "HTTP/2 in letters": (sends_raw(b"HTTP/2 200\r\n\r\n"), "the reply is not HTTP: HTTP/2 200"),
    "a header without a colon": (sends_raw(OK + b"garbage\r\n\r\n"), "no valid HTTP after its first line"),
    "a header with a null": (sends_raw(OK + b"a: b\0c\r\n\r\n"), "no valid HTTP after its first line"),
    "a length of letters": (sends_raw(OK + b"content-length: x\r\n\r\n"), "no valid HTTP after its first line"),
    "a negative length": (sends_raw(OK + b"content-length: -5\r\n\r\n"), "no valid HTTP after its first line"),
    "two lengths": (sends_raw(OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\nab"), "no valid HTTP after its"),
    "a chunk without a size": (
        sends_raw(CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n"), "no valid HTTP after its",
    ),
    "packed for the transfer": (sends_raw(OK + b"transfer-encoding: gzip\r\n\r\nabc"), "no valid HTTP after its"),
    "another protocol offered": (
        sends_raw(b"HTTP/1.1 101 Hm\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nx"), "no valid HTTP after its",
    ),
    "nothing": (sends_raw(b""), "the server closed the connection without a reply"),
    "half a status line": (sends_raw(b"HTTP/1."), "the server closed the connection without a reply"),
    "half the headers": (sends_raw(OK + b"content-"), "the server closed the connection without a reply"),
    "half a body": (truncates, "the server closed the connection before the reply was complete"),
    "half a chunk": (
        sends_raw(CHUNKED + b"5\r\nab"), "closed the connection before the reply was",
    ),
    "a reset": (resets, "Connection reset by peer"),
    "a reset amid the body": (resets_mid_body, "Connection reset by peer"),
    "3,000 headers": (
        sends_raw(OK + b"".join(b"x%d: 1\r\n" % n for n in range(3000)) + b"\r\n"), "more than 200 header fields",
    ),
    "201 headers": (sends_raw(OK + b"x: 1\r\n" * 201 + b"\r\n"), "more than 200 header fields"),
    "70 kB of headers": (sends_raw(OK + (b"x: " + b"y" * 1000 + b"\r\n") * 70 + b"\r\n"), "or 65,536 bytes of them"),
    "a header of 70 kB": (sends_raw(OK + b"x: " + b"y" * 70_000 + b"\r\n\r\n"), "or 65,536 bytes of them"),
    "a header without end": (sends_a_header_without_end, "or 65,536 bytes of them"),
    "headers without end": (sends_headers_without_end, "more than 200 header fields"),
    "trailers without end": (sends_trailers_without_end, "more than 200 header fields"),
    "trailers without end after the body": (sends_in_two(CHUNKED + LAST, FIELDS), "more than 200 header fields"),
    "trailers without end after the head": (sends_in_two(CHUNKED, LAST + FIELDS), "more than 200 header fields"),
    "a trailer without end": (sends_in_two(CHUNKED + LAST + b"x: ", b"y" * 65536), "or 65,536 bytes of them"),
    "a body without a size": (sends_in_two(CHUNKED + b"1\r\nx\r\n", b"zz\r\n"), "no valid HTTP after its first line"),
    "a chunk longer than its size": (sends_in_two(CHUNKED, b"1\r\nxyz\r\n"), "no valid HTTP after its first line"),
    "interim replies without end": (sends_interim_replies_without_end, "no complete reply within 2 s (timeout)"),
    "no reply": (hangs, "no complete reply within 2 s (timeout)"),
    "a body without end": (sends_chunks_for_ever, "the reply is larger than 1,048,576 bytes"),
    "a bomb": (gzip_bomb(64), "the reply is larger than 1,048,576 bytes"),
    "a bomb in a bomb": (gzip_bomb(64, layers=2), "content-encoding 'gzip, gzip' was not asked for"),
    "another compression": (status(200, b"x", content_encoding="br"), "content-encoding 'br' was not asked for"),
    "a redirect to itself": (status(302, location="/"), "status 302, redirect to /; not followed"),
    "a refusal": (status(418, b"\x1b[31mtea"), "status 418: \\x1b[31mtea"),
    "a status beyond all": (status(999), "status 999"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_REPLIES)
def test_a_failure_is_told_in_the_same_words_and_sent_once(name: str, each_transport: EachTransport):
    behaviour, reason = ODD_REPLIES[name]
    is_slow = "timeout" in reason
    failures = []
    for _ in each_transport():
        with FaultServer(behaviour) as server:
            failure = failure_of(server.url, retries=0, max_bytes=2**20, timeout=2.0 if is_slow else 20.0)
        assert len(server.requests) == 1
        failures.append((failure.kind, str(failure).replace(server.url, ""), failure.status, failure.body))
    assert failures[0] == failures[1]
    assert reason in failures[0][1]


SOUND_REPLIES = {
    "JSON": gives(YES, x_build="7"),
    "compressed": gzipped(b"hello " * 1000),
    "without a reason": sends_raw(b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nab"),
    "of HTTP/1.0": sends_raw(b"HTTP/1.0 200 OK\r\n\r\nbody"),
    "without a length": sends_raw(OK + b"\r\nbody until its end"),
    "with line feeds alone": sends_raw(b"HTTP/1.1 200 OK\ncontent-length: 2\n\nab"),
    "with a line too many": sends_raw(OK + b"content-length: 2\r\n\r\nab\r\n"),
    "after interim ones": sends_raw(
        b"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Hi\r\n\r\n" + OK + b"content-length: 2\r\n\r\nab"
    ),
    "in chunks": sends_raw(CHUNKED + b"2;a=b\r\nab\r\n0\r\nx: y\r\n\r\n"),
    "with nothing": status(204),
    "with a header of 20 kB": sends_raw(OK + b"x: " + b"y" * 20_000 + b"\r\ncontent-length: 2\r\n\r\nab"),
    "with 200 headers": sends_raw(OK + b"x: 1\r\n" * 199 + b"content-length: 2\r\n\r\nab"),
    "with letters beyond ASCII": sends_raw(OK + "x: 시\r\n".encode() + b"y: caf\xe9\r\ncontent-length: 2\r\n\r\nab"),
}


@pytest.mark.parametrize("name", SOUND_REPLIES)
def test_a_reply_is_the_same(name: str, each_transport: EachTransport):
    replies = []
    for _ in each_transport():
        with FaultServer(SOUND_REPLIES[name]) as server:
            replies.append(get(server.url, max_bytes=2**20))
    assert replies[0] == replies[1]


async def ask_twice(client: SlottedClient, url: str) -> None:
    await client.request("POST", url, json={"a": "시"}, headers={"X-A": "b"})
    await client.request("POST", url)


@pytest.mark.parametrize(
    "path",
    [
        "/a%2Fb%7Ec?q=a%20b&sig=a%2Bb%2F&x=시",  # a signature is over the letters as they stand
        "/ask?api_key=0123456789abc",
        "/a b/é?x='\"<>|{}[]",
        "//x/../y",
        "#f",
        "/p;a=1,2:@!$&()*+=",
    ],
)
def test_what_is_sent_is_the_same(path: str, each_transport: EachTransport):
    requests = []
    for _ in each_transport():
        with FaultServer(gives(YES)) as server:
            with_client(partial(ask_twice, url=server.url.replace("//", "//ann:hunter2hunter2@") + path))
        requests += [[(sent.method, sent.path, sent.headers | {"host": ""}, sent.body) for sent in server.requests]]
    assert requests[0] == requests[1]
    assert requests[0][0][2]["authorization"] == "Basic YW5uOmh1bnRlcjJodW50ZXIy"


# ── connections ───────────────────────────────────────────────────────────────────────────────────────────────


NOWHERE = ["http://localhost:{port}", "http://[::1]:{port}", "http://no-such.invalid", f"http://{'a' * 70}.invalid"]


@pytest.mark.parametrize("address", NOWHERE)
def test_a_connection_that_does_not_come_about_is_told_in_the_same_words(address: str, each_transport: EachTransport):
    url = address.format(port=closed_port())
    failures = [failure_of(url, retries=0) for _ in each_transport()]
    assert [failure.kind for failure in failures] == ["connect", "connect"]
    assert str(failures[0]) == str(failures[1])
    assert ("refused" if "{port}" in address else "not known") in str(failures[0])


def test_a_connection_that_takes_too_long_is_told_in_the_same_words(
    each_transport: EachTransport, monkeypatch: pytest.MonkeyPatch
):
    async def never(*_: object, **__: object) -> None:
        await asyncio.sleep(3600)

    import aiohttp
    import httpx

    from pytest_rageval.http import over_aiohttp, over_httpx

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", never)
    monkeypatch.setattr(over_aiohttp, "_TIMEOUT", aiohttp.ClientTimeout(total=None, connect=0.05))
    monkeypatch.setattr(over_httpx, "_TIMEOUT", httpx.Timeout(None, connect=0.05))
    messages = [str(failure_of("http://rag.invalid", retries=0)) for _ in each_transport()]
    assert messages == ["GET http://rag.invalid: no connection within 10 s"] * 2


def refusal_of(behaviour: Callable[..., Any], **options: Any) -> tuple[str, str]:
    """Kind and message, without the port, of what HTTPS comes to at a server that behaves so."""

    async def refused() -> tuple[str, str]:
        server = await asyncio.start_server(behaviour, "127.0.0.1", 0, **options)
        client = SlottedClient(retries=0, timeout=10.0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(HttpFailure) as caught:
            await client.request("GET", f"https://127.0.0.1:{port}/")
        await client.aclose()
        server.close()
        return caught.value.kind, str(caught.value).replace(str(port), "")

    return asyncio.run(refused())


@pytest.mark.child_process
@pytest.mark.skipif(which("openssl") is None, reason="openssl is not installed")
def test_a_certificate_that_nobody_vouches_for_is_told_in_the_same_words(each_transport: EachTransport, tmp_path: Path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout {key} -out {certificate}"
    subprocess.run(made.split(), check=True, capture_output=True, timeout=60)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    refusals = [refusal_of(lambda *_: None, ssl=context) for _ in each_transport()]
    message = "GET https://127.0.0.1:/: TLS certificate not accepted: self-signed certificate"
    assert refusals == [("connect", message)] * 2


def test_what_speaks_no_tls_is_told_in_the_same_words(each_transport: EachTransport):
    async def says_no(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 No\r\n\r\n")
        await writer.drain()
        writer.close()

    first, second = (refusal_of(says_no) for _ in each_transport())
    assert first == second
    assert first[0] == "connect"


@pytest.mark.usefixtures("transport")
def test_after_a_restart_of_the_server_each_request_is_sent_anew_once():
    async def closes(connection: Connection) -> None:
        connection.close()

    async def use(client: SlottedClient) -> list[int]:
        await asyncio.gather(*(client.request("POST", server.url) for _ in range(4)))
        replies = await asyncio.gather(*(client.request("POST", server.url) for _ in range(4)))
        return [reply.attempts for reply in replies]

    with FaultServer(*[gives(YES)] * 4, *[closes] * 4, gives(YES)) as server:
        assert with_client(use, slots=4) == [2, 2, 2, 2]
    assert len(server.requests) == 12


@pytest.mark.usefixtures("transport")
def test_a_client_that_nobody_closed_leaves_no_line(caplog: pytest.LogCaptureFixture):
    async def use() -> None:
        client = SlottedClient(timeout=10.0)
        await client.request("GET", server.url)

    with pytest.warns(ResourceWarning) as caught, FaultServer(gives(YES)) as server:  # noqa: PT031 - of asyncio alone
        asyncio.run(use())
        gc.collect()
    assert not [warning for warning in caught if "aiohttp" in str(warning.message) or "client" in str(warning.message)]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


# ── which it is ───────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_installed_is_used_and_one_variable_says_otherwise(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("RAGEVAL_HTTP", raising=False)
    assert transport_name() == "aiohttp"
    monkeypatch.setenv("RAGEVAL_HTTP", "httpx")
    assert transport_name() == "httpx"


@pytest.mark.parametrize(("version", "name"), [("3.13.4", "httpx"), ("3.13.5", "aiohttp"), ("4.0.0a1", "aiohttp")])
def test_one_that_is_too_old_is_not_used(version: str, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("RAGEVAL_HTTP", raising=False)
    monkeypatch.setattr("importlib.metadata.version", lambda _: version)
    assert transport_name() == name


def test_what_does_not_exist_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAGEVAL_HTTP", "curl")
    with pytest.raises(SettingsError, match=r"RAGEVAL_HTTP: 'curl' is not 'httpx' or 'aiohttp'"):
        transport_name()
