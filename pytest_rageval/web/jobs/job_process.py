"""The process of one job: `rageval run`, with its output masked in a log and its end written down.

It has its own session, so that the run outlives the server and the next server knows its end. The descriptor that it
inherits holds the lock of the job's folder: `python -m pytest_rageval.web.jobs.job_process FOLDER LOCK ARGUMENT…`.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.io.atomic import write_json
from pytest_rageval.io.masking import Mask
from pytest_rageval.text import printable
from pytest_rageval.web.jobs.job import ENDED, LOG, LONGEST_LINE, tail

LONGEST_PIECE = 2**20
"""Maximum bytes of a printed line; longer lines are dropped, because a cut could split a credential."""
MOST_BYTES = 2**20
"""Maximum size of the log: once it is larger, its older half is dropped."""
END_S = 5.0
"""Seconds that the rest of the output may take after the run: a grandchild may hold the pipe open."""
CRASHED = 3
STDOUT, STDERR = 1, 2
"""File descriptors."""
_CUT = b"(older lines were left out)\n"


def run_job(folder: Path, arguments: list[str]) -> None:
    """Run the command, and write down how it ended."""
    with masked_output(folder / LOG, Mask(load_settings(folder).secrets())):
        code = _run(arguments)
    write_json(folder / ENDED, {"exit_code": code})


def _run(arguments: list[str]) -> int:
    sys.argv = ["rageval", *arguments]
    try:
        runpy.run_module("pytest_rageval", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, int):
            return end.code
        return 0 if end.code is None else 1  # as Python itself does with any other object
    except BaseException:  # noqa: BLE001 because its trace belongs in the log
        traceback.print_exc()
        return CRASHED
    return 0


@contextmanager
def masked_output(path: Path, mask: Mask) -> Iterator[None]:
    """Write to a log, line by line and masked, what this process and its children print meanwhile."""
    source, sink = os.pipe()
    kept_stdout = os.dup(STDOUT)
    kept_stderr = os.dup(STDERR)
    # The descriptors rather than `sys.stdout`: children and C libraries write to them too.
    os.dup2(sink, STDOUT)
    os.dup2(sink, STDERR)
    os.close(sink)
    reader = threading.Thread(target=write_log, args=(os.fdopen(source, "rb"), path, mask), daemon=True)
    reader.start()
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        # The pipe ends once no descriptor writes to it, and with it the reader.
        os.dup2(kept_stdout, STDOUT)
        os.dup2(kept_stderr, STDERR)
        reader.join(END_S)


def write_log(stream: IO[bytes], path: Path, mask: Mask, most_bytes: int = MOST_BYTES) -> None:
    """Append the lines of a stream to a log. Each is masked before it is cut."""
    with path.open("ab", buffering=0) as log:
        for line in _lines(stream):
            text = printable(mask.output(line.decode("utf-8", "replace").rstrip("\r\n")))
            shown = text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}… ({len(text)} characters)"
            with suppress(OSError):  # on a full disk the run goes on without its log
                log.write(f"{shown}\n".encode("utf-8", "replace"))
                if log.tell() > most_bytes:
                    # From the next line on: half a line could begin inside of a mask.
                    kept = _CUT + tail(path, most_bytes // 2).partition(b"\n")[2]
                    log.truncate(0)
                    log.write(kept)


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream; read a line that is too long to its end without keeping it."""
    while line := stream.readline(LONGEST_PIECE):
        is_whole = line.endswith(b"\n") or len(line) < LONGEST_PIECE
        while not is_whole:
            rest = stream.readline(LONGEST_PIECE)
            is_whole = rest.endswith(b"\n") or len(rest) < LONGEST_PIECE
            line = f"(a line of more than {LONGEST_PIECE:,} bytes was left out)".encode()
        yield line


if __name__ == "__main__":
    lock = int(sys.argv[2])
    os.set_inheritable(lock, False)  # it ends with this process, not with one that it starts
    run_job(Path(sys.argv[1]), sys.argv[3:])
    os.close(lock)
