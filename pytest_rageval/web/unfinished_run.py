"""A run without aggregates: stopped, killed, still being written, or broken; what there is of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_rageval.page.report_file import FILES
from pytest_rageval.runs.disk.reader import StoredRun


class UnfinishedRun(NamedTuple):
    """How far the run has come, why it is no finished one, and its files: name, is it there, what it holds."""

    state: str
    problems: Sequence[str]
    files: Sequence[tuple[str, bool, str]]


def unfinished_run(run: StoredRun, problems: Sequence[str]) -> UnfinishedRun:
    files = [(name, (run.path / name).is_file(), what) for name, what in FILES.items()]
    return UnfinishedRun(run.state, list(dict.fromkeys(problems)), files)
