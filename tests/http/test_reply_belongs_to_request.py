"""Each reply belongs to its request, whatever a server sends behind it, beside it or too late."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_rageval.http import connection
from pytest_rageval.http.client import HttpReply, SlottedClient
from pytest_rageval.http.failures import HttpFailure

pytestmark = pytest.mark.reliability("API faults", "faulty and good replies on one connection", costs="false green")

POISON = b"an answer to nobody"
OK = b"HTTP/1.1 200 OK\r\n"


def sized(body: bytes, head: bytes = OK) -> bytes:
    return head + b"content-length: %d\r\n\r\n%s" % (len(body), body)


def chunked(body: bytes, head: bytes = OK) -> bytes:
    return head + b"transfer-encoding: chunked\r\n\r\n%s0\r\n\r\n" % in_chunks(body)


def in_chunks(body: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(body[at : at + 5]), body[at : at + 5]) for at in range(0, len(body), 5))


@dataclass(frozen=True)
class Manner:
    """How the server replies to one request.

    reply    what it sends at once, made of the answer that belongs to the request
    late     what it sends when the client has read its reply, and before it asks again
    expects  the outcome of the request: answer (its own), nothing (an empty body), failure, time-out or cancelled
    """

    reply: Callable[[bytes], bytes]
    late: bytes = b""
    expects: str = "answer"
    method: str = "POST"
    closes: bool = False


MANNERS = {
    "sound": Manner(sized),
    "sound, in chunks": Manner(chunked),
    "sound, after interim replies": Manner(
        lambda answer: b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: x\r\n\r\n" + sized(answer)
    ),
    "a reply behind the length": Manner(lambda answer: sized(answer) + sized(POISON)),
    "a reply behind the last chunk": Manner(lambda answer: chunked(answer) + sized(POISON)),
    "chunks behind the last chunk": Manner(lambda answer: chunked(answer) + chunked(POISON)),
    "half a reply behind the length": Manner(lambda answer: sized(answer) + OK + b"content-le"),
    "more body than the length says": Manner(lambda answer: sized(answer) + POISON),
    "a line feed behind": Manner(lambda answer: sized(answer) + b"\r\n"),
    "three replies at once": Manner(lambda answer: sized(answer) + sized(POISON) * 2),
    "trailers, and a reply behind": Manner(
        lambda answer: chunked(answer)[:-2] + b"x: y\r\ndead: beef\r\n\r\n" + sized(POISON)
    ),
    "204 with a body": Manner(lambda _: b"HTTP/1.1 204 No\r\n\r\n" + sized(POISON), expects="nothing"),
    "204 with a length and a body": Manner(lambda _: sized(sized(POISON), b"HTTP/1.1 204 No\r\n"), expects="nothing"),
    "304 with a body": Manner(lambda _: sized(sized(POISON), b"HTTP/1.1 304 Same\r\n"), expects="failure"),
    "HEAD with a body": Manner(lambda _: sized(sized(POISON)), expects="nothing", method="HEAD"),
    "HEAD with chunks": Manner(lambda _: chunked(sized(POISON)), expects="nothing", method="HEAD"),
    "408 while idle": Manner(sized, sized(b"late", b"HTTP/1.1 408 Request Timeout\r\n")),
    "408 while idle, then closed": Manner(sized, sized(b"late", b"HTTP/1.1 408 Request Timeout\r\n"), closes=True),
    "a reply while idle": Manner(sized, sized(POISON)),
    "a reply while idle, after chunks": Manner(chunked, sized(POISON)),
    "half a reply while idle": Manner(sized, OK + b"content-length: 99\r\n\r\n"),
    "closed while idle": Manner(sized, closes=True),
    "the same length twice": Manner(lambda answer: sized(answer, OK + b"content-length: %d\r\n" % len(answer))),
    "two different lengths": Manner(lambda answer: sized(answer, OK + b"content-length: 3\r\n"), expects="failure"),
    "a length and chunks": Manner(lambda answer: chunked(answer, OK + b"content-length: 3\r\n")),
    "a length and chunks, and a reply behind": Manner(
        lambda answer: chunked(answer, OK + b"content-length: 3\r\n") + sized(POISON)
    ),
    "a chunk longer than its size": Manner(
        lambda answer: OK + b"transfer-encoding: chunked\r\n\r\n1\r\n" + answer + b"\r\n0\r\n\r\n" + sized(POISON),
        expects="failure",
    ),
    "another coding beside chunks": Manner(
        lambda answer: OK + b"transfer-encoding: gzip, chunked\r\n\r\n" + in_chunks(answer) + b"0\r\n\r\n",
        expects="failure",
    ),
    "a refusal with a reply behind": Manner(
        lambda _: sized(b"no", b"HTTP/1.1 400 No\r\n") + sized(POISON), expects="failure"
    ),
    "cut off": Manner(lambda answer: sized(answer)[:-1], expects="failure", closes=True),
    "cancelled, and replied to afterwards": Manner(sized, expects="cancelled"),
    "timed out, and replied to afterwards": Manner(sized, expects="time-out"),
}


LONGEST_S = 60.0
"""No moment of an exchange is waited for longer."""


class Exchange:
    """The moments of one request and its reply."""

    def __init__(self) -> None:
        self.asked, self.given_up, self.is_read, self.is_done = (asyncio.Event() for _ in range(4))


async def reached(meeting: asyncio.Event) -> None:
    async with asyncio.timeout(LONGEST_S):
        await meeting.wait()


class Desk:
    """A server on loopback, in the event loop of the client. The path of a request is /MANNER/ANSWER."""

    def __init__(self) -> None:
        self.connections = self.requests = 0
        self.outcomes: list[str] = []
        """One per request that was sent: an expectation of `Manner`, or what was received instead."""
        self.served: set[asyncio.Task[None] | None] = set()
        self.exchanges: dict[str, Exchange] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.served.add(asyncio.current_task())
        with suppress(OSError, asyncio.IncompleteReadError):
            while (request := await reader.readuntil(b"\r\n\r\n")) and await self._reply(request, writer):
                pass
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()

    async def _reply(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        self.requests += 1
        name, _, answer = request.split(b" ")[1].decode()[1:].partition("/")
        manner, exchange = list(MANNERS.values())[int(name)], self.exchanges[answer]
        exchange.asked.set()
        try:
            return await self._written(manner, answer, exchange, writer)
        finally:
            exchange.is_done.set()

    async def _written(self, manner: Manner, answer: str, exchange: Exchange, writer: asyncio.StreamWriter) -> bool:
        if manner.expects in ("cancelled", "time-out"):
            await reached(exchange.given_up)
            writer.write(sized(POISON) * 2)
            return not writer.is_closing()
        writer.write(manner.reply(answer.encode()))
        await writer.drain()
        if manner.late:
            await reached(exchange.is_read)
            writer.write(manner.late)
            await writer.drain()
        if manner.closes:
            writer.close()
        return not manner.closes

    async def ask(self, client: SlottedClient, url: str, name: str, number: int) -> None:
        """Ask once, and note the outcome."""
        manner, answer = MANNERS[name], f"answer-{number}"
        exchange = self.exchanges[answer] = Exchange()
        client.timeout = 0.05 if manner.expects == "time-out" else 20.0
        asking = asyncio.create_task(client.request(manner.method, f"{url}/{list(MANNERS).index(name)}/{answer}"))
        if manner.expects == "cancelled":
            await reached(exchange.asked)
            asking.cancel()
        self.outcomes.append(await outcome_of(asking, answer.encode()))
        exchange.given_up.set()
        if manner.late:
            exchange.is_read.set()
            await reached(exchange.is_done)
            await asyncio.sleep(0.005)  # a moment, in which the late bytes reach the client


async def outcome_of(asking: asyncio.Task[HttpReply], answer: bytes) -> str:
    try:
        body = (await asking).body
    except asyncio.CancelledError:
        return "cancelled"
    except HttpFailure as failure:
        is_own = POISON.decode() not in str(failure)
        return str(failure) if not is_own else "time-out" if failure.kind == "timeout" else "failure"
    return {answer: "answer", b"": "nothing"}.get(body, repr(body))


def expected(names: list[str]) -> list[str]:
    return [MANNERS[name].expects for name in names]


async def ask_all(names: list[str], tls: ssl.SSLContext | None = None) -> Desk:
    """Ask for each manner in turn over one client that has one slot, so over one connection where it can be kept."""
    desk = Desk()
    async with await asyncio.start_server(desk.serve, "127.0.0.1", 0, ssl=tls) as server:
        client = SlottedClient(slots=1, retries=0)
        url = f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            for number, name in enumerate(names):
                await desk.ask(client, url, name, number)
        finally:
            await client.aclose()
            while serving := [task for task in desk.served if task and not task.done()]:
                for exchange in [*desk.exchanges.values()]:  # also those whose requests came late
                    exchange.given_up.set()
                    exchange.is_read.set()
                await asyncio.wait(serving, timeout=0.1)
            await asyncio.gather(*filter(None, desk.served))
    return desk


@pytest.mark.parametrize("name", MANNERS)
def test_the_request_after_an_odd_reply_gets_its_own_answer(name: str):
    names = ["sound", name, "sound", name, "sound, in chunks", "sound"]
    assert asyncio.run(ask_all(names)).outcomes == expected(names)


def test_connections_on_which_nothing_remains_are_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "KEPT_IDLE", 600)  # however slow this machine is
    names = [name for name in MANNERS if name.startswith(("sound", "the same length"))] * 3
    assert asyncio.run(ask_all(names)).connections == 1


@pytest.mark.parametrize("name", [name for name in MANNERS if "behind" in name or "idle" in name])
def test_a_connection_on_which_bytes_remain_is_replaced(name: str):
    assert asyncio.run(ask_all([name, "sound"])).connections == 2


def test_a_reply_that_comes_before_the_request_was_read_to_its_end_belongs_to_it():
    async def replies_early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split(b" ")[1]
        served.append(asyncio.current_task())
        writer.write(sized(path))  # the body is never read
        await writer.drain()
        await reader.read(1)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    served: list[asyncio.Task[None] | None] = []

    async def use() -> list[bytes]:
        async with await asyncio.start_server(replies_early, "127.0.0.1", 0) as server:
            client = SlottedClient(slots=1, retries=0, timeout=20.0)
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            replies = [await client.request("POST", f"{url}/{n}", json="x" * 5_000_000) for n in range(3)]
            await client.aclose()
            await asyncio.gather(*filter(None, served))
        return [reply.body for reply in replies]

    assert asyncio.run(use()) == [b"/0", b"/1", b"/2"]


SEQUENCES = st.lists(st.sampled_from(list(MANNERS)), min_size=2, max_size=12)
IN_ANY_STATE = settings(deadline=None, database=None)


@given(names=SEQUENCES)
@settings(IN_ANY_STATE, max_examples=60)
def test_every_request_of_any_sequence_gets_its_own_answer(names: list[str]):
    assert asyncio.run(ask_all(names)).outcomes == expected(names)


@pytest.mark.torture
@given(names=SEQUENCES)
@settings(IN_ANY_STATE, max_examples=1500)
def test_every_request_of_many_sequences_gets_its_own_answer(names: list[str]):
    assert asyncio.run(ask_all(names)).outcomes == expected(names)


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A certificate for 127.0.0.1 that the client trusts."""
    if which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 "
        f"-keyout {key} -out {certificate}"
    )
    subprocess.run(made.split(), check=True, capture_output=True, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    monkeypatch.setattr(connection, "KEPT_IDLE", 600)
    monkeypatch.setattr(connection, "tls_context", lambda: ssl.create_default_context(cafile=str(certificate)))
    return context


@pytest.mark.child_process
def test_over_tls_too_every_request_gets_its_own_answer(tls: ssl.SSLContext):
    names = [name for manner in MANNERS for name in (manner, "sound")]
    unsent = 1  # on a busy machine, the 50 ms of the request that times out end while it still connects
    desk = asyncio.run(ask_all(names, tls))
    assert desk.outcomes == expected(names)
    assert len(names) - unsent <= desk.requests <= len(names)
    assert asyncio.run(ask_all(["sound"] * 5, tls)).connections == 1
