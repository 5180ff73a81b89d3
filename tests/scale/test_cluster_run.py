"""A run on workers as the process that writes it sees it: blocks kept, first calls that all fail, answers at hand."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from project import Project, a_case

from pytest_rageval.cases import load_file
from pytest_rageval.config.project import Project as Configured
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.model import EvalCase
from pytest_rageval.prepare import OpenRun, Prepared, open_run, prepare
from pytest_rageval.runs.disk.record_order import put_in_order
from pytest_rageval.scale.assignment import WorkerShare, assignment
from pytest_rageval.scale.block import Block
from pytest_rageval.scale.cluster_run import ClusterRun, crew_size
from pytest_rageval.scale.dispatch import Begun, Came, Ended, Event, Lost
from pytest_rageval.scale.portion_worker import PortionWorker


class CrewOfOneProcess:
    """The workers of a cluster without the cluster: `loses` blocks come, and then each stream is cut off, once."""

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

    def close(self) -> None:
        for worker in self._workers.values():
            worker.end()


@pytest.fixture
def recorded(project: Project) -> Project:
    """30 cases, the last of them without an answer."""
    project.cases([a_case(f"q{n}") for n in range(30)])
    answers = [{"id": f"q{n}", "answer": "Water boils at 100 degrees at sea level."} for n in range(29)]
    project.write("answers.jsonl", "".join(json.dumps(answer) + "\n" for answer in answers))
    project.configure('target = "answers:answers.jsonl"\nconcurrency = 2')
    return project


def opened(project: Project, **options: object) -> tuple[Prepared, tuple[EvalCase, ...], OpenRun]:
    prepared = prepare(Configured(project.path, load_settings(project.path, options)))
    file = load_file(project.path / "evalcases/a.jsonl", project.path)
    return prepared, tuple(file.cases), open_run(prepared, file.cases, [file.path])


def lines(folder: Path, name: str) -> list[tuple[str, int]]:
    records = map(json.loads, (folder / name).read_text().splitlines())
    return [(record["case_key"].rpartition("::")[2], record["trial"]) for record in records]


@pytest.mark.parametrize("loses", [None, 0, 1])
def test_every_trial_is_recorded_once_and_in_order_whatever_is_lost(recorded: Project, loses: int | None):
    prepared, cases, run = opened(recorded, repeat=2)
    assert run.writer is not None
    crew = CrewOfOneProcess(prepared, run.config_hash, loses)
    cluster_run = ClusterRun(prepared, run, cases, crew, 2)
    assert sum(block.cases for block in cluster_run.blocks() if block is not None) == 30
    folder = run.writer.folder.path
    assert put_in_order(folder) == []
    expected = [(f"q{n}", trial) for n in range(30) for trial in range(2)]
    assert lines(folder, "results.jsonl") == expected
    assert lines(folder, "observations.jsonl") == expected
    assert cluster_run.dispatch.lost == (0 if loses is None else 1)
    assert cluster_run.dead_end is None
    crew.close()
    run.close()


class FailingCrew:
    """Each case fails alike."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def start(self, share: WorkerShare) -> None:
        self._events.append(Begun(share.number))

    def give(self, worker: int, portion: str) -> None:
        calls = (("http_4xx 401", "HTTP 401: who are you?"),) * (portion.count("\n") + 1)
        self._events += [Came(worker, Block(len(calls), "", "", calls=calls)), Ended(worker)]

    def events(self) -> Collection[Event]:
        events, self._events = self._events, []
        return events


def test_where_the_first_calls_of_all_workers_fail_alike_the_others_are_not_made(recorded: Project):
    prepared, cases, run = opened(recorded)
    cluster_run = ClusterRun(prepared, run, cases, FailingCrew(), 2)
    assert sum(block.cases for block in cluster_run.blocks() if block is not None) < 30
    assert cluster_run.dead_end is not None
    assert "the first 16 calls all failed alike" in cluster_run.dead_end
    run.close()


@pytest.mark.parametrize(
    ("cases", "most", "concurrency", "expected"), [(100, 64, 16, 16), (100, 4, 16, 4), (3, 8, 16, 3), (100, 8, 1, 1)]
)
def test_each_worker_has_a_case_and_a_call_in_flight(
    recorded: Project, cases: int, most: int, concurrency: int, expected: int
):
    prepared = prepare(Configured(recorded.path, load_settings(recorded.path, {"concurrency": str(concurrency)})))
    assert crew_size(prepared, cases, most) == expected
