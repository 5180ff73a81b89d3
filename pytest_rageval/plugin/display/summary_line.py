"""The message of a failed case in pytest's short summary, for versions that show there only what a traceback says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

SHOWS_PLAIN_TEXT = pytest.version_tuple >= (9,)
"""Earlier versions end the line `FAILED evalcases/a.jsonl::q1` there, unless the report says where it crashed."""


class SummarisedText(str):
    """A report's text that is also what the short summary shows of it, cut to its first line."""

    @property
    def reprcrash(self) -> SimpleNamespace:
        return SimpleNamespace(message=str(self))


def summarised(longrepr: Any) -> Any:
    """A report's `longrepr` in the form whose message pytest's short summary shows.

    Only for reports that no process sends on: the channel between processes takes plain text alone.
    """
    return SummarisedText(longrepr) if isinstance(longrepr, str) and not SHOWS_PLAIN_TEXT else longrepr
