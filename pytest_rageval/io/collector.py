"""The garbage collector held back: off while many objects that stay come to be, seldom at work while calls run."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SELDOM = 50_000
"""New objects after which the collector looks, in place of 700 or 2,000: as often as is usual, looking takes 0.6 ms of
CPU a case with 200 calls in flight, which all wait for it."""


@contextmanager
def no_collection(*, is_for_good: bool = False) -> Iterator[None]:
    """Create thousands of long-lived objects without looks of the collector, which cost half of the time.

    is_for_good  the collector never looks at them later either: at the modules of a run that takes it 40 ms
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if is_for_good or not gc.get_freeze_count():  # else what others froze would thaw
                gc.freeze()  # and back: what is new goes to the oldest generation without a look at it
                if not is_for_good:
                    gc.unfreeze()
            gc.enable()


def collect_seldom() -> Callable[[], None]:
    """From now on, unless the user has switched it off or made it rarer still; what is returned ends that."""
    usual = gc.get_threshold()
    seldom = (max(SELDOM, usual[0]), *usual[1:])
    if not usual[0]:
        return lambda: None
    gc.set_threshold(*seldom)

    def as_usual() -> None:
        if gc.get_threshold() == seldom:  # else somebody has set another since
            gc.set_threshold(*usual)

    return as_usual
