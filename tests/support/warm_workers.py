"""Workers of xdist for runs inside a test, forked from a process that has loaded what a worker loads.

A worker is a process with pipes, signals and an end of its own, as any is; started anew, it costs 1.2 s of CPU, nearly
all of it for imports, and forked 0.2 s. `make torture` starts each one anew.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from effort import IS_THOROUGH
from execnet import gateway_io
from execnet.gateway_base import Popen2IO
from processes import PATIENCE_S

LONGEST_REQUEST = 1 << 17


@contextlib.contextmanager
def warm_workers() -> Iterator[None]:
    """Runs of this process fork their workers."""
    if IS_THOROUGH or "COVERAGE_PROCESS_CONFIG" in os.environ:  # which sees what starts anew
        yield
        return
    with mock.patch.object(gateway_io, "Popen2IOMaster", WarmWorker):
        yield


class WarmWorker(Popen2IO):
    """What execnet takes for the process that it started: its pipes, and how to wait for its end."""

    def __init__(self, command: Sequence[str], execmodel: Any) -> None:
        to_worker, ours_out = os.pipe()
        ours_in, from_worker = os.pipe()
        self._pid = _parent().fork(command, to_worker, from_worker)
        os.close(to_worker)
        os.close(from_worker)
        try:
            self._end: int | None = os.pidfd_open(self._pid)
        except ProcessLookupError:
            self._end = None
        super().__init__(os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb"), execmodel=execmodel)

    def wait(self) -> None:
        if self._end is not None:
            ends = select.poll()
            ends.register(self._end, select.POLLIN)
            ends.poll(PATIENCE_S * 1000)
            os.close(self._end)
            self._end = None

    def kill(self) -> None:
        if self._end is not None:
            signal.pidfd_send_signal(self._end, signal.SIGKILL)


class _Parent:
    """The process that workers are forked from; it ends with this one."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.settimeout(PATIENCE_S)
        with theirs:
            environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__))], stdin=theirs.fileno(), env=environment
            )

    def fork(self, command: Sequence[str], stdin: int, stdout: int) -> int:
        request = json.dumps({"cwd": os.getcwd(), "environment": dict(os.environ), "command": list(command)})
        socket.send_fds(self._line, [request.encode()], [stdin, stdout, 2])
        pid = self._line.recv(100)
        assert pid, "the process that workers are forked from has ended; standard error says why"
        return int(pid)


@functools.cache
def _parent() -> _Parent:
    return _Parent()


def serve() -> str:
    """Fork a worker for each request that comes; in the worker, this returns what it has to run."""
    line = socket.socket(fileno=os.dup(0))
    gc.freeze()
    while True:
        request, descriptors, _, _ = socket.recv_fds(line, LONGEST_REQUEST, 3)
        _bury()
        if not request:
            os._exit(0)
        if pid := os.fork():
            line.send(str(pid).encode())
            for descriptor in descriptors:
                os.close(descriptor)
            continue
        line.close()
        return _become(json.loads(request), descriptors)


def _bury() -> None:
    """Workers that have ended: the test process waited for them, and this one is their parent."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become(request: dict[str, Any], descriptors: Sequence[int]) -> str:
    """Leave nothing of the process that this one is a fork of; the code that it is to run."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    random.seed()
    time.tzset()
    importlib.invalidate_caches()
    *options, code = request["command"]
    sys.dont_write_bytecode = "-B" in options
    sys.argv = ["-c"]
    return str(code)


def warm_up() -> None:
    """Run a case, so that all that a worker needs is loaded, as pytest loads it."""
    import pytest

    arguments = "-p rageval -p xdist -p no:faulthandler --rageval-target warming_bot:answer cases.jsonl"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), open(os.devnull, "w") as nowhere:
        Path("cases.jsonl").write_text('{"id": "a", "question": "Why?"}\n', encoding="utf-8")
        Path("warming_bot.py").write_text("def answer(question):\n    return 'x'\n", encoding="utf-8")
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            pytest.main(arguments.split())
    importlib.import_module("xdist.remote")  # what a worker runs first; pytest has to be there before it
    del sys.modules["warming_bot"]
    assert threading.active_count() == 1, "a fork has no threads but its own"


if __name__ == "__main__":
    warm_up()
    exec(serve())
