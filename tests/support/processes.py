"""Processes, terminals and workers of tests: each wait has an end, and nothing outlives its test."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import functools
import gc
import importlib
import json
import os
import pty
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self
from unittest import mock

from execnet import gateway_io
from execnet.gateway_base import Popen2IO

PATIENCE_S = 120
"""Longer than anything takes on a slow machine under load, and shorter than the limit of a test."""


def wait_until(condition: Callable[[], object], what: str, process: subprocess.Popen[Any] | None = None) -> None:
    """Look every now and then whether it is so; it must be before the process ends, if one is named."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if process is not None and process.poll() is not None and not condition():
            raise AssertionError(f"the process ended with {process.returncode} before {what}: {_output(process)}")
        assert time.monotonic() < until, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.02)


def _output(process: subprocess.Popen[Any]) -> object:
    return [stream.read() for stream in (process.stdout, process.stderr) if stream is not None]


def ending(process: subprocess.Popen[Any]) -> Any:
    """Wait for a process; the rest of its standard output, with standard error if that goes the same way."""
    return process.communicate(timeout=PATIENCE_S)[0]


@contextlib.contextmanager
def running(
    command: Sequence[str | Path], within_s: float = 2 * PATIENCE_S, **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    """A process in a group of its own, which is killed at the end and, lest a read wait for ever, after a while."""
    process = subprocess.Popen(command, start_new_session=True, **options)
    watch = threading.Timer(within_s, kill, [process])
    watch.daemon = True
    watch.start()
    try:
        yield process
    finally:
        watch.cancel()
        kill(process)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):  # what was not written has nobody to read it
                    stream.close()
        process.wait(PATIENCE_S)


def kill(process: subprocess.Popen[Any]) -> None:
    """A process and all of its group, as a machine does that goes down."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def python(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, with its output as text."""
    command = [sys.executable, *map(str, arguments)]
    defaults: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "encoding": "utf-8"}
    return subprocess.run(command, **{**defaults, "check": False, "timeout": PATIENCE_S, **options})


def open_files(folder: Path) -> list[str]:
    """What this process holds open of a folder and below it."""
    targets = []
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile, by another thread or by the collector
            targets.append(os.readlink(path))
    return [target for target in targets if str(folder) in target]


IS_THOROUGH = os.environ.get("THOROUGH") == "1"


def rounds(thorough: int, usual: int) -> int:
    """The number for this session."""
    return thorough if IS_THOROUGH else usual


CTRL_C = "\x03"
TAKE_TERMINAL = 'terminal=$1; shift; exec "$@" <>"$terminal" >&0 2>&1'
"""The first process of a session that opens a terminal owns it. In a shell, since code of ours between fork and exec
may stand still where the process of the tests has threads."""
INHERITED = ("COLUMNS", "LINES")
"""Not for a terminal of another size: readline, which pytest imports, sets them behind Python's back."""


