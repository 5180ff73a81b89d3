"""The words in which a user meets replies that are no replies, connections that fail, and what is sent and read."""

from __future__ import annotations

import asyncio
import gc
import gzip
import logging
import ssl
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any

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
    gzip_bomb,
    gzipped,
    hangs,
    resets,
    resets_mid_body,
    sends_chunks_for_ever,
    sends_raw,
    status,
    truncates,
    with_client,
)

from pytest_rageval.http import connection
from pytest_rageval.http.client import SlottedClient
from pytest_rageval.http.failures import HttpFailure

pytestmark = pytest.mark.reliability("API faults", "bodies, bombs and framing at the client")

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
LAST = b"1\r\nx\r\n0\r\n"
"""The end of a body in chunks, up to its trailers."""
FIELDS = b"x: y\r\n" * 1000


def sends_without_end(head: bytes, rest: bytes, pause: float = 0.0) -> Behaviour:
    """The head, and then the rest, again and again."""

    async def behave(connection: Connection) -> None:
        await connection.send(head)
        await asyncio.sleep(pause)
        while True:
            await connection.send(rest)

    return behave


async def sends_interim_replies_without_end(connection: Connection) -> None:
    while True:
        await connection.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 10)
        await asyncio.sleep(0.01)


ODD_REPLIES: dict[str, dict[str, tuple[Behaviour, str]]] = {
    "invalid_response": {
        "another protocol": (sends_raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), "the reply is not HTTP: SSH-2.0-OpenSSH_9.6"),
        "HTML alone": (sends_raw(b"<html>it's \"so\"</html>\r\n\r\n"), "not HTTP: <html>it's \"so\"</html>"),
        "no number as status": (sends_raw(b"HTTP/1.1 abc OK\r\n\r\n"), "the reply is not HTTP: HTTP/1.1 abc OK"),
        "a header without a colon": (sends_raw(OK + b"garbage\r\n\r\n"), "no valid HTTP after its"),
        "a header with a null": (sends_raw(OK + b"a: b\0c\r\n\r\n"), "no valid HTTP after its"),
        "a length of letters": (sends_raw(OK + b"content-length: x\r\n\r\n"), "no valid HTTP after its"),
        "a length of 5,000 digits": (
            sends_raw(OK + b"content-length: " + b"9" * 5000 + b"\r\n\r\nab"), "no valid HTTP after its",
        ),
        "two lengths": (sends_raw(OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\nab"), "no valid HTTP after its"),
        "a chunk without a size": (
            sends_raw(CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n"), "no valid HTTP after its",
        ),
        "another protocol offered": (
            sends_raw(b"HTTP/1.1 101 Hm\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nx"), "no valid HTTP",
        ),
        "a body without a size": (sends_without_end(CHUNKED + b"1\r\nx\r\n", b"zz\r\n", 0.1), "no valid HTTP"),
        "a bomb in a bomb": (gzip_bomb(64, layers=2), "content-encoding 'gzip, gzip' was not asked for"),
        "another compression": (status(200, b"x", content_encoding="br"), "content-encoding 'br' was not asked for"),
        "not modified": (status(304), "status 304, redirect to nowhere"),
        "no gzip": (status(200, b"not gzip", content_encoding="gzip"), "the body is not the gzip it claims to be"),
        "half a gzip": (
            status(200, gzip.compress(b"x" * 99)[:-9], content_encoding="gzip"), "the gzip body ends before its end",
        ),
    },
    "reset": {
        "nothing": (sends_raw(b""), "the server closed the connection without a reply"),
        "half a body": (truncates, "the server closed the connection before the reply was complete"),
        "half a chunk": (
            sends_raw(CHUNKED + b"5\r\nab"), "closed the connection before the reply was",
        ),
        "a reset": (resets, "Connection reset by peer"),
        "a reset amid the body": (resets_mid_body, "Connection reset by peer"),
    },
    "too_large": {
        "3,000 headers": (
            sends_raw(OK + b"".join(b"x%d: 1\r\n" % n for n in range(3000)) + b"\r\n"), "more than 200 header fields",
        ),
        "a header of 70 kB": (sends_raw(OK + b"x: " + b"y" * 70_000 + b"\r\n\r\n"), "65,536 bytes of them"),
        "a header without end": (sends_without_end(OK + b"x: ", b"y" * 65536), "65,536 bytes of them"),
        "headers without end": (sends_without_end(OK, FIELDS), "more than 200 header fields"),
        "trailers without end": (sends_without_end(CHUNKED + LAST, FIELDS), "more than 200 header fields"),
        "trailers without end after the body": (sends_without_end(CHUNKED + LAST, FIELDS, 0.1), "200 header fields"),
        "a body without end": (sends_chunks_for_ever, "the reply is larger than 1,048,576 bytes"),
        "a bomb": (gzip_bomb(64), "the reply is larger than 1,048,576 bytes"),
    },
    "timeout": {
        "interim replies without end": (sends_interim_replies_without_end, "no complete reply within 0.5 s (timeout)"),
        "no reply": (hangs, "no complete reply within 0.5 s (timeout)"),
    },
    "http_4xx": {
        "a refusal": (status(418, b"\x1b[31mtea"), "status 418: \\x1b[31mtea"),
    },
    "http_5xx": {
        "a failure": (status(500, b"oops"), "status 500: oops"),
    },
}  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, replies in ODD_REPLIES.items() for name in replies])
def test_a_failure_that_is_not_safe_or_useful_to_repeat_is_told_in_plain_words_and_sent_once(kind: str, name: str):
    behaviour, reason = ODD_REPLIES[kind][name]
    with FaultServer(behaviour) as server:
        failure = failure_of(server.url, max_bytes=2**20, timeout=0.5 if kind == "timeout" else 20.0)
    assert (failure.kind, len(server.requests)) == (kind, 1)
    assert reason in str(failure)


