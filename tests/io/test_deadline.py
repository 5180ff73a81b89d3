"""A deadline for a call that may never return."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from pytest_rageval.io.deadline import MissedDeadline, call_within


def forever() -> None:
    while True:
        pass


def swallowing() -> str:
    """Catch the first end of the call, as careless code does."""
    try:
        time.sleep(3600)
    except BaseException:  # noqa: BLE001 because careless code does
        time.sleep(3600)
    return "never"


@pytest.fixture
def no_timer() -> Iterator[None]:
    """Put the time-out of this test aside, which is a timer too."""
    left, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    handler = signal.getsignal(signal.SIGALRM)
    yield
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, left, interval)


def in_a_thread(call: Callable[[], object]) -> object:
    """Call on another thread; return the result or the exception."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 because the test looks at it
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    return results[0]


def test_what_a_call_returns_or_raises_is_passed_on():
    assert call_within(5, lambda: "done") == "done"
    assert in_a_thread(lambda: call_within(5, lambda: "done")) == "done"
    with pytest.raises(KeyError):
        call_within(5, lambda: os.environ["MISSING_VARIABLE"])
    assert isinstance(in_a_thread(lambda: call_within(5, lambda: os.environ["MISSING_VARIABLE"])), KeyError)


@pytest.mark.parametrize("call", [forever, lambda: time.sleep(3600), swallowing])
def test_a_call_that_does_not_return_is_ended(call: Callable[[], object]):
    began = time.monotonic()
    with pytest.raises(MissedDeadline):
        call_within(0.1, call)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("call", [forever, lambda: time.sleep(30)])
def test_a_call_on_another_thread_is_left_behind(call: Callable[[], object]):
    began = time.monotonic()
    assert isinstance(in_a_thread(lambda: call_within(0.1, call)), MissedDeadline)
    assert time.monotonic() - began < 10


def test_a_loop_on_another_thread_ends_and_burns_no_time():
    running = threading.active_count()
    in_a_thread(lambda: call_within(0.1, forever))
    deadline = time.monotonic() + 10
    while threading.active_count() > running and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == running


@pytest.mark.usefixtures("no_timer")
def test_the_timer_and_the_handler_of_others_are_given_back():
    heard: list[int] = []
    handler = signal.signal(signal.SIGALRM, lambda number, _: heard.append(number))
    signal.setitimer(signal.ITIMER_REAL, 100)
    with contextlib.suppress(MissedDeadline):
        call_within(0.2, lambda: time.sleep(3600))
    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    assert 98 < left < 99.9
    assert not heard
    signal.signal(signal.SIGALRM, handler)


@pytest.mark.usefixtures("no_timer")
def test_an_earlier_deadline_of_others_goes_first():
    class TheirsError(Exception):
        pass

    def theirs(_number: int, _frame: object) -> None:
        raise TheirsError

    signal.signal(signal.SIGALRM, theirs)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with pytest.raises(TheirsError):
        call_within(30, lambda: time.sleep(60))


@pytest.mark.usefixtures("no_timer")
def test_nothing_goes_off_after_a_call_that_ended_in_time():
    call_within(0.1, lambda: None)
    time.sleep(0.3)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


LEFT_BEHIND = """
import threading, time
from pytest_rageval.io.deadline import MissedDeadline, call_within

def run():
    try:
        call_within(0.1, lambda: time.sleep(3600))
    except MissedDeadline:
        print("missed")

thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


@pytest.mark.child_process
def test_a_call_that_was_left_behind_does_not_keep_the_process_from_ending():
    done = subprocess.run([sys.executable, "-c", LEFT_BEHIND], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "missed\n", "")
