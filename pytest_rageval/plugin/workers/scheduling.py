"""Hands each worker of xdist its block of the cases at once; other tests go out as xdist hands them out.

A worker that dies while it asks ahead may have died of any case that was in flight. So none is blamed: all that it had
go to another worker, which does not ask ahead, and if one of them is deadly, that will be seen there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest
from xdist.scheduler.load import LoadScheduling  # type: ignore[import-untyped]

from pytest_rageval.plugin.session import EvalSession
from pytest_rageval.plugin.workers.blocks import block, worker_number
from pytest_rageval.text import counted


class BlockScheduling(LoadScheduling):  # type: ignore[misc] # because xdist tells no types
    """xdist's own scheduler, but for how cases go out at first, and for what a worker leaves that dies."""

    collection: list[str] | None
    numnodes: int
    node2pending: dict[Any, list[int]]
    pending: list[int]

    def __init__(self, config: pytest.Config, log: Any, cases: Collection[str], session: EvalSession) -> None:
        """`cases`: their node ids, complete once every worker has collected."""
        super().__init__(config, log)
        self._cases, self._session = cases, session

    def schedule(self) -> None:
        collections = list(self.node2collection.values())
        if self.collection is None and all(collection == collections[0] for collection in collections):
            self.collection = collections[0]
            self.maxschedchunk = len(self.collection)
            self._hand_out(self.collection)
        super().schedule()

    def _hand_out(self, collection: list[str]) -> None:
        """The cases to the workers that were there from the beginning; all else is kept for later."""
        cases = [index for index, nodeid in enumerate(collection) if nodeid in self._cases]
        workers = self._by_number()
        for number in range(self.numnodes):
            if number in workers and (own := block(cases, number, self.numnodes)):
                self.node2pending[workers[number]].extend(own)
                workers[number].send_runtest_some(own)
        taken = {index for pending in self.node2pending.values() for index in pending}
        self.pending[:] = [index for index in range(len(collection)) if index not in taken]

    def remove_node(self, node: Any) -> str | None:
        left = self.node2pending.get(node)
        number = worker_number(node.gateway.id)
        if not left or number is None or number >= self.numnodes or not self._can_restart():
            return self._as_xdist_does(node)
        assert self.collection is not None
        if self.collection[left[0]] not in self._cases:
            return self._as_xdist_does(node)
        del self.node2pending[node]
        if self.collection[left[0]] in self._session.ended:  # it died between the outcome and the end of its test
            del left[0]
        self.pending[:0] = left
        return None

    def _as_xdist_does(self, node: Any) -> str | None:
        """The test that ran there is blamed, and what else was left is for whoever is free."""
        crashed: str | None = super().remove_node(node)
        return crashed

    def _can_restart(self) -> bool:
        return str(self.config.option.maxworkerrestart) != "0"

    def _by_number(self) -> Mapping[int | None, Any]:
        return {worker_number(node.gateway.id): node for node in self.nodes}


class BlockScheduler:
    """The hook by which xdist takes it."""

    def __init__(self, cases: Collection[str], session: EvalSession) -> None:
        self._cases, self._session = cases, session

    @pytest.hookimpl(tryfirst=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> BlockScheduling:
        self._scheduling = BlockScheduling(config, log, self._cases, self._session)
        return self._scheduling

    @pytest.hookimpl
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Before the scheduler hears of it: say what a worker has left that died."""
        left = self._scheduling.node2pending.get(node)
        if left and error and error != "keyboard-interrupt":
            tests = counted(len(left), "test")
            self._session.notes.append(f"worker {node.gateway.id} died; the {tests} that it had left went to another")
