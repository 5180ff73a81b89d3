"""The role of a worker of xdist: it joins the run of its controller, and hands over what it noted."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from pytest_rageval.plugin.active import ActiveSession
from pytest_rageval.plugin.batches import plan_batches
from pytest_rageval.plugin.block_scheduling import block, worker_number
from pytest_rageval.plugin.items import EvalItem, unit_of
from pytest_rageval.plugin.workers import BACK_OFF, NOTES
from pytest_rageval.run.ongoing_run import OngoingRun
from pytest_rageval.runs.folder import RunFolder

LOOKED_EVERY_S = 0.2
"""Seconds: a second Ctrl-C ends all workers within half a second; ended by execnet alone, they went on for six."""


class Worker:
    """Hooks of a worker's session."""

    def __init__(self, active: ActiveSession) -> None:
        self._active = active

    def open_run(self, own_test: pytest.Item | None) -> OngoingRun:  # noqa: ARG002 because nothing is opened here
        """Join the run of the controller, at the first case."""
        threading.Thread(target=_end_with, args=[os.getppid()], name="rageval-controller", daemon=True).start()
        active = self._active
        worker_input = active.session.worker_input
        folder = RunFolder(Path(worker_input("rageval_run"))) if worker_input("rageval_run") else None
        worker = worker_input("workerid")
        namesakes = filter(None, worker_input("rageval_namesakes").split("\n"))
        added_metrics = worker_input("rageval_added_metrics").split()
        prepared = active.prepared.knowing(namesakes, added_metrics)
        run = OngoingRun.join(prepared, folder, worker, worker_input("rageval_config_hash"))
        if worker_input("rageval_blocks"):
            items = [item for item in active.session.of_pytest.items if isinstance(item, EvalItem)]
            own = block(items, worker_number(worker), active.session.workers, lambda item: unit_of(item.nodeid))
            plan_batches(item for item in own if not run.is_done(item.case))
        return run

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        """Remove the records from a report once xdist has sent it: pytest keeps all reports, 5 MB for 1,000 cases."""
        result = yield
        report.__dict__.pop("rageval", None)
        return result

    def pytest_sessionfinish(self) -> None:
        """Hand notes, and how far calls were delayed, to the controller before xdist sends its output."""
        active = self._active
        output: dict[str, Any] = active.config.workeroutput  # type: ignore[attr-defined] # because xdist puts it there
        output[NOTES] = list(active.session.notes)
        if active.run is not None:
            output[BACK_OFF] = asdict(active.run.prefetcher.back_off)

    def pytest_unconfigure(self) -> None:
        """Release what the run holds."""
        self._active.close()


def _end_with(controller: int) -> None:
    """End this process once its controller has ended.

    execnet ends it as well, but only after 5 seconds where a call hangs: until then it makes calls that cost money.
    """
    while os.getppid() == controller:
        time.sleep(LOOKED_EVERY_S)
    # `sys.exit` would end this thread alone.
    os._exit(pytest.ExitCode.INTERRUPTED)
