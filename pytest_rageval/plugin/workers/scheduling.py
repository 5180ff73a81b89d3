"""Hands each worker of xdist the cases of its own block; other tests go out as xdist hands them out.

They go out in small portions: what a worker has been handed it runs, also where the session ends early.

A worker that dies while it asks ahead may have died of any case that was in flight. So none is blamed: all that it had
go to another worker, which does not ask ahead, and if one of them is deadly, that will be seen there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from xdist.scheduler.load import LoadScheduling  # type: ignore[import-untyped]

from pytest_rageval.plugin.session import EvalSession
from pytest_rageval.plugin.workers.blocks import block, worker_number
from pytest_rageval.text import counted

PORTION = 8
"""Cases that a worker is handed at a time: enough that it never waits for more."""


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
        self._blocks: dict[Any, deque[int]] = {}
        """What of its block each worker has still to be handed."""

    @property
    def tests_finished(self) -> bool:
        return not any(self._blocks.values()) and bool(super().tests_finished)

    @property
    def has_pending(self) -> bool:
        return any(self._blocks.values()) or bool(super().has_pending)

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Not of a worker that came when all was handed out, and was told to end; xdist forgets that when one dies."""
        if node in self.node2pending:
            super().add_node_collection(node, collection)

    def schedule(self) -> None:
        collections = list(self.node2collection.values())
        if self.collection is None and all(collection == collections[0] for collection in collections):
            self.collection = collections[0]
            self.maxschedchunk = len(self.collection)
            self._hand_out(self.collection)
        super().schedule()

    def _hand_out(self, collection: list[str]) -> None:
        """A block to each worker that was there from the beginning; all else is for whoever is free."""
        cases = [index for index, nodeid in enumerate(collection) if nodeid in self._cases]
        workers = {worker_number(node.gateway.id): node for node in self.nodes}
        for number in range(self.numnodes):
            if number in workers:
                self._blocks[workers[number]] = deque(block(cases, number, self.numnodes))
        owned = {index for own in self._blocks.values() for index in own}
        self.pending[:] = [index for index in range(len(collection)) if index not in owned]

    def check_schedule(self, node: Any, duration: float = 0) -> None:
        own = self._blocks.get(node)
        if not own:
            super().check_schedule(node, duration)
        elif not node.shutting_down and len(self.node2pending[node]) <= PORTION // 2:
            portion = [own.popleft() for _ in range(min(PORTION, len(own)))]
            self.node2pending[node] += portion
            node.send_runtest_some(portion)

    def remove_node(self, node: Any) -> str | None:
        left = self.left_of(node)
        if node not in self._blocks or not left or str(self.config.option.maxworkerrestart) == "0":
            return self._as_xdist_does(node)
        assert self.collection is not None
        if self.collection[left[0]] not in self._cases:
            return self._as_xdist_does(node)
        del self.node2pending[node], self._blocks[node]
        if self.collection[left[0]] in self._session.ended:  # it died between the outcome and the end of its test
            del left[0]
        self.pending[:0] = left
        return None

    def _as_xdist_does(self, node: Any) -> str | None:
        """The test that ran there is blamed, and what else was left is for whoever is free."""
        self.pending.extend(self._blocks.pop(node, ()))
        crashed: str | None = super().remove_node(node)
        return crashed

    def left_of(self, node: Any) -> list[int]:
        """The tests of a worker that have not ended, in the order in which it runs them."""
        return [*self.node2pending.get(node, ()), *self._blocks.get(node, ())]


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
        left = self._scheduling.left_of(node)
        if left and error and error != "keyboard-interrupt":
            tests = counted(len(left), "test")
            self._session.notes.append(f"worker {node.gateway.id} died; the {tests} that it had left went to another")
