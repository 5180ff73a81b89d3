"""A session with cases on a worker of xdist: it joins the run that the controlling process has opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_rageval.plugin.active import ActiveSession
from pytest_rageval.plugin.items import EvalItem
from pytest_rageval.plugin.workers.blocks import block, worker_number
from pytest_rageval.plugin.workers.worker_notes import hand_over
from pytest_rageval.session import RunSession


class ActiveWorker(ActiveSession):
    """The state of a worker's session."""

    def opened(self, own_test: pytest.Item | None = None) -> RunSession:  # noqa: ARG002 because nothing is opened here
        """The run, joined at the first case."""
        if self.run is not None:
            return self.run
        worker_input = self.session.worker_input
        folder = Path(worker_input("rageval_run")) if worker_input("rageval_run") else None
        worker = worker_input("workerid")
        self.run = self._start(RunSession.join(self.prepared, folder, worker, worker_input("rageval_config_hash")))
        if worker_input("rageval_blocks"):
            items = [item for item in self.session.of_pytest.items if isinstance(item, EvalItem)]
            self.plan_batches(block(items, worker_number(worker), self.session.workers))
        return self.run

    def hand_over_notes(self) -> None:
        """At the end: what a person should know goes to the controlling process."""
        hand_over(self.session, self.run.prefetcher.slots.back_off if self.run is not None else None)
