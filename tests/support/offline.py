"""Run a command in a network namespace of its own, in which nothing but this machine itself can be reached.

unshare --net --map-root-user python tests/support/offline.py COMMAND…
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys

UNSHARE = ("unshare", "--net", "--map-root-user")
GET_FLAGS, SET_FLAGS = 0x8913, 0x8914
"""SIOCGIFFLAGS and SIOCSIFFLAGS of Linux."""
IS_UP = 0x1
ELSEWHERE = ("192.0.2.1", 443)
"""An address that documentation may name, and nobody has (RFC 5737)."""


def bring_loopback_up() -> None:
    """Let processes of the namespace reach each other: a new one has its loopback device down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        name = b"lo"
        request = struct.pack("16sh14x", name, 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, GET_FLAGS, request))[1]
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh14x", name, flags | IS_UP))


def has_route() -> bool:
    """Return True if the system would send a packet to another machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            any_socket.connect(ELSEWHERE)
        except OSError:
            return False
    return True


if __name__ == "__main__":
    bring_loopback_up()
    if has_route():
        sys.exit("this is no network namespace of its own: other machines can be reached")
    os.execvp(sys.argv[1], sys.argv[1:])
