"""The workers of xdist: their shares of cases, their input and output, and their end at a second signal.

xdist hands tests out in small portions: a worker sees hardly two of its own, and waits for a server one call after
another. So each worker has a contiguous block of the cases, which both sides can compute, and prefetches in it.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import pytest
from xdist.report import report_collection_diff  # type: ignore[import-untyped]

from pytest_rageval.http.served_rate import BackOff
from pytest_rageval.plugin.active import ActiveSession
from pytest_rageval.plugin.batches import plan_batches
from pytest_rageval.plugin.items import EvalItem, node_name, without_group
from pytest_rageval.plugin.session import EvalSession
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.session import RunSession
from pytest_rageval.text import counted

PORTION = 8
"""Cases that a worker is handed at a time: enough that it never waits for more."""
PATIENCE = 0.3
"""Seconds for workers to end by themselves after a second signal."""
_NOTES, _BACK_OFF = "rageval_notes", "rageval_back_off"
"""Names in xdist's `workeroutput`."""
T = TypeVar("T")
WORKERS = "rageval-workers"
"""The name under which the hooks for workers are registered."""


def block(things: Sequence[T], worker: int | None, workers: int) -> Sequence[T]:
    """Return the contiguous part of one worker, numbered from 0; all parts are equally long, or one longer.

    Nothing for a worker that was started in place of one that died: what it gets is not known before.
    """
    if worker is None or worker >= workers:
        return things[:0]
    size, longer = divmod(len(things), workers)
    start = worker * size + min(worker, longer)
    return things[start : start + size + (worker < longer)]


def worker_number(worker_id: str) -> int | None:
    """Return the number of a worker of xdist: 3 of `gw3`; None of any other name."""
    match = re.fullmatch(r"gw(\d+)", worker_id)
    return int(match[1]) if match else None


