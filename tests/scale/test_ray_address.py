"""Addresses that are none of a Ray cluster's head: a line, within a bounded time, before Ray is loaded."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator

import pytest
from project import SOME, Project

from pytest_rageval.errors import SettingsError
from pytest_rageval.scale import ray_cluster
from pytest_rageval.scale.ray_cluster import check_address


@contextlib.contextmanager
def listening(reply: bytes | None) -> Iterator[str]:
    """A server that says this to whoever connects; None: that is silent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    connections.append(connection)
                    if reply is not None:
                        connection.recv(1)
                        connection.sendall(reply)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        for connection in connections:
            connection.close()
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("address", ["10.0.0.1", "head:", ":6379", "head:x", "head:0", "head:99999"])
def test_what_is_no_host_and_port_is_said(address: str):
    with pytest.raises(SettingsError, match=r"expected HOST:PORT, as in 10\.0\.0\.1:6379, auto or local"):
        check_address(address)


def test_the_address_of_ray_s_own_client_is_none():
    with pytest.raises(SettingsError, match="write HOST:PORT of the cluster's head"):
        check_address("ray://10.0.0.1:10001")


def test_where_nothing_listens_the_reason_is_said():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(SettingsError, match=r"cannot be reached within 5 s: Connection refused; is the cluster's head"):
        check_address(f"127.0.0.1:{port}")


def test_another_kind_of_server_is_no_cluster():
    with listening(b"HTTP/1.0 400 Bad Request\r\n\r\n") as address, pytest.raises(SettingsError, match="is the port r"):
        check_address(address)


def test_a_silent_server_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ray_cluster, "PATIENCE_S", 0.05)
    with listening(None) as address, pytest.raises(SettingsError, match=r"within 0\.05 s: no answer"):
        check_address(address)


def test_a_server_of_http_2_may_be_one():
    with listening(bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))) as address:
        check_address(address)


# ── as the command says it ────────────────────────────────────────────────────────────────────────────────────


WRONG: list[tuple[str, list[str], str]] = [
    ("an unknown engine", ["--engine", "spark"], "'spark' is not one of 'process', 'ray'"),
    ("an address without Ray", ["--address", "127.0.0.1:6379"], "--address is for --engine ray; write that too"),
    ("no workers", ["--workers", "0"], "0 is not in the range x>=1"),
    ("nothing listens", ["--engine", "ray", "--address", "127.0.0.1:9"], "ERROR: --address 127.0.0.1:9: cannot be rea"),
]


@pytest.mark.parametrize(("what", "options", "message"), WRONG, ids=[what for what, _, _ in WRONG])
def test_what_is_wrong_is_exit_code_4_and_leaves_no_run(project: Project, what: str, options: list[str], message: str):
    project.cases(SOME)
    result = project.rageval("run", *options)
    assert result.ret == 4
    assert [line for line in result.errlines if message in line]
    assert "Traceback" not in result.stderr.str()
    assert not project.runs


def test_without_ray_the_remedy_is_named(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    project.cases(SOME)
    result = project.rageval("run", "--engine", "ray", "--address", "local")
    assert result.ret == 4
    assert result.errlines == ["ERROR: --engine ray: Ray is not installed; pip install 'pytest-rageval[ray]'"]
    assert not project.runs
