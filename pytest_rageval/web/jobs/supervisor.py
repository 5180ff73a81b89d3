"""The parent process of one run: writes its log, forwards a cancellation, and records its end.

It has its own session, so that the run outlives the server and the next server knows its end.
`python -m pytest_rageval.web.jobs.supervisor FOLDER` reads the credentials to mask from standard input, as a JSON list.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from pytest_rageval.io.atomic import write_json
from pytest_rageval.io.masking import Mask
from pytest_rageval.web.jobs.job_files import ENDED, LOG, RUN_PROCESS, JobLog, identify, read_job

GRACE_S = 10.0
"""Seconds until a run that ignores a signal gets the next one: SIGINT, SIGTERM, SIGKILL."""
LONGEST_PIECE = 2**20
"""Maximum bytes of a printed line; longer lines are dropped, because a cut could split a credential."""


class Supervisor:
    """The supervisor of one `rageval run` in its job's folder."""

    def __init__(self, folder: Path, mask: Mask) -> None:
        self._folder, self._mask = folder, mask
        self._run: subprocess.Popen[bytes] | None = None
        self._is_cancelled = False
        self._signals = iter((signal.SIGINT, signal.SIGTERM, signal.SIGKILL))

    def run(self) -> None:
        """Run the command and record its end, however it ends."""
        signal.signal(signal.SIGTERM, lambda *_: self._cancel())
        job = read_job(self._folder)
        if not self._is_cancelled:
            self._run = subprocess.Popen(  # noqa: S603 because the arguments are ours and no shell reads them
                [sys.executable, "-m", "pytest_rageval", "run", *job.arguments],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            if (identity := identify(self._run.pid)) is not None:
                write_json(self._folder / RUN_PROCESS, identity.model_dump())
            if self._is_cancelled:
                self._signal()
            assert self._run.stdout is not None
            with JobLog(self._folder / LOG, self._mask) as log:
                for line in _lines(self._run.stdout):
                    with suppress(OSError):  # on a full disk the run goes on without its log
                        log.add(line)
        code = None if self._run is None else self._run.wait()
        ended = datetime.now(UTC).isoformat(timespec="seconds")
        write_json(self._folder / ENDED, {"exit_code": code, "ended": ended, "is_cancelled": self._is_cancelled})

    def _cancel(self) -> None:
        if not self._is_cancelled:
            self._is_cancelled = True
            self._signal()

    def _signal(self) -> None:
        """Send the next signal, and schedule the one after it in case the run does not end."""
        number = next(self._signals, None)
        if self._run is None or number is None or self._run.poll() is not None:
            return
        self._run.send_signal(number)
        later = threading.Timer(GRACE_S, self._signal)
        later.daemon = True
        later.start()


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    while line := stream.readline(LONGEST_PIECE):
        is_whole = line.endswith(b"\n") or len(line) < LONGEST_PIECE
        while not is_whole:
            rest = stream.readline(LONGEST_PIECE)
            is_whole = rest.endswith(b"\n") or len(rest) < LONGEST_PIECE
            line = f"(a line of more than {LONGEST_PIECE:,} bytes was left out)".encode()
        yield line


if __name__ == "__main__":
    Supervisor(Path(sys.argv[1]), Mask(json.load(sys.stdin))).run()
