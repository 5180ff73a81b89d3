"""A command on a pseudo-terminal: what it shows is waited for, and keys are pressed as a person does."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Self

from processes import PATIENCE_S, kill

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
