"""A scheduler for the workers of xdist: each has a contiguous block of the cases, which both sides can compute.

xdist hands tests out in small portions: a worker sees hardly two of its own, and waits for a server one call after
another. With a block it prefetches.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import pytest
from xdist.report import report_collection_diff  # type: ignore[import-untyped]

from pytest_rageval.plugin.session import EvalSession

PORTION = 8
"""Cases that a worker is handed at a time: enough that it never waits for more."""
T = TypeVar("T")


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
