"""Ctrl-C ends a run at once, keeps what is finished, and ends the program as the run says, wherever it comes."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from functools import partial
from traceback import extract_tb
from typing import NoReturn

import pytest
from processes import ending, python, wait_until
from project import Project, a_case

from pytest_rageval.runs import interrupts
from pytest_rageval.runs.interrupts import Interrupts

SLOW = """
import asyncio, bot
async def answer(question):
    await asyncio.sleep(600 if "slow" in question else 0)
    return bot.answer(question)
"""


SLOW_SECOND = """
import asyncio, bot, itertools
asked = itertools.count()
async def answer(question):
    await asyncio.sleep(30 if next(asked) else 0)
    return bot.answer(question)
"""


@pytest.mark.child_process
@pytest.mark.parametrize("how", [[], ["-n", "2"]])
def test_ctrl_c_keeps_finished_cases_and_leaves_at_once(project: Project, how: list[str]):
    project.write("slow.py", SLOW)
    project.configure('target = "slow:answer"')
    project.cases([a_case(f"q{n}", "boiling" if n < 4 else "boiling slow") for n in range(12)])
    process = project.start(*how, stdout=subprocess.PIPE)
    finished = 4 if not how else 2
    wait_until(lambda: project.runs and len(_lines(project)) >= finished, "quick cases are recorded", process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    output = ending(process)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output.decode()
    metrics = project.metrics()
    assert metrics["partial"] is True
    assert metrics["outcomes"]["passed"] >= finished
    assert b"partial run" in output
    assert b"Traceback" not in output
    assert b"! Interrupted: by SIGINT !" in output
    assert b"KeyboardInterrupt" not in output


@pytest.mark.child_process
@pytest.mark.parametrize("how", [[], ["-n", "2"]])
def test_before_the_first_case_is_done_it_is_said_how_the_run_goes_on(project: Project, how: list[str]):
    project.configure('target = "slow:answer"')
    # With workers each case is asked when it comes to that: the second trial waits.
    project.cases([a_case("q0", "boiling slow" if not how else "boiling"), a_case("q1"), a_case("q2")])
    repeat = ["--rageval-repeat", "2"] if how else []
    project.write("slow.py", SLOW if not how else SLOW_SECOND)
    process = project.start(*how, *repeat, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_until(
        lambda: project.runs and any(file.stat().st_size for file in project.runs[-1].glob("observations*")),
        "an observation",
    )
    os.killpg(process.pid, signal.SIGINT)
    output = ending(process)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output.decode()
    resume = f"pytest --rageval-resume {project.runs[-1].name} finishes the run"
    assert resume in output.decode()
    assert b"KeyboardInterrupt" not in output


def _lines(project: Project) -> list[str]:
    path = project.runs[-1] / "results.jsonl"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.mark.child_process
@pytest.mark.parametrize(
    ("how", "gap"),
    [
        ([], 0.3),
        (["-n", "2"], 0.0),
        pytest.param([], 0.0, marks=pytest.mark.torture),
        pytest.param(["-n", "2"], 0.3, marks=pytest.mark.torture),
    ],
)
def test_a_second_ctrl_c_leaves_a_partial_run_whose_metrics_are_of_its_records(
    project: Project, how: list[str], gap: float
):
    project.write("slow.py", SLOW)
    project.configure('target = "slow:answer"')
    project.cases([a_case(f"q{n}", "boiling" if n < 40 else "boiling slow") for n in range(60)])
    process = project.start(*how, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_until(lambda: project.runs and len(_lines(project)) >= 10, "ten cases are recorded", process)
    process.send_signal(signal.SIGINT)
    time.sleep(gap)
    process.send_signal(signal.SIGINT)
    output = ending(process)  # long before the slow answers come
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output.decode()
    assert b"Traceback" not in output
    metrics = project.metrics()
    assert next(iter(metrics)) == "partial"
    assert metrics["partial"] is True
    assert metrics["total_tests"] == len(project.records()) == metrics["selection"]["recorded"]
    assert not list(project.runs[-1].glob("*-gw*"))


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
@pytest.mark.parametrize(
    ("module", "last"),
    [
        ("pytest", "end"),
        ("pytest_rageval", "hang"),
        pytest.param("pytest", "hang", marks=pytest.mark.torture),
        pytest.param("pytest_rageval", "end", marks=pytest.mark.torture),
    ],
)
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


def _leave() -> NoReturn:
    raise SystemExit(2)


def test_two_signals_end_the_session_where_the_first_was_swallowed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(interrupts, "HEEDED_WITHIN", 0.05)
    signals = Interrupts(_leave)
    signals.install()
    try:
        with pytest.raises(KeyboardInterrupt):  # swallowed
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 wherever we are when the second comes again
            signal.raise_signal(signal.SIGINT)
            time.sleep(600)  # which it wakes
    finally:
        signals.restore()
    assert signals.is_repeated
