"""How a program ends whose run was interrupted: with that of the run, wherever a Ctrl-C comes."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable
from functools import partial
from traceback import extract_tb
from typing import NoReturn

import pytest
from processes import ending, python
from project import Project, a_case

from pytest_rageval.runs import interrupts
from pytest_rageval.runs.interrupts import Interrupts

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


@pytest.mark.child_process
def test_one_more_ctrl_c_while_python_ends_changes_nothing():
    ended = python("-c", ENDING)
    assert (ended.returncode, ended.stderr) == (2, "")


# ── between the end of the run and that of the program ────────────────────────────────────────────────────────


BOT = """
import signal, threading, time
from pytest_rageval.runs import interrupts

def interrupt():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

def hang():
    while threading.main_thread().is_alive():
        time.sleep(0.005)
    while True:
        interrupt()
        time.sleep(0.3)

def end():
    while threading.main_thread().is_alive():
        time.sleep(0.005)
    interrupt()

def answer(question):
    if "slow" in question:
        threading.Thread(target=LAST, daemon=False).start()
        interrupt()
        time.sleep(SLOW)
    return "at 100 degrees"
"""


@pytest.mark.child_process
@pytest.mark.parametrize("module", ["pytest", "pytest_rageval"])
@pytest.mark.parametrize("last", ["end", "hang"])
def test_a_ctrl_c_after_the_run_is_for_what_holds_the_program_up(project: Project, module: str, last: str):
    patience = "interrupts.HEEDED_WITHIN = 600\n" if last == "end" else ""
    project.write("late.py", BOT.replace("LAST", last).replace("SLOW", "0.5") + patience)
    project.configure('target = "late:answer"\nconcurrency = 1')
    project.cases([a_case("q1"), a_case("q2", "slow"), a_case("q3"), a_case("q4")])
    verb = ["run"] if module == "pytest_rageval" else []
    process = project.start_process("-m", module, *verb, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = ending(process).decode()
    assert process.returncode == 2, output
    assert ("Traceback" in output) == (last == "hang")


def test_a_program_that_calls_for_a_run_has_its_handlers_back(project: Project):
    project.write("late.py", BOT.replace("LAST", "time.time").replace("SLOW", "0.5"))
    project.configure('target = "late:answer"\nconcurrency = 1')
    project.cases([a_case("q1"), a_case("q2", "slow"), a_case("q3"), a_case("q4")])
    handler = signal.getsignal(signal.SIGINT)
    for run in (project.run, partial(project.rageval, "run")):
        assert run().ret == pytest.ExitCode.INTERRUPTED
        assert signal.getsignal(signal.SIGINT) is handler


# ── where it comes ────────────────────────────────────────────────────────────────────────────────────────────


def _never() -> NoReturn:
    raise AssertionError("no second signal came")


def _raise_between_lines() -> None:
    code = compile("signal.raise_signal(signal.SIGINT)", "<code>", "exec")
    exec(code.replace(co_linetable=b""), {"signal": signal})


def _raise_within_pytest() -> None:
    _call_from_pytest(signal.raise_signal, signal.SIGINT)


def _call_from_pytest(function: Callable[..., object], argument: float) -> None:
    """Of a function in C, the innermost frame is pytest's."""
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        pytest.raises(SystemExit, function, argument)  # noqa: RUF061 because it is this that calls


@pytest.mark.parametrize("raise_signal", [_raise_between_lines, _raise_within_pytest])
def test_an_interrupt_waits_where_pytest_could_not_show_it(raise_signal: Callable[[], None]):
    signals = Interrupts(_never)
    signals.install()
    try:
        with pytest.raises(KeyboardInterrupt, match="by SIGINT") as caught:  # noqa: PT012 wherever we are then
            raise_signal()
            time.sleep(600)
    finally:
        signals.restore()
    assert extract_tb(caught.tb)[-2].filename == __file__, "what was interrupted is neither pytest's nor without a line"


def test_an_interrupt_of_what_waits_within_pytest_comes_a_while_later(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(interrupts, "HEEDED_WITHIN", 0.05)
    main = threading.main_thread().ident or 0
    signals = Interrupts(_never)
    signals.install()
    timer = threading.Timer(0.1, signal.pthread_kill, [main, signal.SIGINT])
    try:
        with pytest.raises(KeyboardInterrupt, match="by SIGINT"):  # noqa: PT012 it may come early
            timer.start()
            _call_from_pytest(time.sleep, 600)
    finally:
        signals.restore()
        timer.join(60)
