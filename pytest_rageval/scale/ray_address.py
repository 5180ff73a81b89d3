"""The address of a Ray cluster, looked at before Ray itself is: it would try for minutes to reach what is not there."""

from __future__ import annotations

import os
import socket

from pytest_rageval.errors import SettingsError

PATIENCE_S = 5.0
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""What a client of HTTP/2 says first, with settings that change nothing."""
SETTINGS_FRAME = 4


def check_address(address: str) -> None:
    """SettingsError unless something at this address speaks as the head of a cluster does."""
    if address in ("auto", "local"):
        return
    if "://" in address:
        raise SettingsError(
            f"--address {address}: write HOST:PORT of the cluster's head, as `ray start --head` says it"
        )
    host, _, port = address.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise SettingsError(f"--address {address}: expected HOST:PORT, as in 10.0.0.1:6379, auto or local")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), PATIENCE_S) as connection:
            if os.environ.get("RAY_USE_TLS") == "1":
                return
            connection.settimeout(PATIENCE_S)
            connection.sendall(PREFACE)
            reply = connection.recv(9)
    except OSError as error:
        reason = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise SettingsError(
            f"--address {address}: cannot be reached within {PATIENCE_S:g} s: {reason}; is the cluster's head running?"
        ) from None
    if len(reply) < 4 or reply[3] != SETTINGS_FRAME:
        raise SettingsError(f"--address {address}: what listens there is no head of a Ray cluster; is the port right?")
