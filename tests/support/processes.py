"""Processes of tests and what is waited for: each wait has an end, and nothing outlives its test."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

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
def running(command: Sequence[str | Path], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process in a group of its own, which is killed at the end and, lest a read wait for ever, after a while."""
    process = subprocess.Popen(command, start_new_session=True, **options)
    watch = threading.Timer(2 * PATIENCE_S, kill, [process])
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
