"""A pause of the garbage collector while many objects that stay come to be."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Thousands of long-lived objects come to be at once, none of them garbage: looking costs half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():  # else what others froze would thaw
                gc.freeze()  # to and fro: what is new goes to the oldest generation without a look at it
                gc.unfreeze()
            gc.enable()
