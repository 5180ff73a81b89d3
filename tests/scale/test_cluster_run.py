"""A run on workers as the process that writes it sees it, and the address at which a cluster is looked for."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from project import SOME, Project, a_case
from stored_runs import stable_bytes

from pytest_rageval.cases.loading import load_file
from pytest_rageval.config.project import Project as Configured
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.model import EvalCase
from pytest_rageval.run.ongoing_run import OngoingRun
from pytest_rageval.run.prepare import Preparation, make_target, prepare, run_configuration
from pytest_rageval.scale import ray_cluster
from pytest_rageval.scale.assignment import WorkerShare, assignment
from pytest_rageval.scale.dispatch import (
    BlockArrival,
    ClusterRun,
    Event,
    PortionEnd,
    WorkerLoss,
    WorkerStart,
    crew_size,
)
from pytest_rageval.scale.portion_worker import PortionWorker
from pytest_rageval.scale.portions import Block
from pytest_rageval.scale.ray_cluster import check_address
from pytest_rageval.targets import answers_target
from pytest_rageval.targets.target import Target


class CrewOfOneProcess:
    """Workers; after `loses` blocks one of them is lost, once."""

    def __init__(self, prepared: Preparation, config_hash: str, loses: int | None = None) -> None:
        self._prepared, self._config_hash, self._loses = prepared, config_hash, loses
        self._workers: dict[int, PortionWorker] = {}
        self._streams: dict[int, Iterator[Block]] = {}
        self._events: list[Event] = []

    def start(self, share: WorkerShare) -> None:
        self._workers[share.number] = worker = PortionWorker()
        self._streams.pop(share.number, None)
        self._events.append(
            WorkerStart(share.number, worker.begin(assignment(self._prepared, share).model_dump_json()))
        )

    def give(self, worker: int, cases: Sequence[EvalCase]) -> None:
        self._streams[worker] = self._workers[worker].blocks(cases, self._config_hash)

    def events(self) -> Collection[Event]:
        events, self._events = self._events, []
        return events or [self._next(worker) for worker in list(self._streams)]

    def _next(self, worker: int) -> Event:
        if self._loses == 0:
            self._loses = None
            self._streams.pop(worker)
            return WorkerLoss(worker, "the machine is off")
        block = next(self._streams[worker], None)
        if block is None:
            del self._streams[worker]
            return PortionEnd(worker)
        self._loses = self._loses and self._loses - 1
        return BlockArrival(worker, block)

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

    def crew(self, prepared: Preparation, config_hash: str, _: Target) -> CrewOfOneProcess:
        return CrewOfOneProcess(prepared, config_hash)

    def close(self) -> None:
        """There is nothing to leave."""


@pytest.fixture
def recorded(project: Project) -> Project:
    """30 cases, the last of them without an answer."""
    project.cases([a_case(f"q{n}") for n in range(30)])
    answers = [{"id": f"q{n}", "answer": "Water boils at 100 degrees at sea level."} for n in range(29)]
    project.write("answers.jsonl", "".join(json.dumps(answer) + "\n" for answer in answers))
    project.configure('target = "answers:answers.jsonl"\nconcurrency = 2')
    return project


def opened(project: Project, **options: object) -> tuple[Preparation, tuple[EvalCase, ...], OngoingRun]:
    prepared = prepare(Configured(project.path, load_settings(project.path, options)))
    file = load_file(project.path / "evalcases/a.jsonl", project.path)
    config = run_configuration(prepared, file.cases, [file.path])
    return prepared, tuple(file.cases), OngoingRun.open(prepared, config)


def lines(folder: Path, name: str) -> list[tuple[str, int]]:
    records = map(json.loads, (folder / name).read_text().splitlines())
    return [(record["case_key"].rpartition("::")[2], record["trial"]) for record in records]


@pytest.mark.parametrize("loses", [None, 0, 1])
def test_every_trial_is_recorded_once_and_in_order_whatever_is_lost(recorded: Project, loses: int | None):
    prepared, cases, run = opened(recorded, repeat=2)
    crew = CrewOfOneProcess(prepared, run.config_hash, loses)
    cluster_run = ClusterRun(run, cases, crew, 2)
    assert sum(block.cases for block in cluster_run.blocks() if block is not None) == 30
    folder = run.writer.folder.path
    assert cluster_run.is_ordered
    expected = [(f"q{n}", trial) for n in range(30) for trial in range(2)]
    assert lines(folder, "results.jsonl") == expected
    assert lines(folder, "observations.jsonl") == expected
    assert cluster_run.dispatch.lost == (0 if loses is None else 1)
    assert run.broken_off is None
    crew.close()
    run.close()


class FailingCrew(CrewOfOneProcess):
    """Each case fails alike."""

    def start(self, share: WorkerShare) -> None:
        self._events.append(WorkerStart(share.number))

    def give(self, worker: int, cases: Sequence[EvalCase]) -> None:
        calls = (("http_4xx 401", "HTTP 401: who are you?"),) * len(cases)
        self._events += [BlockArrival(worker, Block(len(calls), b"", b"", calls=calls)), PortionEnd(worker)]


def test_where_the_first_calls_of_all_workers_fail_alike_the_others_are_not_made(recorded: Project):
    prepared, cases, run = opened(recorded)
    cluster_run = ClusterRun(run, cases, FailingCrew(prepared, run.config_hash), 2)
    assert sum(block.cases for block in cluster_run.blocks() if block is not None) < 30
    assert run.broken_off is not None
    assert "the first 16 calls all failed alike" in run.broken_off
    run.close()


@pytest.mark.parametrize(
    ("cases", "most", "concurrency", "expected"), [(100, 64, 16, 16), (100, 4, 16, 4), (3, 8, 16, 3), (100, 8, 1, 1)]
)
def test_each_worker_has_a_case_and_a_call_in_flight(
    recorded: Project, cases: int, most: int, concurrency: int, expected: int
):
    prepared = prepare(Configured(recorded.path, load_settings(recorded.path, {"concurrency": str(concurrency)})))
    assert crew_size(prepared, cases, most) == expected


CLUSTER = "pytest_rageval.cli.run.RayCluster"


def test_a_resumed_run_asks_workers_only_for_what_has_no_answer_yet(recorded: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(CLUSTER, OneProcessCluster)
    recorded.rageval("run", "--run-id", "one", "--allow-partial")
    recorded.rageval("run", "--run-id", "cut", "--allow-partial")
    cut = recorded.path / "reports/runs/cut"
    (cut / "metrics.json").unlink()
    for name, kept in (("results.jsonl", 5), ("observations.jsonl", 8)):
        (cut / name).write_text("".join((cut / name).read_text().splitlines(keepends=True)[:kept]))
    resumed = recorded.rageval("run", "--resume", "cut", "--engine", "ray", "--allow-partial")
    assert "22 cases on 2 workers" in resumed.outlines, "five have a result, three more an answer"
    assert stable_bytes(cut) == stable_bytes(recorded.path / "reports/runs/one")


def test_ctrl_c_while_the_cluster_is_left_takes_nothing_from_the_run(
    recorded: Project, monkeypatch: pytest.MonkeyPatch
):
    class Hurried(OneProcessCluster):
        def close(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(CLUSTER, Hurried)
    result = recorded.rageval("run", "--engine", "ray", "--allow-partial")
    assert result.ret == 0
    assert "interrupted" not in result.stderr.str()
    assert [line for line in result.outlines if line.startswith("report: ")]


def test_a_dry_run_needs_no_cluster(recorded: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(CLUSTER, None)
    assert recorded.rageval("run", "--engine", "ray", "--allow-partial", "--dry-run").ret == 0


@contextlib.contextmanager
def listening(reply: bytes | None) -> Iterator[str]:
    """A server that says this to whoever connects; None: that is silent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    connections.append(connection)
                    if reply is not None:
                        connection.recv(1)
                        connection.sendall(reply)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        for connection in connections:
            connection.close()
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("address", ["10.0.0.1", "head:", ":6379", "head:x", "head:0", "head:99999"])
def test_what_is_no_host_and_port_is_said(address: str):
    with pytest.raises(SettingsError, match=r"expected HOST:PORT, as in 10\.0\.0\.1:6379, auto or local"):
        check_address(address)


