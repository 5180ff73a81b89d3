"""Patterns that are compiled at first use: most texts need few of them, and a long one takes a millisecond."""

from __future__ import annotations

import re
from functools import cache


@cache
def compiled_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern of ours, compiled once: the cache has no bound, so no text of a user may be one."""
    return re.compile(pattern, flags)
