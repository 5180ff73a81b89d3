"""How a program ends whose run was interrupted: with the run's exit status, however late one more Ctrl-C comes."""

from __future__ import annotations

import subprocess
import sys

ENDING = """
import os, signal
from pytest_rageval.runs.interrupts import Interrupts

class Last:
    kill, pid, number = staticmethod(os.kill), os.getpid(), int(signal.SIGINT)

    def __del__(self):  # Python has taken its own handlers away by now
        self.kill(self.pid, self.number)

signals = Interrupts(leave=lambda: None)
signals.install()
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    pass
signals.restore()
last = Last()
raise SystemExit(2)
"""


def test_one_more_ctrl_c_while_python_ends_changes_nothing():
    ended = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, timeout=30)
    assert (ended.returncode, ended.stderr) == (2, b"")