def test_the_address_of_ray_s_own_client_is_none():
    with pytest.raises(SettingsError, match="write HOST:PORT of the cluster's head"):
        check_address("ray://10.0.0.1:10001")


def test_where_nothing_listens_the_reason_is_said():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(SettingsError, match=r"cannot be reached within 5 s: Connection refused; is the cluster's head"):
        check_address(f"127.0.0.1:{port}")


def test_another_kind_of_server_is_no_cluster():
    with listening(b"HTTP/1.0 400 Bad Request\r\n\r\n") as address, pytest.raises(SettingsError, match="is the port r"):
        check_address(address)


def test_a_silent_server_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ray_cluster, "PATIENCE_S", 0.05)
    with listening(None) as address, pytest.raises(SettingsError, match=r"within 0\.05 s: no answer"):
        check_address(address)


def test_a_server_of_http_2_may_be_one():
    with listening(bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))) as address:
        check_address(address)


WRONG: list[tuple[str, list[str], str]] = [
    ("an unknown engine", ["--engine", "spark"], "'spark' is not one of 'process', 'ray'"),
    ("an address without Ray", ["--address", "127.0.0.1:6379"], "--address is for --engine ray; write that too"),
    ("no workers", ["--workers", "0"], "0 is not in the range x>=1"),
    ("nothing listens", ["--engine", "ray", "--address", "127.0.0.1:9"], "ERROR: --address 127.0.0.1:9: cannot be rea"),
]


