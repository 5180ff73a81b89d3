"""Workers on a Ray cluster: one actor each, whose records arrive as a stream of objects."""

from __future__ import annotations

import importlib
import logging
import os
import re
import signal
import socket
from collections.abc import Collection, Sequence
from typing import Any

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.importing import described_exception
from pytest_rageval.model import EvalCase
from pytest_rageval.run.prepare import Preparation
from pytest_rageval.scale.assignment import WorkerShare, assignment
from pytest_rageval.scale.dispatch import GOODBYE_S, BlockArrival, Event, PortionEnd, WorkerLoss, WorkerStart
from pytest_rageval.scale.portion_worker import ProcessWorker
from pytest_rageval.targets.target import BaseTarget

BEFORE_IMPORT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""Turn off Ray's usage statistics, and keep it from changing the variables that select a GPU."""
STORE_BYTES = 256 << 20
"""The object store of a cluster that we start: it holds blocks, of which few wait at a time."""
JOB = "rageval run --engine ray"
WAIT_S = 0.5
PATIENCE_S = 5.0
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""The connection preface of an HTTP/2 client, with empty settings."""
SETTINGS_FRAME = 4
"""The type of the frame that a server of HTTP/2 sends first (RFC 9113, 3.4)."""


class RayCluster:
    """A connection to a cluster, or a cluster on this machine that ends with it."""

    def __init__(self, address: str | None = None) -> None:
        """Connect. `address`: HOST:PORT of the head; `auto`: a cluster that runs here; `local` or None: start one.

        Raise SettingsError if Ray is not installed or there is no such cluster.
        """
        address = address or os.environ.get("RAY_ADDRESS") or "local"
        check_address(address)
        self._ray = _imported_ray()
        own = {"include_dashboard": False, "object_store_memory": STORE_BYTES} if address == "local" else {}
        terminate = signal.getsignal(signal.SIGTERM)
        try:
            self._ray.init(address=address, log_to_driver=False, configure_logging=False, **own)
        except Exception as error:  # noqa: BLE001  Ray has no common one for other versions, no cluster, no token
            raise SettingsError(f"--engine ray: {address}: {_first_line(error)}") from None
        finally:
            # Ray replaces this handler by one that ends the process before the run's files are finished.
            signal.signal(signal.SIGTERM, terminate)

    @property
    def cpus(self) -> int:
        """Return the number of CPUs of all machines."""
        return int(self._ray.cluster_resources().get("CPU", 0))

    def crew(self, prepared: Preparation, config_hash: str, _: BaseTarget | None = None) -> RayCrew:
        """Return workers for one run; they make the target themselves, as other machines have files of their own."""
        return RayCrew(self._ray, prepared, config_hash)

    def close(self) -> None:
        """Leave the cluster; safe to call twice."""
        self._ray.shutdown()


class RayCrew:
    """The workers of one run, each on one CPU of the cluster."""

    def __init__(self, ray: Any, prepared: Preparation, config_hash: str) -> None:
        self._ray = ray
        self._prepared = prepared
        self._config_hash = config_hash
        # No restarts by Ray: a portion would be asked, and paid for, as a whole again.
        self._class = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(ProcessWorker)
        self._actors: dict[int, Any] = {}
        self._waits: dict[Any, int] = {}
        """The awaited answers and streams of blocks, with the number of the worker."""

    def start(self, share: WorkerShare) -> None:
        self._end(share.number)
        actor = self._class.remote()
        self._actors[share.number] = actor
        # Not an argument of the actor: the cluster's head stores those, and the assignment may hold credentials.
        assigned = assignment(self._prepared, share).model_dump_json()
        self._waits[actor.begin.remote(assigned)] = share.number

    def give(self, worker: int, cases: Sequence[EvalCase]) -> None:
        stream = self._actors[worker].blocks.options(num_returns="streaming").remote(cases, self._config_hash)
        self._waits[stream] = worker

    def events(self) -> Collection[Event]:
        ready, _ = self._ray.wait(list(self._waits), num_returns=1, timeout=WAIT_S)
        return [self._event(awaited) for awaited in ready]

    def _event(self, awaited: Any) -> Event:
        worker = self._waits.pop(awaited)
        is_stream = not isinstance(awaited, self._ray.ObjectRef)
        try:
            value = self._ray.get(next(awaited) if is_stream else awaited)
        except StopIteration:
            return PortionEnd(worker)
        except self._ray.exceptions.RayTaskError as error:
            # Raised on the worker, by our code or the user's.
            return WorkerLoss(worker, _first_line(getattr(error, "cause", None) or error))
        except self._ray.exceptions.RayError as error:
            return WorkerLoss(worker, _reason(error))
        if not is_stream:
            return WorkerStart(worker, value)
        self._waits[awaited] = worker  # at the end, so that each worker has its turn
        return BlockArrival(worker, value)

    def _end(self, worker: int) -> None:
        actor = self._actors.pop(worker, None)
        self._waits = {awaited: number for awaited, number in self._waits.items() if number != worker}
        if actor is not None:
            self._ray.kill(actor, no_restart=True)

    def notes(self) -> list[str]:
        """Close targets, judges and caches after the last case, and return their notes."""
        pending = self._pending
        answers = [actor.end.remote() for number, actor in self._actors.items() if number not in pending]
        if not answers:
            return []
        ready, _ = self._ray.wait(answers, num_returns=len(answers), timeout=GOODBYE_S)
        notes: dict[str, None] = {}
        for answer in ready:
            try:
                notes |= dict.fromkeys(self._ray.get(answer))
            except self._ray.exceptions.RayError:
                continue  # it died after its last case: all of its records have arrived
        return list(notes)

    @property
    def _pending(self) -> Collection[int]:
        """Return the workers that have not begun or are at work."""
        return set(self._waits.values())

    def close(self) -> None:
        """End all workers at once."""
        for worker in list(self._actors):
            self._end(worker)


def _imported_ray() -> Any:
    for name, value in BEFORE_IMPORT.items():
        os.environ.setdefault(name, value)
    try:
        ray = importlib.import_module("ray")
        worker: Any = importlib.import_module("ray._private.worker")
        job: Any = importlib.import_module("ray._private.utils")
    except ImportError:
        raise SettingsError("--engine ray: Ray is not installed; pip install 'pytest-rageval[ray]'") from None
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    # Ray always prints messages about lost processes to standard output; we report them ourselves.
    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *_, **__: None
    # Ray shows the whole command line in the cluster's list of jobs, and a target's URL may hold a password.
    if hasattr(job, "get_entrypoint_name"):
        job.get_entrypoint_name = lambda: JOB
    return ray


def _reason(error: Exception) -> str:
    """Return why a worker is gone, in a few words of Ray's."""
    text = str(error)
    cause = re.search(r"(?:Worker exit detail: |The actor is dead because (?:its|the) )([^\n]*?)(?:\. |\n|$)", text)
    return cause[1].rstrip(".") if cause else _first_line(error)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else described_exception(error)


def check_address(address: str) -> None:
    """Raise SettingsError unless the head of a cluster answers at this address."""
    if address in ("auto", "local"):
        return
    if "://" in address:
        raise SettingsError(
            f"--address {address}: write HOST:PORT of the cluster's head, as `ray start --head` says it"
        )
    host, _, port = address.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise SettingsError(f"--address {address}: expected HOST:PORT, as in 10.0.0.1:6379, auto or local")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), PATIENCE_S) as connection:
            # The preface would be no handshake: that somebody listens must do.
            if os.environ.get("RAY_USE_TLS") == "1":
                return
            connection.settimeout(PATIENCE_S)
            # A server of gRPC answers the preface at once, and other servers with something else.
            connection.sendall(PREFACE)
            reply = connection.recv(9)
    except OSError as error:
        reason = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise SettingsError(
            f"--address {address}: cannot be reached within {PATIENCE_S:g} s: {reason}; is the cluster's head running?"
        ) from None
    if len(reply) < 4 or reply[3] != SETTINGS_FRAME:
        raise SettingsError(f"--address {address}: what listens there is no head of a Ray cluster; is the port right?")
