"""The workers of xdist as their controller sees them: input and output, and their end at a second signal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib.metadata import version
from typing import Any, NoReturn

import pytest

from pytest_rageval.http.served_rate import BackOff
from pytest_rageval.model import EvalCase
from pytest_rageval.plugin.active import ActiveSession
from pytest_rageval.plugin.block_scheduling import BlockScheduling
from pytest_rageval.plugin.items import case_node_name, without_group
from pytest_rageval.text import counted

REPEATING = frozenset({"loadfile", "loadscope"})
"""Distributions of xdist 3.8 that count the test whose worker died among those still to be run."""
PATIENCE = 0.3
"""Seconds for workers to end by themselves after a second signal."""
NOTES = "rageval_notes"
BACK_OFF = "rageval_back_off"
"""Names in xdist's `workeroutput`."""
WORKERS = "rageval-workers"
"""The name under which the hooks for workers are registered."""


def are_groups_void() -> bool:
    """Return True if `--dist loadgroup` keeps no group on one worker, whatever its tests are.

    xdist up to 3.8 writes the group into the node id, which pytest from 9.2 on takes from elsewhere (pytest-xdist issue
    1386): 18 tests in three groups, two workers, and each group was on both.
    """
    written = re.findall(r"\d+", version("pytest-xdist"))
    return pytest.version_tuple >= (9, 2) and tuple(map(int, written[:2])) <= (3, 8)


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
        self._properties: dict[str, list[tuple[str, object]]] = {}
        """The JUnit XML properties of tests whose teardown is not reported yet."""
        self._are_blocks_arranged = False

    def arrange_blocks(self, cases: Iterable[EvalCase]) -> None:
        """Let each worker get its cases as one block, unless --dist or a plugin sets how tests are distributed.

        Conversations get blocks under `--dist load` and `worksteal` too: those would divide them among workers. Under
        `loadgroup`, each is a group of its own; where groups hold for no test, conversations get blocks as well.
        """
        option = self._config.option
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if option.dist == "loadgroup" and terminal is not None:
            terminal.write_line(
                "rageval: --dist loadgroup waits for ever where a worker dies, and fails under some versions of pytest "
                "(pytest-xdist issue 1386); use --dist load",
                yellow=True,
            )
        # xdist sets "load" where -n is given without --dist.
        is_default = option.dist == "load" and self._config.known_args_namespace.dist == "no"
        schedulers = {each.plugin_name for each in self._config.hook.pytest_xdist_make_scheduler.get_hookimpls()}
        has_others = bool(schedulers - {"dsession", WORKERS})
        divides_conversations = option.dist in ("load", "worksteal")
        if option.dist == "loadgroup":
            divides_conversations = are_groups_void()
        is_divided = divides_conversations and any(case.turn is not None for case in cases)
        is_ours_to_arrange = is_divided or (is_default and option.maxschedchunk is None)
        self._are_blocks_arranged = is_ours_to_arrange and not has_others

    def kill(self) -> bool:
        """End the workers by force, after a moment; return True if none are left.

        xdist itself gives them ten seconds, more than who presses Ctrl-C twice will wait. Where these had begun, the
        group knows its workers no more: they end with this process, and may write until then.
        """
        controller = self._config.pluginmanager.get_plugin("dsession")
        if controller is None:
            return True
        group = getattr(getattr(controller, "nodemanager", None), "group", None)
        if not group:
            return False
        group.terminate(timeout=PATIENCE)
        return True

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        run = self._active.run
        if self._are_blocks_arranged:
            node.workerinput["rageval_blocks"] = "yes"
        # The controller has reported their problems: workers need not once more.
        node.workerinput["rageval_checked"] = os.pathsep.join(map(str, self._session.collected))
        if run is not None and run.own_writer is not None:
            node.workerinput["rageval_config_hash"] = run.config_hash
            node.workerinput["rageval_run"] = str(run.writer.folder.path)
            node.workerinput["rageval_added_metrics"] = " ".join(run.plan.added_metrics)
            node.workerinput["rageval_namesakes"] = "\n".join(run.plan.place_rules.golds.ambiguous)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        # Each worker reports the same ids; the first report is enough.
        if not self._active.expected:
            cases = {f"{case.source.file}::{case_node_name(case)}": case for case in self._active.all_cases()}
            for nodeid in ids:
                for plain in without_group(nodeid):
                    if plain in cases:
                        self._active.expected[nodeid] = cases[plain]

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> BlockScheduling | None:
        if self._are_blocks_arranged:
            self._scheduling = BlockScheduling(config, self._active.expected, self._session, log.blocksched)
        return self._scheduling

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Let the reports of a test share their properties, as they do in one process.

        pytest keeps all reports, and each comes from a worker with copies of its own: 8 MB for 1,000 cases, and 2 MB
        where tests do not share their equal properties either.
        """
        if report.when == "call" and report.user_properties:
            named = [_shared_property(str(name), value) for name, value in report.user_properties]
            report.user_properties = self._properties[report.nodeid] = named
        elif report.when == "teardown":
            of_call = self._properties.pop(report.nodeid, None)
            if of_call == report.user_properties:
                report.user_properties = of_call

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take a worker's notes and the tests that a dead one left, before the scheduler hears of it."""
        output: dict[str, Any] = getattr(node, "workeroutput", None) or {}
        notes = self._session.notes
        # Workers have the same settings, and so the same notes: each is told once.
        notes += [note for note in output.get(NOTES, ()) if note not in notes]
        if BACK_OFF in output:
            self.back_off = (self.back_off or BackOff()) + BackOff(**output[BACK_OFF])
        # xdist names Ctrl-C an error of each worker: none of them died.
        if error and error != "keyboard-interrupt":
            notes += self._notes_on_death(node)

    def _notes_on_death(self, node: Any) -> Iterator[str]:
        died = f"worker {node.gateway.id} died"
        dist = self._config.option.dist
        if dist in REPEATING:
            yield f"{died}, and --dist {dist} gives its case to another; --dist load runs no case again"
        if self._scheduling is not None:
            taken = self._scheduling.handed_on(node)
            if taken:
                yield f"{died}; others take the {counted(len(taken), 'test')} that it had left"

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Record the case whose worker died as an error; a plugin that repeats it replaces the record."""
        case = self._active.expected.get(crashitem)
        if case is not None:
            # pytest counts a failed setup as an error, which a death is, and a failed call as a failure.
            report.when = "setup"
            try:
                self._active.writer.crashed(case, str(report.longrepr))
            except OSError as error:
                self._cannot_write(error)


def _shared_property(name: str, value: object) -> tuple[str, object]:
    """Return a property of a report, the same tuple for equal numbers and texts: most scores are 0 or 1."""
    if isinstance(value, int | float | str):
        return _property(name, value, repr(value))
    return sys.intern(name), value


@lru_cache(maxsize=10_000)
def _property(name: str, value: object, text: str) -> tuple[str, object]:  # noqa: ARG001 because 1, 1.0 and True are equal
    return sys.intern(name), value