@pytest.mark.parametrize(("what", "options", "message"), WRONG, ids=[what for what, _, _ in WRONG])
def test_what_is_wrong_is_exit_code_4_and_leaves_no_run(project: Project, what: str, options: list[str], message: str):
    project.cases(SOME)
    result = project.rageval("run", *options)
    assert result.ret == 4
    assert [line for line in result.errlines if message in line]
    assert "Traceback" not in result.stderr.str()
    assert not project.runs


def test_without_ray_the_remedy_is_named(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    project.cases(SOME)
    result = project.rageval("run", "--engine", "ray", "--address", "local")
    assert result.ret == 4
    assert result.errlines == ["ERROR: --engine ray: Ray is not installed; pip install 'pytest-rageval[ray]'"]
    assert not project.runs


def test_a_worker_is_told_where_answers_are_and_reads_no_file_that_was_checked(
    recorded: Project, monkeypatch: pytest.MonkeyPatch
):
    prepared, cases, run = opened(recorded)
    target = make_target(prepared.project)
    assert isinstance(target, answers_target.AnswersTarget)
    monkeypatch.delattr(answers_target, "load_answers")
    worker = PortionWorker()
    written = assignment(prepared, WorkerShare(0, 1, 2, None), target.checked()).model_dump_json()
    assert worker.begin(written) == []
    records: dict[str, dict[str, Any]] = {}
    for portion in (cases[:10], cases[10:]):
        for block in worker.blocks(portion, run.config_hash, target.records_of(portion)):
            records |= {record["case_key"]: record for record in map(json.loads, block.results.splitlines())}
    errors = {key: record["error"]["message"] for key, record in records.items() if record["error"]}
    assert len(records) == 30
    assert errors == {cases[29].key: f"answers.jsonl: no answer for {cases[29].key}"}
    worker.end()
    run.close()


def test_a_worker_refuses_an_answers_file_that_was_changed_after_it_was_checked(recorded: Project):
    prepared, _, run = opened(recorded)
    target = make_target(prepared.project)
    assert isinstance(target, answers_target.AnswersTarget)
    written = assignment(prepared, WorkerShare(0, 1, 2, None), target.checked()).model_dump_json()
    recorded.write("answers.jsonl", "")
    assert PortionWorker().begin(written) == ["answers.jsonl was changed while it was used; run again"]
    run.close()
