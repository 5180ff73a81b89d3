"""The cases of each worker of xdist, known to it before they come: so it asks ahead, as a run without workers does.

xdist hands tests out in small portions: a worker sees hardly two of its own, and whatever waits for a server is waited
for one by one. A contiguous block for each worker can be computed on both sides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")

SCHEDULER = "rageval-scheduler"
"""The name under which our scheduler is registered."""


def are_blocks_wanted(config: pytest.Config) -> bool:
    """May workers get their cases in blocks? Not where --dist, or a plugin, says how tests are handed out."""
    is_left_alone = config.option.dist == "load" and config.known_args_namespace.dist == "no"
    schedulers = config.hook.pytest_xdist_make_scheduler.get_hookimpls()
    is_ours_alone = all(scheduler.plugin_name in ("dsession", SCHEDULER) for scheduler in schedulers)
    return is_left_alone and config.option.maxschedchunk is None and is_ours_alone


def block(things: Sequence[T], worker: int | None, workers: int) -> Sequence[T]:
    """The part of one worker, numbered from 0: contiguous, and as long as that of any other, or one longer.

    Nothing for a worker that was started in place of one that died: what it gets is not known before.
    """
    if worker is None or worker >= workers:
        return things[:0]
    size, longer = divmod(len(things), workers)
    start = worker * size + min(worker, longer)
    return things[start : start + size + (worker < longer)]


def worker_number(worker_id: str) -> int | None:
    """The number of a worker of xdist: 3 of `gw3`; None of a name that somebody chose."""
    match = re.fullmatch(r"gw(\d+)", worker_id)
    return int(match[1]) if match else None
