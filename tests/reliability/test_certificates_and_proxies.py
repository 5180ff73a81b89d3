"""Runs over TLS and through proxies: no key reaches a server or a proxy that is not to have it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from bucket_server import ANSWER
from certificates import FAR_AHEAD, LONG_AGO, Authority
from fault_server import Connection, FaultServer, closed_port, gives, status
from project import Project, a_case

from pytest_rageval.http import address

pytestmark = pytest.mark.child_process

KEY = "sk-0123456789abcdef"
CASES = [a_case("one"), a_case("two")]


class TlsServer(FaultServer):
    """The fault server over TLS; `handshakes` counts the clients that accepted its certificate."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(gives(ANSWER))
        self._context = context

    async def _start(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)

    @property
    def secure_url(self) -> str:
        return self.url.replace("http:", "https:")


class TunnelServer(FaultServer):
    """A proxy that opens tunnels to one server, and keeps all bytes that it saw."""

    def __init__(self, server: FaultServer, password: str | None = None) -> None:
        super().__init__(self._tunnel)
        self.seen = bytearray()
        self._behind = server
        self._readers: dict[asyncio.StreamWriter, asyncio.StreamReader] = {}
        self._password = password

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._readers[writer] = reader
        await super()._serve(reader, writer)

    async def _tunnel(self, connection: Connection) -> None:
        request = connection.request
        self.seen += f"{request.method} {request.path} {request.headers}".encode() + request.body
        if self._password is not None and "proxy-authorization" not in request.headers:
            await connection.reply(407, b"who are you?", proxy_authenticate="Basic")
            return
        await connection.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        reader, writer = await asyncio.open_connection("127.0.0.1", self._behind.port)
        forth = asyncio.ensure_future(self._pipe(self._readers[connection.writer], writer))
        try:
            await self._pipe(reader, connection.writer)
        finally:
            forth.cancel()
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()
        connection.close()

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                self.seen += data
                writer.write(data)
                await writer.drain()


@pytest.fixture
def authority(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Authority]:
    """An authority that the client trusts, as by SSL_CERT_FILE in the environment of a company."""
    authority = Authority(tmp_path_factory.mktemp("authority") / "ca")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    address.tls_context.cache_clear()
    yield authority
    address.tls_context.cache_clear()


@pytest.fixture
def keyed(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose system is asked with a key, on a machine without proxies."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("RAGEVAL_TARGET_TOKEN", KEY)
    project.cases(CASES)
    return project


def ask(project: Project, url: str, *arguments: str) -> pytest.RunResult:
    project.configure(f'target = "{url}"\nretries = 0\ntimeout = 20')
    return project.run(*arguments)


def errors_of(project: Project) -> set[str]:
    """The kinds of error of all cases, of which none has passed."""
    assert set(project.outcomes().values()) == {"error"}
    return {record["error"]["kind"] for record in project.records().values()}


def leaks(project: Project, *seen: bytes) -> list[str]:
    """Where the key can be read."""
    files = [path for path in (project.path / "reports").rglob("*") if path.is_file()]
    found = [str(path) for path in files if KEY.encode() in path.read_bytes()]
    if any(KEY.encode() in data for data in seen):
        found.append("on the wire")
    return found


TLS = pytest.mark.reliability("network", "certificates: expired, self-signed, of another host", costs="leak")
PROXY = pytest.mark.reliability("network", "proxies: refusing, asking for a password, absent", costs="leak")


@TLS
def test_a_certificate_of_a_trusted_authority_is_accepted(keyed: Project, authority: Authority):
    with TlsServer(authority.server()) as server:
        ask(keyed, server.secure_url).assert_outcomes(passed=2)
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}


@TLS
@pytest.mark.parametrize(
    ("subject", "dates", "said"),
    [
        ("IP:127.0.0.1", LONG_AGO, "certificate has expired"),
        ("IP:127.0.0.1", FAR_AHEAD, "certificate is not yet valid"),
        ("DNS:elsewhere.example", None, "IP address mismatch"),
    ],
    ids=["expired", "not yet valid", "of another host"],
)
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_wrong_certificate_ends_the_run_before_a_key_is_sent(
    keyed: Project, authority: Authority, subject: str, dates: tuple[str, str] | None, said: str
):
    with TlsServer(authority.server(subject, dates)) as server:
        result = ask(keyed, server.secure_url)
    assert result.ret not in (0, pytest.ExitCode.INTERNAL_ERROR)
    output = result.stdout.str() + result.stderr.str()
    assert said in output
    assert "Traceback" not in output
    assert server.requests == []
    assert leaks(keyed, output.encode()) == []


@TLS
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_certificate_of_an_unknown_authority_ends_the_run(keyed: Project, authority: Authority, tmp_path: Path):
    other = Authority(tmp_path / "other", "Another authority")
    with TlsServer(other.server()) as server:
        result = ask(keyed, server.secure_url)
    assert result.ret not in (0, pytest.ExitCode.INTERNAL_ERROR)
    assert "certificate" in result.stdout.str() + result.stderr.str()
    assert server.requests == []


@PROXY
def test_a_tunnel_shows_the_proxy_no_key(keyed: Project, authority: Authority, monkeypatch: pytest.MonkeyPatch):
    with TlsServer(authority.server("DNS:rag.invalid")) as server, TunnelServer(server, "needed") as proxy:
        monkeypatch.setenv("https_proxy", proxy.url.replace("//", "//ann:hunter2hunter2@"))
        ask(keyed, "https://rag.invalid").assert_outcomes(passed=2)
    assert len(server.requests) == 2
    assert b"CONNECT rag.invalid:443" in proxy.seen
    assert leaks(keyed, bytes(proxy.seen)) == []


@PROXY
@pytest.mark.parametrize(
    ("code", "said"), [(407, "status 407"), (403, "status 403"), (502, "status 502")], ids=["password", "no", "broken"]
)
def test_a_proxy_that_refuses_is_named_and_sees_no_key(
    keyed: Project, monkeypatch: pytest.MonkeyPatch, code: int, said: str
):
    with FaultServer(status(code)) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url.replace("//", "//ann:hunter2hunter2@"))
        result = ask(keyed, "https://rag.invalid")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert errors_of(keyed) == {"connect"}
    messages = {record["error"]["message"] for record in keyed.records().values()}
    assert all(f"through the proxy {proxy.url}" in message and said in message for message in messages)
    headers = "".join(str(request.headers) for request in proxy.requests)
    assert leaks(keyed, headers.encode(), result.stdout.str().encode()) == []
    assert "hunter2" not in "".join(messages) + result.stdout.str()


@PROXY
def test_a_proxy_that_is_not_there_costs_no_more_than_its_cases(keyed: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{closed_port()}")
    result = ask(keyed, "https://rag.invalid")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert errors_of(keyed) == {"connect"}


@PROXY
def test_a_system_on_this_machine_is_asked_without_the_proxy(keyed: Project, monkeypatch: pytest.MonkeyPatch):
    with FaultServer(status(403)) as proxy, FaultServer(gives(ANSWER)) as server:
        monkeypatch.setenv("http_proxy", proxy.url)
        ask(keyed, server.url).assert_outcomes(passed=2)
    assert proxy.requests == []
