"""A cluster of workers without any other process: what Ray does for a run, but in turn and on this thread."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pytest_rageval.prepare import Prepared
from pytest_rageval.scale.assignment import WorkerShare, assignment
from pytest_rageval.scale.block import Block
from pytest_rageval.scale.dispatch import Begun, Came, Ended, Event, Lost
from pytest_rageval.scale.portion_worker import PortionWorker


class CrewOfOneProcess:
    """Workers; after `loses` blocks one of them is lost, once."""

    def __init__(self, prepared: Prepared, config_hash: str, loses: int | None = None) -> None:
        self._prepared, self._config_hash, self._loses = prepared, config_hash, loses
        self._workers: dict[int, PortionWorker] = {}
        self._streams: dict[int, Iterator[Block]] = {}
        self._events: list[Event] = []

    def start(self, share: WorkerShare) -> None:
        self._workers[share.number] = worker = PortionWorker()
        self._streams.pop(share.number, None)
        self._events.append(Begun(share.number, worker.begin(assignment(self._prepared, share).to_json())))

    def give(self, worker: int, portion: str) -> None:
        self._streams[worker] = self._workers[worker].blocks(portion, self._config_hash)

    def events(self) -> Collection[Event]:
        events, self._events = self._events, []
        return events or [self._next(worker) for worker in list(self._streams)]

    def _next(self, worker: int) -> Event:
        if self._loses == 0:
            self._loses = None
            self._streams.pop(worker)
            return Lost(worker, "the machine is off")
        block = next(self._streams[worker], None)
        if block is None:
            del self._streams[worker]
            return Ended(worker)
        self._loses = self._loses and self._loses - 1
        return Came(worker, block)

    def notes(self) -> list[str]:
        return []

    def close(self) -> None:
        for worker in self._workers.values():
            worker.end()


class OneProcessCluster:
    """In the place of `RayCluster`, as the command sees it."""

    cpus = 2

    def __init__(self, address: str | None = None) -> None:
        self.address = address

    def crew(self, prepared: Prepared, config_hash: str) -> CrewOfOneProcess:
        return CrewOfOneProcess(prepared, config_hash)

    def close(self) -> None:
        """There is nothing to leave."""
