"""Control of the garbage collector: off while many long-lived objects are created, rare while calls run."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event

# Measured in whole runs, with and without this module: 20,000 recorded cases take 17.5 instead of 20.3 s of CPU, 3,000
# items 5.2 instead of 6.0 s, and a run of one case 1.2 instead of 1.5 s.
SELDOM = 50_000
"""New objects per collection, not 700 or 2,000, which cost 0.6 ms of CPU a case with 200 calls in flight."""
_FROZEN = Event()


@contextmanager
def no_collection(*, is_for_good: bool = False) -> Iterator[None]:
    """Switch the collector off while thousands of long-lived objects are created; it would take half of the time.

    is_for_good  exempt them from later collections too: a pass over the modules of a run takes 40 ms
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # What is frozen must not thaw; to count it takes 4 ms.
            if is_for_good or not (_FROZEN.is_set() or gc.get_freeze_count()):
                gc.freeze()  # and back: new objects move to the oldest generation without a pass over them
                _FROZEN.set() if is_for_good else gc.unfreeze()
            gc.enable()


def collect_seldom() -> Callable[[], None]:
    """Make collections rare, unless the user disabled them or made them rarer; return the function that undoes it."""
    usual = gc.get_threshold()
    seldom = (max(SELDOM, usual[0]), *usual[1:])
    if not usual[0]:
        return lambda: None
    gc.set_threshold(*seldom)

    def as_usual() -> None:
        if gc.get_threshold() == seldom:  # else other code has set another since
            gc.set_threshold(*usual)

    return as_usual