AB = b"content-length: 2\r\n\r\nab"
SOUND_REPLIES: dict[str, tuple[Behaviour, bytes]] = {
    "JSON": (gives(YES, x_build="7"), b'{"answer": "yes"}'),
    "compressed": (gzipped(b"hello " * 1000), b"hello " * 1000),
    "of HTTP/1.0": (sends_raw(b"HTTP/1.0 200 OK\r\n\r\nbody"), b"body"),
    "without a length": (sends_raw(OK + b"\r\nbody until its end"), b"body until its end"),
    "with a line too many": (sends_raw(OK + AB + b"\r\n"), b"ab"),
    "after interim ones": (sends_raw(b"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Hi\r\n\r\n" + OK + AB), b"ab"),
    "in chunks": (sends_raw(CHUNKED + b"2;a=b\r\nab\r\n0\r\nx: y\r\n\r\n"), b"ab"),
    "with nothing": (status(204), b""),
    "with a header of 20 kB": (sends_raw(OK + b"x: " + b"y" * 20_000 + b"\r\n" + AB), b"ab"),
    "with letters beyond ASCII": (sends_raw(OK + "x: 시\r\n".encode() + b"y: caf\xe9\r\n" + AB), b"ab"),
    "of a megabyte": (gives("x" * 999_998), b'"' + b"x" * 999_998 + b'"'),
}


@pytest.mark.parametrize("name", SOUND_REPLIES)
def test_an_odd_reply_that_is_sound_is_read(name: str):
    behaviour, body = SOUND_REPLIES[name]
    with FaultServer(behaviour) as server:
        assert get(server.url, max_bytes=2**20).body == body


@pytest.mark.parametrize("name", SOUND_REPLIES)
def test_an_odd_reply_that_is_sound_is_read_when_it_comes_byte_by_byte(name: str):
    async def drips(connection: Connection) -> None:
        split = Connection(SplitWriter(connection.writer), connection.request)  # type: ignore[arg-type]  # as it is used
        await behaviour(split)
        connection.is_over = split.is_over

    behaviour, body = SOUND_REPLIES[name]
    if len(body) > 10_000:
        pytest.skip("takes long, and says no more than the short ones")
    with FaultServer(drips) as server:
        assert get(server.url, max_bytes=2**20).body == body