class BlockScheduling:
    """xdist's scheduler protocol: each initial worker has a block of cases; other tests go to free workers.

    A worker is handed few tests at a time. The rest of a worker that dies goes to free workers.
    """

    def __init__(self, config: pytest.Config, cases: Collection[str], session: EvalSession) -> None:
        """`cases`: their node ids, complete once every worker has collected."""
        self._config, self._cases, self._session = config, cases, session
        self._tests: list[str] = []
        """Node ids as all workers have collected them; tests are named by their positions here."""
        self._collected: dict[Any, list[str]] = {}
        self._handed: dict[Any, list[int]] = {}
        """The unfinished tests of each worker."""
        self._blocks: dict[Any, deque[int]] = {}
        """The rest of each worker's block."""
        self._shared: list[int] = []

    @property
    def nodes(self) -> list[Any]:
        return list(self._handed)

    @property
    def collection_is_completed(self) -> bool:
        workers = next((node.workerinput["workercount"] for node in self._collected), 1)
        return len(self._collected) >= workers

    @property
    def tests_finished(self) -> bool:
        """Return True if all is handed out: a worker begins its last test when it is told to end."""
        is_handed_out = not self._shared and not any(self._blocks.values())
        return self.collection_is_completed and is_handed_out and all(len(own) < 2 for own in self._handed.values())

    @property
    def has_pending(self) -> bool:
        return any((self._shared, *self._blocks.values(), *self._handed.values()))

    def add_node(self, node: Any) -> None:
        self._handed[node] = []

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Take a worker's collection, unless it arrived too late and was told to end."""
        if node in self._handed and (not self._tests or collection == self._tests):
            self._collected[node] = list(collection)

    def schedule(self) -> None:
        if not self._tests:
            (first, tests), *others = self._collected.items()
            for node, collection in others:
                names = first.gateway.id, node.gateway.id
                if text := report_collection_diff(tests, collection, *names):
                    report = pytest.CollectReport(names[1], "failed", text, [])
                    self._config.hook.pytest_collectreport(report=report)
            if all(collection == tests for _, collection in others):
                self._tests = tests
                self._divide()
        for node in self.nodes if self._tests else ():
            self._hand_out(node)

    def _divide(self) -> None:
        """Give a block to each initial worker."""
        cases = [index for index, nodeid in enumerate(self._tests) if nodeid in self._cases]
        for node in self.nodes:
            number, workers = worker_number(node.gateway.id), node.workerinput["workercount"]
            if number is not None and number < workers:
                self._blocks[node] = deque(block(cases, number, workers))
        owned = {index for own in self._blocks.values() for index in own}
        self._shared = [index for index in range(len(self._tests)) if index not in owned]

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:  # noqa: ARG002 of xdist
        self._handed[node].remove(item_index)
        self._hand_out(node)

    def mark_test_pending(self, item: str) -> None:
        self._shared.insert(0, self._tests.index(item))
        for node in self.nodes:
            self._hand_out(node)

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> None:
        raise NotImplementedError

    def _hand_out(self, node: Any) -> None:
        """Hand a worker more, of its own block first; its share of what all may take shrinks, as xdist's does."""
        own, handed = self._blocks.get(node), self._handed[node]
        share = len(self._shared) // len(self._handed)
        portion: list[int] = []
        if node.shutting_down:
            return
        if own:
            if len(handed) <= PORTION // 2:
                portion = [own.popleft() for _ in range(min(PORTION, len(own)))]
        elif not self._shared:
            node.shutdown()
        elif len(handed) < max(2, share // 4):
            most = max(2, share // 2) - len(handed)
            portion, self._shared = self._shared[:most], self._shared[most:]
        if portion:
            handed += portion
            with suppress(OSError):  # it died: xdist says so in a moment, and what it was handed goes to another
                node.send_runtest_some(portion)

    def remove_node(self, node: Any) -> str | None:
        """Return the test to blame for the death of a worker, if there is one."""
        is_block = node in self._blocks and str(self._config.option.maxworkerrestart) != "0"
        left, is_busy = self.left_of(node), bool(self._handed.pop(node))
        self._blocks.pop(node, None)
        blamed = self._tests[left[0]] if is_busy else None
        if is_block and blamed in self._cases:
            if blamed in self._session.ended:  # the worker died between the outcome and the end of its test
                del left[0]
            self._shared[:0] = left
            return None
        self._shared += left[is_busy:]
        for other in self.nodes:
            self._hand_out(other)
        return blamed

    def left_of(self, node: Any) -> list[int]:
        """Return the tests of a worker that have not ended, in their order."""
        return [*self._handed.get(node, ()), *self._blocks.get(node, ())]


class ControlledWorkers:
    """Hooks over an active session whose cases the workers of xdist ask."""

    def __init__(self, active: ActiveSession, cannot_write: Callable[[OSError], NoReturn]) -> None:
        self._active = active
        self._session = active.session
        self._config = active.config
        self._cannot_write = cannot_write
        self._scheduling: BlockScheduling | None = None
        self.back_off: BackOff | None = None
        """How far all workers together delayed their questions; None without workers."""
        self._are_blocks_arranged = False

    def arrange_blocks(self) -> None:
        """Let each worker get its cases as one block, unless --dist or a plugin sets how tests are distributed."""
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if self._config.getoption("dist") == "loadgroup" and terminal is not None:
            terminal.write_line(
                "rageval: --dist loadgroup waits for ever where a worker dies, and fails under some versions of pytest "
                "(pytest-xdist issue 1386); use --dist load or loadfile",
                yellow=True,
            )
        option, schedulers = self._config.option, self._config.hook.pytest_xdist_make_scheduler.get_hookimpls()
        self._are_blocks_arranged = (
            option.dist == "load"
            and self._config.known_args_namespace.dist == "no"
            and option.maxschedchunk is None
            and all(scheduler.plugin_name in ("dsession", WORKERS) for scheduler in schedulers)
        )

    def kill(self) -> bool:
        """End the workers by force, after a moment; return True if none are left.

        xdist itself gives them ten seconds, more than who presses Ctrl-C twice will wait.
        """
        controller = self._config.pluginmanager.get_plugin("dsession")
        group = getattr(getattr(controller, "nodemanager", None), "group", None)
        if group is not None:
            group.terminate(timeout=PATIENCE)
        return controller is None or group is not None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        run = self._active.run
        if self._are_blocks_arranged:
            node.workerinput["rageval_blocks"] = "yes"
        node.workerinput["rageval_checked"] = os.pathsep.join(map(str, self._session.collected))
        if run is not None and run.own_writer is not None:
            node.workerinput["rageval_config_hash"] = run.config_hash
            node.workerinput["rageval_run"] = str(run.writer.folder.path)
            node.workerinput["rageval_namesakes"] = "\n".join(run.plan.place_rules.golds.ambiguous)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if not self._active.expected:
            cases = {f"{case.source.file}::{node_name(case.id)}": case for case in self._active.all_cases()}
            self._active.expected.update(
                (nodeid, cases[plain]) for nodeid in ids for plain in without_group(nodeid) if plain in cases
            )

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config) -> BlockScheduling | None:
        if self._are_blocks_arranged:
            self._scheduling = BlockScheduling(config, self._active.expected, self._session)
        return self._scheduling

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take a worker's notes and the tests that a dead one left, before the scheduler hears of it."""
        output: dict[str, Any] = getattr(node, "workeroutput", None) or {}
        notes = self._session.notes
        notes += [note for note in output.get(_NOTES, ()) if note not in notes]
        if _BACK_OFF in output:
            self.back_off = (self.back_off or BackOff()) + BackOff(**output[_BACK_OFF])
        left = self._scheduling.left_of(node) if self._scheduling is not None else ()
        if left and error and error != "keyboard-interrupt":
            notes.append(
                f"worker {node.gateway.id} died; the {counted(len(left), 'test')} that it had left went to another"
            )

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Record the case whose worker died as an error."""
        case = self._active.expected.get(crashitem)
        if case is not None:
            report.when = "setup"
            try:
                self._active.writer.crashed(case, str(report.longrepr))
            except OSError as error:
                self._cannot_write(error)


class Worker(ActiveSession):
    """The session of a worker."""

    def __init__(self, session: EvalSession) -> None:
        super().__init__(session)
        self.config.pluginmanager.register(self, WORKERS)

    def opened(self, own_test: pytest.Item | None = None) -> RunSession:  # noqa: ARG002 because nothing is opened here
        """Return the run, joined at the first case."""
        if self.run is not None:
            return self.run
        worker_input = self.session.worker_input
        folder = RunFolder(Path(worker_input("rageval_run"))) if worker_input("rageval_run") else None
        worker = worker_input("workerid")
        prepared = self.prepared.knowing(filter(None, worker_input("rageval_namesakes").split("\n")))
        self.run = run = self._start(RunSession.join(prepared, folder, worker, worker_input("rageval_config_hash")))
        if worker_input("rageval_blocks"):
            items = [item for item in self.session.of_pytest.items if isinstance(item, EvalItem)]
            own = block(items, worker_number(worker), self.session.workers)
            plan_batches(item for item in own if not run.is_done(item.case))
        return run

    def pytest_sessionfinish(self) -> None:
        """Hand notes, and how far calls were delayed, to the controller before xdist sends its output."""
        output: dict[str, Any] = self.config.workeroutput  # type: ignore[attr-defined] # because xdist puts it there
        output[_NOTES] = list(self.session.notes)
        if self.run is not None:
            output[_BACK_OFF] = asdict(self.run.prefetcher.back_off)