class Terminal:
    """`python ARGUMENTS` on a terminal of its own; it ends with the `with` statement."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.written = ""
        """What was shown since keys were pressed last."""
        self._shown_before = 0
        self._own, other = pty.openpty()
        self._is_open = True
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        kept = {name: value for name, value in os.environ.items() if name not in INHERITED}
        command = ["sh", "-c", TAKE_TERMINAL, "sh", os.ttyname(other), sys.executable, *arguments]
        self.process = subprocess.Popen(command, cwd=folder, env=kept | environment, start_new_session=True)
        # The last descriptor of its side ends what is read here; until the process has its own, this one stays.
        self._other: int | None = other

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        kill(self.process)
        self.process.wait(PATIENCE_S)
        self._let_go()
        os.close(self._own)

    def _let_go(self) -> None:
        if self._other is not None:
            os.close(self._other)
            self._other = None

    def _read(self, seconds: float) -> bool:
        """Take what comes within this time; whether anything did."""
        if not self._is_open or not select.select([self._own], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._own, 65_536)
        except OSError:  # the other side is closed
            self._is_open = False
            return False
        self._let_go()
        self.written += self._decoder.decode(data)
        return True

    def comes(self, text: str, seconds: float) -> bool:
        """Whether the text is shown within this time, after what was waited for before."""
        until = time.monotonic() + seconds
        while text not in self.written[self._shown_before :]:
            left = until - time.monotonic()
            if left < 0 or not (self._read(min(left, 0.1)) or self.process.poll() is None or self._read(0)):
                return False
        return True

    def until(self, text: str) -> str:
        """Wait for a text; what was shown before it, since the last wait or key."""
        assert self.comes(text, PATIENCE_S), f"{text!r} did not come: {self.written[-2000:]!r}"
        return self._upto(text)

    def _upto(self, text: str) -> str:
        before, _, rest = self.written[self._shown_before :].partition(text)
        self._shown_before = len(self.written) - len(rest)
        return before.replace("\r", "")

    def type(self, keys: str) -> None:
        self.written, self._shown_before = "", 0
        os.write(self._own, keys.encode())

    def press_ctrl_c(self, until: str) -> str:
        """Press Ctrl-C until this text comes, and again if it does not: between the question and the reading of its
        answer a signal is lost."""
        self.written, self._shown_before = "", 0
        for _ in range(PATIENCE_S // 5):
            if not self._is_open or self.process.poll() is not None:
                break
            os.write(self._own, CTRL_C.encode())
            if self.comes(until, 5):
                break
        return self.until(until)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._own, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def ended(self) -> int:
        """Wait for the end; the exit code, negative where a signal was the end."""
        until = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < until, f"still running: {self.written[-2000:]!r}"
            self._read(0.05)
        while self._read(0.05):
            pass
        return self.process.returncode


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

    def fork(self, command: Sequence[str], stdin: int, stdout: int, stderr: int = 2) -> int:
        request = json.dumps({"cwd": os.getcwd(), "environment": dict(os.environ), "command": list(command)})
        return self._asked(request, [stdin, stdout, stderr])

    def exit_code(self, pid: int) -> int:
        """Return the exit code of a process that has ended, negative where a signal was the end."""
        return self._asked(json.dumps({"ended": pid}), [])

    def _asked(self, request: str, descriptors: Sequence[int]) -> int:
        socket.send_fds(self._line, [request.encode()], descriptors)
        reply = self._line.recv(100)
        assert reply, "the process that workers are forked from has ended; standard error says why"
        return int(reply)


@functools.cache
def _parent() -> _Parent:
    return _Parent()


class ForkedProcess:
    """Python code in a process that is forked from a warm one: a tenth of the time of a process that starts.

    It has the folder and the environment of the test; what it prints, also to standard error, goes to a file.
    """

    def __init__(self, code: str, output: Path) -> None:
        self.output = output
        with open(os.devnull, "rb") as nothing, output.open("wb") as file:
            self.pid = _parent().fork([code], nothing.fileno(), file.fileno(), file.fileno())
        self._end: int | None = os.pidfd_open(self.pid)  # a zombie, too, has one: its parent waits only when asked
        self._watch = threading.Timer(PATIENCE_S, self.send_signal, [signal.SIGKILL])
        self._watch.daemon = True
        self._watch.start()

    def send_signal(self, number: int) -> None:
        if self._end is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._end, number)

    def exit_code(self) -> int:
        """Wait for the end; return the exit code, negative where a signal was the end."""
        assert self._end is not None
        ends = select.poll()
        ends.register(self._end, select.POLLIN)
        ends.poll()
        self._watch.cancel()
        os.close(self._end)
        self._end = None
        return _parent().exit_code(self.pid)


def serve() -> str:
    """Fork a worker for each request that comes; in the worker, this returns what it has to run."""
    line = socket.socket(fileno=os.dup(0))
    gc.freeze()
    exit_codes: dict[int, int] = {}
    while True:
        request, descriptors, _, _ = socket.recv_fds(line, LONGEST_REQUEST, 3)
        exit_codes |= _bury()
        if not request:
            os._exit(0)
        asked = json.loads(request)
        if "ended" in asked:
            line.send(str(exit_codes.pop(asked["ended"])).encode())
            continue
        if pid := os.fork():
            line.send(str(pid).encode())
            for descriptor in descriptors:
                os.close(descriptor)
            continue
        line.close()
        return _become(asked, descriptors)


def _bury() -> dict[int, int]:
    """Return the exit codes of those that ended: the test process waited for them, and this one is their parent."""
    exit_codes = {}
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            exit_codes[ended[0]] = os.waitstatus_to_exitcode(ended[1])
    return exit_codes


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
    wait_until(lambda: threading.active_count() == 1, "the end of all threads but the one that forks")


if __name__ == "__main__":
    warm_up()
    exec(serve())
