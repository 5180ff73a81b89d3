"""A run without aggregates: stopped, killed, still being written, or broken; what there is of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.compare.case_diff import representative_trial
from pytest_rageval.page.report_file import FILES
from pytest_rageval.page.run_cases import read_case_lines
from pytest_rageval.report.recorded_case import RecordedCase, recorded_case_of
from pytest_rageval.runs.disk.reader import StoredRun
from pytest_rageval.runs.stored_plan import registry_of


class UnfinishedRun(NamedTuple):
    """How far the run has come, why it is no finished one, and its files: name, is it there, what it holds."""

    state: str
    problems: Sequence[str]
    files: Sequence[tuple[str, bool, str]]


def unfinished_run(run: StoredRun, problems: Sequence[str]) -> UnfinishedRun:
    files = [(name, (run.path / name).is_file(), what) for name, what in FILES.items()]
    return UnfinishedRun(run.state, list(dict.fromkeys(problems)), files)


def unfinished_case(run: StoredRun, key: str, baseline: Path) -> RecordedCase | None:
    """A case of such a run, read without the others; None of one that is not recorded. `baseline`: the project's."""
    lines = read_case_lines(run, {key}).get(key)
    return recorded_case_of(run, representative_trial(lines.records), registry_of(run), baseline) if lines else None
