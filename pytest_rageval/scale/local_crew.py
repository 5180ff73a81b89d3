"""Workers on this machine: processes that get portions through standard input and send events back."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import IO, Any

from pytest_rageval.http.shared_pause import WORKERS_OF
from pytest_rageval.io.importing import described_exception
from pytest_rageval.model import EvalCase
from pytest_rageval.run.prepare import Preparation
from pytest_rageval.scale.assignment import Assignment, WorkerShare, assignment
from pytest_rageval.scale.dispatch import GOODBYE_S, BlockArrival, Event, PortionEnd, WorkerLoss, WorkerStart
from pytest_rageval.scale.portion_worker import ProcessWorker
from pytest_rageval.targets.answer_records import AnswerRecord, SharesAnswers
from pytest_rageval.targets.target import BaseTarget

WAIT_S = 0.5
"""Seconds between two looks while no event comes, so that Ctrl-C is noticed on every platform."""
MOST_WAITING = 16
"""How many blocks may wait in the memory of the command before workers wait."""
WORK = "import sys; sys.path[:] = {!r}; from pytest_rageval.scale.local_crew import work; work()"


class LocalCrew:
    """Worker processes of one run."""

    def __init__(self, prepared: Preparation, config_hash: str, target: BaseTarget | None = None) -> None:
        """Store what workers need; `target` is that of the command, which has checked it."""
        self._prepared = prepared
        self._config_hash = config_hash
        self._answers = target if isinstance(target, SharesAnswers) else None
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._arrived: queue.Queue[tuple[int, Event | list[str]]] = queue.Queue(MOST_WAITING)
        """Events and notes, with the id of the process that sent them."""
        self._receivers: list[threading.Thread] = []
        self._idle: set[int] = set()

    def start(self, share: WorkerShare) -> None:
        self._end(share.number)
        # In a session of its own, so that Ctrl-C reaches only the command. The assignment goes through the pipe: it
        # may hold credentials, which other users could read on a command line.
        environment = {**os.environ, WORKERS_OF: f"{self._config_hash}{os.getpid()}"}
        process = subprocess.Popen(  # noqa: S603 because it is this interpreter
            [sys.executable, "-c", WORK.format(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env=environment,
        )
        self._processes[share.number] = process
        receiver = threading.Thread(target=self._receive, args=(process, share.number), daemon=True)
        self._receivers.append(receiver)
        receiver.start()
        checked = None if self._answers is None else self._answers.checked()
        self._send(share.number, assignment(self._prepared, share, checked).model_dump_json())

    def give(self, worker: int, cases: Sequence[EvalCase]) -> None:
        self._idle.discard(worker)
        records = None if self._answers is None else self._answers.records_of(cases)
        self._send(worker, (cases, self._config_hash, records))

    def events(self) -> Collection[Event]:
        with suppress(queue.Empty):
            process_id, event = self._arrived.get(timeout=WAIT_S)
            # Of the process that has the number now: its predecessor's last words do not count.
            if not isinstance(event, list) and self._processes[event.worker].pid == process_id:
                if isinstance(event, WorkerStart | PortionEnd):
                    self._idle.add(event.worker)
                return [event]
        return []

    def notes(self) -> list[str]:
        """Close targets, judges and caches after the last case, and return their notes."""
        for worker in self._idle:
            self._send(worker, None)
        notes: dict[str, None] = {}
        waiting = {self._processes[worker].pid for worker in self._idle}
        until = time.monotonic() + GOODBYE_S
        while waiting:
            patience = until - time.monotonic()
            if patience <= 0:
                break
            with suppress(queue.Empty):
                process_id, event = self._arrived.get(timeout=patience)
                if isinstance(event, list):
                    notes |= dict.fromkeys(event)
                waiting.discard(process_id)  # with its notes, or because it died with nothing left to do
        return list(notes)

    def close(self) -> None:
        """End all workers at once."""
        for worker in list(self._processes):
            self._end(worker)
        while any(receiver.is_alive() for receiver in self._receivers):
            with suppress(queue.Empty):
                self._arrived.get(timeout=0.01)  # a receiver waits for room

    def _send(self, worker: int, message: object) -> None:
        stdin = self._processes[worker].stdin
        assert stdin is not None
        with suppress(BrokenPipeError):  # the worker is gone; its receiver reports that
            pickle.dump(message, stdin)
            stdin.flush()

    def _receive(self, process: subprocess.Popen[bytes], worker: int) -> None:
        """Forward the events of a worker until it ends."""
        assert process.stdout is not None
        with process.stdout, suppress(EOFError, pickle.UnpicklingError, OSError, ValueError):
            while True:
                self._arrived.put((process.pid, pickle.load(process.stdout)))  # noqa: S301 because it is our own process
        self._arrived.put((process.pid, WorkerLoss(worker, _ending(process.wait()))))

    def _end(self, worker: int) -> None:
        process = self._processes.pop(worker, None)
        if process is not None:
            assert process.stdin is not None
            process.kill()
            # Waited for, or it would stay a zombie until the command ends.
            process.wait()
            with suppress(BrokenPipeError):
                process.stdin.close()


def _ending(code: int) -> str:
    if code < 0:  # subprocess has the signal as a negative code
        return f"it ended with {signal.Signals(-code).name}"
    return f"it ended with exit code {code}"


# ── in the worker's process ───────────────────────────────────────────────────────────────────────────────────


def work() -> None:
    """Work for the process at the other end of these pipes until it is gone."""
    to_command = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep output of the project's code out of the events
    messages = _messages(sys.stdin.buffer)
    written: str = next(messages)
    number = Assignment.model_validate_json(written).share.number
    worker = ProcessWorker()
    _tell(to_command, WorkerStart(number, worker.begin(written)))
    for message in messages:
        if message is None:
            _tell(to_command, worker.end())
            return
        for event in _evaluated(worker, number, *message):
            _tell(to_command, event)


def _evaluated(
    worker: ProcessWorker,
    number: int,
    cases: Sequence[EvalCase],
    config_hash: str,
    answers: Sequence[AnswerRecord] | None,
) -> Iterator[Event]:
    try:
        for block in worker.blocks(cases, config_hash, answers):
            yield BlockArrival(number, block)
        yield PortionEnd(number)
    except Exception as error:  # noqa: BLE001 because the project's code may raise anything
        yield WorkerLoss(number, described_exception(error))


def _messages(stream: IO[bytes]) -> Iterator[Any]:
    """Yield the messages of the command; end this process at once when the command is gone."""
    arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()

    # On a thread, since a worker that asks reads no pipe: it would go on asking after the command was killed.
    def receive() -> None:
        with suppress(EOFError, OSError):
            while True:
                arrived.put(pickle.load(stream))  # noqa: S301 because it is the command that started this process
        # `sys.exit` would end this thread alone.
        os._exit(0)

    threading.Thread(target=receive, daemon=True).start()
    while True:
        yield arrived.get()


def _tell(stream: IO[bytes], event: object) -> None:
    pickle.dump(event, stream)
    stream.flush()
