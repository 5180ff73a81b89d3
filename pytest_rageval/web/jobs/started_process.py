"""Processes of the command that outlive the server: each holds the lock of its folder until it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM, Signals

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_json
from pytest_rageval.io.lock import LockHeld, is_locked
from pytest_rageval.web.jobs.job import CANCELLED, ENDED, LOG, PROCESS, number_in
from pytest_rageval.web.versions.version_folder import wait_for_lock

JOB_PROCESS = "pytest_rageval.web.jobs.job_process"
GRACE_S = 10.0
"""Seconds until a process that ignores a signal gets the next one: SIGINT, SIGTERM, SIGKILL."""
LOCK_S = 2.0
"""Seconds to wait for the lock of a folder: a request for its state holds it for a moment."""


def start_process(
    folder: Path, arguments: Sequence[str], environment: Mapping[str, str], working_folder: Path | None = None
) -> None:
    """Start `rageval ARGUMENTS` for a folder, which gets its log and its end; SettingsError if one runs there.

    working_folder  whose configuration counts; by default the folder itself
    """
    try:
        lock = wait_for_lock(folder, LOCK_S)
    except LockHeld:
        raise SettingsError(f"job {folder.name} runs already") from None
    try:
        with (folder / LOG).open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 because no shell reads them
                [sys.executable, "-m", JOB_PROCESS, str(folder.resolve()), str(lock), *arguments],
                cwd=working_folder or folder,
                # The log is read as UTF-8, whatever the locale of the server.
                env={**environment, "PYTHONIOENCODING": "utf-8:backslashreplace"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,  # what the process prints before it masks its own output
                # The lock belongs to the open file: the process keeps it when the server closes its own descriptor.
                pass_fds=(lock,),
                # Ctrl-C in the server's terminal ends the server, and no run.
                start_new_session=True,
            )
    finally:
        os.close(lock)
    try:
        write_json(folder / PROCESS, {"pid": process.pid})
    except OSError:  # nothing goes on that cannot be cancelled
        process.kill()
        process.wait()
        raise
    # Wait for it, so that its pid is released; the thread ends with the process or with the server.
    threading.Thread(target=process.wait, name=f"job {folder.name}", daemon=True).start()


def cancel_process(folder: Path) -> None:
    """Interrupt the process of a folder, and use force if it does not end. Do nothing if it has ended."""
    if (folder / ENDED).exists() or not is_locked(folder):
        return
    with suppress(OSError):  # a full disk must not prevent the cancellation
        (folder / CANCELLED).touch()
    _send(folder, SIGINT)
    _send_later(GRACE_S, folder, SIGTERM)
    _send_later(2 * GRACE_S, folder, SIGKILL)


def _send(folder: Path, number: Signals) -> None:
    """Signal the process of a folder if it still holds the lock; else the pid may be another's."""
    pid = number_in(folder / PROCESS, "pid")
    if pid is not None and is_locked(folder):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _send_later(seconds: float, folder: Path, number: Signals) -> None:
    later = threading.Timer(seconds, _send, (folder, number))
    later.daemon = True
    later.start()