class SplitWriter:
    """Writes the first 300 bytes one by one, each in a packet of its own as far as the system lets it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._rest = b""

    def write(self, raw: bytes) -> None:
        self._rest += raw

    async def drain(self) -> None:
        raw, self._rest = self._rest, b""
        for place in range(min(len(raw), 300)):
            self._writer.write(raw[place : place + 1])
            await asyncio.sleep(0)
        self._writer.write(raw[300:])
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()


async def ask_twice(client: SlottedClient, url: str) -> None:
    await client.request("POST", url, json={"a": "시"})
    await client.request("POST", url)


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        # A signature is over the letters as they stand.
        ("/a%2Fb%7Ec?q=a%20b&sig=a%2Bb%2F&x=시", "/a%2Fb%7Ec?q=a%20b&sig=a%2Bb%2F&x=%EC%8B%9C"),
        ("/ask?api_key=0123456789abc", "/ask?api_key=0123456789abc"),
        ("/a b/é?x='\"<>|{}[]", "/a%20b/%C3%A9?x='%22%3C%3E|{}[]"),
        ("//x/../y", "//y"),
        ("#f", "/"),
        ("/p;a=1,2:@!$&()*+=", "/p;a=1,2:@!$&()*+="),
    ],
)
def test_addresses_headers_and_bodies_are_sent_as_they_are(path: str, sent: str):
    with FaultServer(gives(YES)) as server:
        url = server.url.replace("//", "//ann:hunter2hunter2@") + path
        with_client(partial(ask_twice, url=url), headers={"X-A": "b"})
    first, second = server.requests
    assert (first.method, first.path, first.body) == ("POST", sent, b'{"a": "\\uc2dc"}')
    assert first.headers == {
        "host": server.url.removeprefix("http://"),
        "accept": "application/json",
        "accept-encoding": "gzip",
        "connection": "keep-alive",
        "user-agent": "pytest-rageval",
        "authorization": "Basic YW5uOmh1bnRlcjJodW50ZXIy",
        "x-a": "b",
        "content-type": "application/json",
        "content-length": "15",
    }
    assert (second.body, second.headers["content-length"]) == (b"", "0")


NOWHERE = ["http://localhost:{port}", "http://[::1]:{port}", "http://no-such.invalid", f"http://{'a' * 70}.invalid"]


@pytest.mark.parametrize("address", NOWHERE)
def test_a_connection_that_does_not_come_about_is_told_in_the_words_of_the_system(address: str):
    url = address.format(port=closed_port())
    failure = failure_of(url, retries=0)
    assert failure.kind == "connect"
    # A machine without a resolver says that it cannot know now.
    words = ("Connection refused",) if "{port}" in address else ("not known", "in name resolution")
    assert str(failure).endswith(words)


def test_a_connection_is_closed_in_whatever_step_of_its_opening_it_is_given_up():
    served: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(asyncio.current_task())
        await reader.read()
        writer.transport.abort()

    async def use() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            client = SlottedClient(slots=1, retries=0)
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            for steps in range(30):
                asking = asyncio.create_task(client.request("GET", url))
                for _ in range(steps):
                    await asyncio.sleep(0)
                asking.cancel()
                await asyncio.wait([asking])
            await client.aclose()
            async with asyncio.timeout(20):
                await asyncio.gather(*filter(None, served))

    asyncio.run(use())
    assert len(served) > 10


def test_a_connection_that_takes_too_long_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def never(*_: object, **__: object) -> None:
        await asyncio.sleep(3600)

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", never)
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 0.05)
    assert str(failure_of("http://rag.invalid", retries=0)) == "GET http://rag.invalid: no connection within 0.05 s"
    gc.collect()
    # Other tests may have asked asyncio for its debug messages.
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


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
def test_a_certificate_that_nobody_vouches_for_is_not_accepted(tmp_path: Path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout {key} -out {certificate}"
    subprocess.run(made.split(), check=True, capture_output=True, timeout=60)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    message = "GET https://127.0.0.1:/: TLS certificate not accepted: self-signed certificate"
    assert refusal_of(lambda *_: None, ssl=context) == ("connect", message)


def test_what_speaks_no_tls_is_a_failed_connection():
    async def says_no(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 No\r\n\r\n")
        await writer.drain()
        writer.close()

    assert refusal_of(says_no)[0] == "connect"


def test_a_client_that_nobody_closed_leaves_no_line(caplog: pytest.LogCaptureFixture):
    async def use() -> None:
        client = SlottedClient(timeout=10.0)
        await client.request("GET", server.url)

    with pytest.warns(ResourceWarning) as caught, FaultServer(gives(YES)) as server:  # noqa: PT031 - of asyncio alone
        asyncio.run(use())
        gc.collect()
    assert not [warning for warning in caught if "client" in str(warning.message)]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
