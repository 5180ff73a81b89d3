"""Runs over connections as odd servers, load balancers and networks make them: each case is asked once and passes."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest
from bucket_server import ANSWER
from fault_server import Behaviour, Connection, FaultServer, gives
from project import Project, a_case
from reliability import Tally

pytestmark = pytest.mark.reliability("network", "odd carriers: HTTP/1.0, chunks, closing, interim replies, IPv6")

CASES = [a_case(f"q{number}") for number in range(8)]
BODY = json.dumps(ANSWER).encode()
LENGTH = b"content-length: %d\r\n" % len(BODY)


def replies(head: bytes, *parts: bytes, is_last: bool = True) -> Behaviour:
    """The head and the parts, each in a packet of its own; then the end of the connection, if it is the last reply."""

    async def behave(connection: Connection) -> None:
        for part in (head, *parts):
            await connection.send(part)
            await asyncio.sleep(0)
        if is_last:
            connection.close()

    return behave


def chunked(*pieces: bytes) -> tuple[bytes, ...]:
    """The pieces as chunks, with an extension and a trailer."""
    return (*(b"%x;name=value\r\n%b\r\n" % (len(piece), piece) for piece in pieces), b"0\r\nx-trailer: 1\r\n\r\n")


HALVES = (BODY[:100], BODY[100:])
CARRIERS = {
    "HTTP/1.0 without a length": replies(b"HTTP/1.0 200 OK\r\n\r\n", BODY),
    "HTTP/1.0 that keeps the connection": replies(
        b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n" + LENGTH + b"\r\n", BODY, is_last=False
    ),
    "chunks": replies(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", *chunked(*HALVES), is_last=False),
    "one byte in a chunk": replies(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        *chunked(*(BODY[at : at + 1] for at in range(len(BODY)))),
        is_last=False,
    ),
    "Connection: close, announced": replies(b"HTTP/1.1 200 OK\r\nconnection: close\r\n" + LENGTH + b"\r\n", BODY),
    "Connection: close, and the server does not close": replies(
        b"HTTP/1.1 200 OK\r\nconnection: close\r\n" + LENGTH + b"\r\n", BODY, is_last=False
    ),
    "closed without announcement": replies(b"HTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n", BODY),
    "interim replies": replies(
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n",
        BODY,
        is_last=False,
    ),
    "a length and chunks at once": replies(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 7\r\n\r\n", *chunked(*HALVES), is_last=False
    ),
}


def faults(project: Project, server: FaultServer) -> list[str]:
    """Cases that did not pass, and cases that were not asked once."""
    found = [f"{key} {outcome}" for key, outcome in project.outcomes().items() if outcome != "passed"]
    if len(server.requests) != len(CASES):
        found.append(f"{len(server.requests)} requests for {len(CASES)} cases")
    return found


@pytest.mark.parametrize("name", CARRIERS)
@pytest.mark.parametrize("in_flight", [1, 4])
def test_each_case_is_asked_once_and_passes(project: Project, name: str, in_flight: int, tally: Tally):
    tally.tried(len(CASES))
    project.cases(CASES)
    with FaultServer(CARRIERS[name]) as server:
        project.configure(f'target = "{server.url}"\nconcurrency = {in_flight}\nretries = 0\ntimeout = 20')
        result = project.run()
    assert faults(project, server) == []
    assert result.ret == 0


@pytest.mark.parametrize("every", [1, 2, 3])
def test_a_connection_that_is_closed_between_requests_loses_no_case(project: Project, every: int, tally: Tally):
    """Servers close idle connections at any time, also while the next request is on its way."""
    tally.tried(len(CASES))
    served = 0

    async def behave(connection: Connection) -> None:
        nonlocal served
        served += 1
        await connection.reply(200, BODY)
        if served % every == 0:
            connection.close()

    project.cases(CASES)
    with FaultServer(behave) as server:
        project.configure(f'target = "{server.url}"\nconcurrency = 1\nretries = 0\ntimeout = 20')
        project.run().assert_outcomes(passed=len(CASES))
    assert faults(project, server) == []


class Ipv6Server(FaultServer):
    """The fault server at the IPv6 address of this machine alone."""

    async def _start(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "::1", 0, family=socket.AF_INET6)


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("host", ["[::1]", "localhost"])
def test_a_system_on_ipv6_alone_is_asked(project: Project, host: str, tally: Tally):
    tally.tried(len(CASES))
    if host == "localhost" and socket.AF_INET6 not in {entry[0] for entry in socket.getaddrinfo("localhost", 80)}:
        pytest.skip("localhost has no IPv6 address here")
    project.cases(CASES)
    with Ipv6Server(gives(ANSWER)) as server:
        project.configure(f'target = "http://{host}:{server.port}"\nretries = 0\ntimeout = 20')
        project.run().assert_outcomes(passed=len(CASES))
    assert faults(project, server) == []
    assert {request.headers["host"] for request in server.requests} == {f"{host}:{server.port}"}


@pytest.mark.parametrize(
    "target", ["unix:/run/rag.sock", "http+unix://%2Frun%2Frag.sock", "http://unix:/run/rag.sock:/ask", "ws://rag/ask"]
)
def test_an_address_that_is_no_http_url_is_one_line_before_anything_runs(project: Project, target: str):
    project.cases(CASES)
    project.configure(f'target = "{target}"')
    result = project.run()
    output = result.stdout.str() + result.stderr.str()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in output
    assert not project.runs
