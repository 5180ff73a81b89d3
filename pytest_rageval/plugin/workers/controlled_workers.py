"""Hooks of the controlling process for xdist's workers: what they are told, what they leave, how far they are."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from pytest_rageval.http.call_limit import BackOff
from pytest_rageval.model import EvalCase
from pytest_rageval.plugin.active import ActiveSession
from pytest_rageval.plugin.display.progress_line import WorkersProgress
from pytest_rageval.plugin.items import node_name, without_group
from pytest_rageval.plugin.workers.blocks import SCHEDULER, are_blocks_wanted
from pytest_rageval.plugin.workers.scheduling import BlockScheduler
from pytest_rageval.plugin.workers.worker_notes import WorkerNotes

PATIENCE = 0.3
"""Seconds in which workers may end by themselves at a second signal."""


class ControlledWorkers:
    """Hooks over one active session whose cases the workers of xdist ask."""

    def __init__(
        self, active: ActiveSession, expected: dict[str, EvalCase], cannot_write: Callable[[OSError], NoReturn]
    ) -> None:
        """`expected`: the controller's cases by node id, filled here once the workers have collected."""
        self._active = active
        self._session = active.session
        self._config = active.config
        self._expected = expected
        self._cannot_write = cannot_write
        self._notes = WorkerNotes(self._session)

    @property
    def back_off(self) -> BackOff | None:
        """How far all workers together held their questions back; None where there were none."""
        return self._notes.back_off

    def arrange_blocks(self) -> None:
        """Let each worker get its cases as one block, unless somebody says how tests are handed out."""
        if self._config.getoption("dist") == "loadgroup":
            self._say_what_is_wrong_with_groups()
        if are_blocks_wanted(self._config):
            self._config.pluginmanager.register(BlockScheduler(self._expected, self._session), SCHEDULER)

    def _say_what_is_wrong_with_groups(self) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            terminal.write_line(
                "rageval: --dist loadgroup waits for ever where a worker dies, and fails under some versions of pytest "
                "(pytest-xdist issue 1386); use --dist load or loadfile",
                yellow=True,
            )

    def show_progress(self, cases: int) -> None:
        """`cases`: how many are to be asked, as far as it is known before the workers have selected."""
        trials = self._active.settings.repeat
        progress = WorkersProgress(
            self._config, lambda: self._active.writer.rows.values(), lambda: (len(self._expected) or cases) * trials
        )
        if progress.is_wanted:
            self._config.pluginmanager.register(progress, "rageval-progress")

    def kill(self) -> bool:
        """End the workers by force, after a moment; True if there are none any more.

        xdist itself gives them ten seconds, more than who presses Ctrl-C twice will wait.
        """
        controller = self._config.pluginmanager.get_plugin("dsession")
        if controller is None:
            return True
        group = getattr(getattr(controller, "nodemanager", None), "group", None)
        if group is None:
            return False
        group.terminate(timeout=PATIENCE)
        return True

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        run = self._active.run
        if self._config.pluginmanager.hasplugin(SCHEDULER):
            node.workerinput["rageval_blocks"] = "yes"
        node.workerinput["rageval_checked"] = os.pathsep.join(map(str, self._session.collected))
        if run is not None and run.keeper is not None:
            node.workerinput["rageval_config_hash"] = run.config_hash
            node.workerinput["rageval_run"] = str(run.writer.folder.path)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if not self._expected:
            cases = {f"{case.source.file}::{node_name(case.id)}": case for case in self._active.all_cases()}
            self._expected.update(
                (nodeid, cases[plain]) for nodeid in ids for plain in without_group(nodeid) if plain in cases
            )

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._notes.take_over(node)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """A case whose worker died is an error, recorded like any other."""
        case = self._expected.get(crashitem)
        if case is not None:
            report.when = "setup"
            try:
                self._active.writer.crashed(case, str(report.longrepr))
            except OSError as error:
                self._cannot_write(error)
