"""A scheduler for the workers of xdist: each has a contiguous block of the cases, which both sides can compute.

xdist hands tests out in small portions: a worker sees hardly two of its own, and waits for a server one call after
another. With a block it prefetches.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import pytest
from xdist.report import report_collection_diff  # type: ignore[import-untyped]

from pytest_rageval.plugin.items import unit_of
from pytest_rageval.plugin.light_session import LightSession

PORTION = 8
"""Cases that a worker is handed at a time: enough that it never waits for more."""
T = TypeVar("T")


def no_log(*_words: object) -> None:
    """Log nothing."""


def block(things: Sequence[T], worker: int | None, workers: int, unit: Callable[[T], object] = id) -> Sequence[T]:
    """Return the contiguous part of one worker, numbered from 0; all parts are equally long, or one longer.

    Neighbours of one unit, the turns of a conversation, stay together in the part that the first of them is in.
    Nothing for a worker that was started in place of one that died: what it gets is not known before.
    """
    if worker is None or worker >= workers:
        return things[:0]
    size, longer = divmod(len(things), workers)

    def start_of(number: int) -> int:
        # The first blocks, as many as `longer`, have one more.
        return end_of_unit(things, number * size + min(number, longer), unit)

    return things[start_of(worker) : start_of(worker + 1)]


def end_of_unit(things: Sequence[T], at: int, unit: Callable[[T], object]) -> int:
    """Return the first position from `at` on that divides no unit."""
    while 0 < at < len(things) and unit(things[at]) == unit(things[at - 1]):
        at += 1
    return at


def worker_number(worker_id: str) -> int | None:
    """Return the number of a worker of xdist: 3 of `gw3`; None of any other name."""
    match = re.fullmatch(r"gw(\d+)", worker_id)
    return int(match[1]) if match else None


class BlockScheduling:
    """xdist's scheduler protocol: each initial worker has a block of cases; other tests go to free workers.

    A worker is handed few tests at a time. The rest of a worker that dies goes to free workers.

    Plugins read more of a scheduler than xdist's protocol has, under the names that xdist's own schedulers share:

    config           of the session
    log              takes what a developer of xdist wants to see
    collection       node ids as all workers have collected them, whose positions name tests; None before they agree
    node2collection  node ids by worker, `registered_collections` in half of xdist's schedulers
    node2pending     the unfinished tests that each worker was handed
    pending          the tests that no worker was handed
    """

    def __init__(
        self,
        config: pytest.Config,
        cases: Collection[str],
        session: LightSession,
        log: Callable[..., object] = no_log,
    ) -> None:
        """`cases`: their node ids, complete once every worker has collected."""
        self.config = config
        self.log = log
        self.collection: list[str] | None = None
        self.node2collection: dict[Any, list[str]] = {}
        self.registered_collections = self.node2collection
        self.node2pending: dict[Any, list[int]] = {}
        self._cases = cases
        self._session = session
        self._blocks: dict[Any, deque[int]] = {}
        """The rest of each worker's block."""
        self._shared: list[int] = []

    @property
    def nodes(self) -> list[Any]:
        return list(self.node2pending)

    @property
    def numnodes(self) -> int:
        """Return the number of workers whose collections are awaited."""
        return next((int(node.workerinput["workercount"]) for node in self.node2collection), 1)

    @property
    def pending(self) -> list[int]:
        waiting = list(self._shared)
        for own in self._blocks.values():
            waiting += own
        return waiting

    @property
    def collection_is_completed(self) -> bool:
        return len(self.node2collection) >= self.numnodes

    @property
    def tests_finished(self) -> bool:
        """Return True if all is handed out: a worker begins its last test when it is told to end."""
        is_handed_out = self.collection_is_completed and not self._holds_back
        return is_handed_out and all(len(handed) < 2 for handed in self.node2pending.values())

    @property
    def has_pending(self) -> bool:
        return self._holds_back or any(self.node2pending.values())

    @property
    def _holds_back(self) -> bool:
        """Return True if any test was handed to no worker. Asked after each event: without making a list of them."""
        return bool(self._shared) or any(self._blocks.values())

    def add_node(self, node: Any) -> None:
        self.node2pending[node] = []

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Take a worker's collection, unless it arrived too late and was told to end."""
        if node not in self.node2pending:
            return
        # A worker that replaces a dead one must have collected the same.
        if self.collection is None or list(collection) == self.collection:
            self.node2collection[node] = list(collection)

    def schedule(self) -> None:
        if self.collection is None:
            self._compare_collections()
        if self.collection is not None:
            for node in self.nodes:
                self._hand_out(node)

    def _compare_collections(self) -> None:
        """Divide the tests if all workers have collected the same; report a collection error otherwise."""
        (first, tests), *others = self.node2collection.items()
        for node, collection in others:
            name = node.gateway.id
            text = report_collection_diff(tests, collection, first.gateway.id, name)
            if text:
                self.log(text)
                report = pytest.CollectReport(name, "failed", text, [])
                self.config.hook.pytest_collectreport(report=report)
        if all(collection == tests for _, collection in others):
            self.collection = tests
            self._divide(tests)

    def _divide(self, tests: Sequence[str]) -> None:
        """Give a block to each initial worker."""
        cases = [index for index, nodeid in enumerate(tests) if nodeid in self._cases]
        for node in self.nodes:
            number = worker_number(node.gateway.id)
            workers = node.workerinput["workercount"]
            if number is not None and number < workers:
                self._blocks[node] = deque(block(cases, number, workers, self._unit))
        owned: set[int] = set()
        for own in self._blocks.values():
            owned.update(own)
        self._shared = [index for index in range(len(tests)) if index not in owned]

    def _unit(self, index: int) -> object:
        """Return what a test is handed out with: the conversation of a turn, else itself."""
        assert self.collection is not None
        nodeid = self.collection[index]
        return unit_of(nodeid) if nodeid in self._cases else index

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:  # noqa: ARG002 of xdist
        self.node2pending[node].remove(item_index)
        self._hand_out(node)

    def mark_test_pending(self, item: str) -> None:
        """Hand out a test again, as a plugin asks that repeats the one whose worker died."""
        assert self.collection is not None
        self._shared.insert(0, self.collection.index(item))
        for node in self.nodes:
            self._hand_out(node)

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> None:
        # xdist calls it under `--dist worksteal` alone.
        raise NotImplementedError

    def _hand_out(self, node: Any) -> None:
        """Hand a worker more, of its own block first; its share of what all may take shrinks, as xdist's does."""
        if node.shutting_down:
            return
        own = self._blocks.get(node)
        handed = self.node2pending[node]
        share = len(self._shared) // len(self.node2pending)
        portion: list[int] = []
        if own:
            if len(handed) <= PORTION // 2:
                portion = [own.popleft() for _ in range(min(PORTION, len(own)))]
        elif not self._shared:
            # A worker begins its last test only when it knows that none follows.
            node.shutdown()
        elif len(handed) < max(2, share // 4):
            most = max(2, share // 2) - len(handed)
            # The turns of a conversation stay with one worker.
            most = end_of_unit(self._shared, most, self._unit)
            portion = self._shared[:most]
            self._shared = self._shared[most:]
        if portion:
            handed += portion
            with suppress(OSError):  # it died: xdist says so in a moment, and what it was handed goes to another
                node.send_runtest_some(portion)

    def remove_node(self, node: Any) -> str | None:
        """Return the test to blame for the death of a worker, if there is one; hand on all else it had left."""
        handed_on = self.handed_on(node)
        blamed = self._blamed(node)
        has_block = node in self._blocks
        self.node2pending.pop(node)
        self._blocks.pop(node, None)
        if has_block:  # first, so that the case which ends processes is met before its neighbours are asked again
            self._shared[:0] = handed_on
        else:
            self._shared += handed_on
        if blamed is None or self.collection is None:
            return None
        for other in self.nodes:
            self._hand_out(other)
        return self.collection[blamed]

    def handed_on(self, node: Any) -> list[int]:
        """Return the tests that others take over if a worker dies, in their order."""
        left = [*self.node2pending.get(node, ()), *self._blocks.get(node, ())]
        if self._blamed(node) is not None:
            return left[1:]
        if left and self.collection is not None and self.collection[left[0]] in self._session.ended:
            return left[1:]  # the worker died between the outcome and the end of its test
        return left

    def _blamed(self, node: Any) -> int | None:
        """Return the test that ended a worker.

        No case of a block is blamed: the worker had prefetched others as well, and any of them may have ended it. The
        worker that takes over asks one case at a time.
        """
        handed = self.node2pending.get(node)
        if not handed or self.collection is None:
            return None
        is_replaced = str(self.config.option.maxworkerrestart) != "0"
        first = handed[0]
        is_case = self.collection[first] in self._cases
        if is_case and node in self._blocks and is_replaced:
            return None
        return first
