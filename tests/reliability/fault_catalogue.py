"""Faults of an API as a table: what a server does with the request of one case, and what must become of that case."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from fault_server import (
    Behaviour,
    Connection,
    drips,
    gzip_bomb,
    hangs,
    resets,
    resets_mid_body,
    sends_chunks_for_ever,
    sends_raw,
    status,
    truncates,
)

MOST_BYTES = 2**20
"""`max_response_bytes` of the runs that try these faults."""
ATTEMPT_S = 2.5
RETRIES = 1
ANSWERED: tuple[str, ...] = ()
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"


@dataclass(frozen=True)
class Fault:
    """A behaviour of a server towards one case.

    kinds     the kinds of error that the case may have; none: it must be answered
    requests  how often its request must be received
    first     what the server does, again and again or, where `then_good`, once
    wait_s    seconds that must lie between the two requests at least
    """

    name: str
    kinds: tuple[str, ...]
    requests: int
    first: Behaviour
    then_good: bool = False
    wait_s: float = 0.0


def a_header_without_end(fields: bytes) -> Behaviour:
    async def behave(connection: Connection) -> None:
        await connection.send(OK)
        while True:
            await connection.send(fields)

    return behave


async def chunk_by_chunk(connection: Connection) -> None:
    """Drip chunks of one byte for ever: each read is in time."""
    await connection.send(CHUNKED)
    while True:
        await connection.send(b"1\r\nx\r\n")
        await asyncio.sleep(0.05)


async def sends_100_megabytes(connection: Connection) -> None:
    await connection.send(OK + b"content-length: 104857600\r\n\r\n")
    for _ in range(1600):
        await connection.send(b"x" * 65536)


def moves_to(place: str, code: int) -> Behaviour:
    return status(code, b"", location=place)


async def loops(connection: Connection) -> None:
    """Redirect to the address that was asked."""
    await connection.reply(307, b"", location=connection.request.path)


async def names_a_date(connection: Connection) -> None:
    """Refuse until the next but one full second."""
    date = datetime.now(UTC) + timedelta(seconds=2)
    await connection.reply(503, b"", retry_after=format_datetime(date.replace(microsecond=0), usegmt=True))


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


INVALID_JSON = {
    "half an object": b'{"answer": "yes',
    "text": b"the answer is yes",
    "HTML": b"<!doctype html><h1>502 Bad Gateway</h1>",
    "two objects": b'{"answer": "yes"} {"answer": "no"}',
    "a key twice": b'{"answer": "yes", "answer": "no"}',
    "a comma too many": b'{"answer": "yes",}',
    "single quotes": b"{'answer': 'yes'}",
    "NUL bytes": b"\0\0\0",
    "UTF-16": '{"answer": "yes"}'.encode("utf-16"),
    "Latin-1": b'{"answer": "\xe9"}',
    "an encoded surrogate": b'{"answer": "\xed\xa0\x80"}',
    "a number of 5,000 digits": b'{"answer": "yes", "n": ' + b"9" * 5000 + b"}",
    "an event stream": b'data: {"answer": "yes"}\n\ndata: [DONE]\n\n',
}
NO_RESPONSE = {"null": b"null", "a list": b"[]", "a number": b"7", "a text": b'"yes"', "a boolean": b"true"}
EMPTY = {"nothing": b"", "white space": b" \r\n\t "}
NOT_HTTP = {
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "two lengths": OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\nab",
    "a negative length": OK + b"content-length: -1\r\n\r\n",
    "length and chunks": OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    "a chunk without a size": CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n",
    "a header with NUL": OK + b"a: b\0c\r\n\r\n",
    "a status of two digits": b"HTTP/1.1 20 OK\r\n\r\n",
}


def faults(elsewhere: str) -> Iterator[Fault]:
    """Yield all faults; `elsewhere` is the URL of a server that must never be asked."""
    again = RETRIES + 1
    for name, body in INVALID_JSON.items():
        yield Fault(f"invalid JSON: {name}", ("invalid_json",), 1, status(200, body))
    deep = status(200, nested(100_000))
    yield Fault("100,000 levels", ("invalid_json", "invalid_response"), 1, deep)
    for name, body in NO_RESPONSE.items():
        yield Fault(f"wrong JSON: {name}", ("invalid_response",), 1, status(200, body))
    for name, body in EMPTY.items():
        yield Fault(f"empty: {name}", ("empty",), 1, status(200, body))
    for name, raw in NOT_HTTP.items():
        yield Fault(f"no HTTP: {name}", ("invalid_response",), 1, sends_raw(raw))
    yield Fault("a byte order mark alone", ("empty", "invalid_json"), 1, status(200, b"\xef\xbb\xbf"))
    yield Fault("no content", ("empty",), 1, status(204))
    yield Fault("no gzip", ("invalid_response",), 1, status(200, b"x", content_encoding="gzip"))
    half = gzip.compress(b"x" * 99)[:-9]
    yield Fault("half a gzip", ("invalid_response",), 1, status(200, half, content_encoding="gzip"))
    yield Fault("unknown compression", ("invalid_response",), 1, status(200, b"x", content_encoding="br"))
    yield Fault("gzip bomb", ("too_large",), 1, gzip_bomb(24))
    yield Fault("gzip bomb in a bomb", ("invalid_response",), 1, gzip_bomb(8, layers=2))
    yield Fault("100 MB", ("too_large",), 1, sends_100_megabytes)
    yield Fault("chunks without end", ("too_large",), 1, sends_chunks_for_ever)
    yield Fault("headers without end", ("too_large",), 1, a_header_without_end(b"x: y\r\n" * 1000))
    yield Fault("a header without end", ("too_large",), 1, a_header_without_end(b"y" * 65536))
    yield Fault("a reset", ("reset",), 1, resets)
    yield Fault("a reset amid the body", ("reset",), 1, resets_mid_body)
    yield Fault("half a body", ("reset",), 1, truncates)
    yield Fault("a farewell", ("reset",), 1, sends_raw(b""))
    yield Fault("half a status line", ("reset",), 1, sends_raw(b"HTTP/1."))
    yield Fault("silence", ("timeout",), 1, hangs)
    yield Fault("a drip", ("timeout",), 1, drips)
    yield Fault("a drip of chunks", ("timeout",), 1, chunk_by_chunk)
    for code in (400, 401, 402, 403, 404, 405, 406, 409, 410, 413, 415, 418, 422, 451, 499):
        yield Fault(f"status {code}", ("http_4xx",), 1, status(code, b"no"))
    for code in (500, 501, 505, 520, 599):
        yield Fault(f"status {code}", ("http_5xx",), 1, status(code, b"no"))
    for code in (502, 503, 504):
        yield Fault(f"status {code} for ever", ("http_5xx",), again, status(code, b"busy"))
    for code in (301, 302, 303, 307, 308):
        yield Fault(f"redirect {code}", ("invalid_response",), 1, moves_to(f"{elsewhere}/caught", code))
    yield Fault("redirect to nowhere", ("invalid_response",), 1, status(302))
    yield Fault("redirect loop", ("invalid_response",), 1, loops)
    for code in (502, 503, 504):
        yield Fault(f"status {code} once", ANSWERED, 2, status(code, b"busy"), then_good=True)
    for code in (429, 503):
        for seconds in ("0", "1", "1.5", "2, 1"):
            wait_s = max(float(part) for part in seconds.split(","))
            refusal = status(code, b"slow", retry_after=seconds)
            yield Fault(f"{code}, Retry-After {seconds}", ANSWERED, 2, refusal, then_good=True, wait_s=wait_s)
        for nonsense in ("soon", "-5", "1e9", "", "Wed, 99 Foo 2025 99:99:99 GMT", "nan", "٣"):
            refusal = status(code, b"slow", retry_after=nonsense)
            yield Fault(f"{code}, Retry-After {nonsense!r}", ANSWERED, 2, refusal, then_good=True)
    yield Fault("503 until a date", ANSWERED, 2, names_a_date, then_good=True, wait_s=1.0)
    yield Fault("429 without Retry-After", ANSWERED, 2, status(429, b"slow"), then_good=True)


async def sends_good(connection: Connection, good: object) -> None:
    await connection.reply(200, json.dumps(good).encode())


ODD_BUT_GOOD = {
    "content type of HTML": {"content_type": "text/html"},
    "content type of an image": {"content_type": "image/png; charset=utf-16"},
    "no content type": {"content_type": ""},
    "in gzip": {"content_encoding": "gzip"},
    "with a byte order mark": {},
    "after a while": {},
    "in chunks": {},
    "in gzip and several members": {"content_encoding": "gzip"},
    "with white space around": {},
    "with an unknown header": {"x_odd": "\xff"},
    "with cookies": {"set_cookie": "a=b"},
}


def odd_but_good(name: str, good: object) -> Behaviour:
    """A good reply in an odd form."""
    body = json.dumps(good).encode()
    headers = ODD_BUT_GOOD[name]

    async def behave(connection: Connection) -> None:
        if name == "in chunks":
            pieces = [body[at : at + 7] for at in range(0, len(body), 7)]
            chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
            await connection.send(CHUNKED + chunks + b"0\r\n\r\n")
            return
        sent = body
        if name == "with a byte order mark":
            sent = b"\xef\xbb\xbf" + body
        if name == "with white space around":
            sent = b"\r\n\t " + body + b"\n\n"
        if name == "in gzip":
            sent = gzip.compress(body)
        if name == "in gzip and several members":
            sent = gzip.compress(body[:9]) + gzip.compress(body[9:])
        if name == "after a while":
            await asyncio.sleep(ATTEMPT_S / 8)
        await connection.reply(200, sent, **headers)

    return behave
