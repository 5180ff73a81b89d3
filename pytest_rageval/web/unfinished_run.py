"""A run without aggregates, as far as it can be read: stopped, killed, still being written, or broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.line_index import whole_records
from pytest_rageval.page.report_file import FILES
from pytest_rageval.page.run_cases import LINE, WHY, on_one_line
from pytest_rageval.runs.disk.reader import RESULTS, StoredRun
from pytest_rageval.runs.disk.resume import journals
from pytest_rageval.runs.disk.stored_records import check_result

ROWS = 50
MOST_NOTES = 5


class RecordedCase(NamedTuple):
    """A case that has a record: what a row of the list shows."""

    key: str
    outcome: str
    why: str
    question: str
    answer: str


class UnfinishedRun(NamedTuple):
    """What there is of the run.

    problem  why it is no finished run
    files    name, is it there, what it holds
    cases    those of this page of the list; `total` of them have a record
    notes    lines of its files that cannot be read
    """

    run_id: str
    state: str
    problem: str
    files: Sequence[tuple[str, bool, str]]
    cases: Sequence[RecordedCase]
    total: int
    page: int
    notes: Sequence[str]

    @property
    def pages(self) -> int:
        return max(1, -(-self.total // ROWS))


def unfinished_run(run: StoredRun, problem: str, page: int) -> UnfinishedRun:
    """Look through the files of a run that is not finished, or cannot be read as one."""
    files = [(name, (run.path / name).is_file(), what) for name, what in FILES.items()]
    notes: list[str] = []
    latest: dict[str, RecordedCase] = {}
    paths = [run.path / RESULTS, *journals(run.path, RESULTS)]
    try:
        for _, record in whole_records(paths, notes, check_result, is_growing=True):
            latest[record["case_key"]] = _recorded(record)
    except (SettingsError, OSError) as error:
        notes.append(str(error))
    last = max(1, -(-len(latest) // ROWS))
    page = min(page, last)
    cases = list(islice(latest.values(), (page - 1) * ROWS, page * ROWS))
    return UnfinishedRun(run.run_id, run.state, problem, files, cases, len(latest), page, notes[:MOST_NOTES])


def _recorded(record: Mapping[str, Any]) -> RecordedCase:
    error = record.get("error") or {}
    why = record.get("reason") or ": ".join(filter(None, (error.get("kind"), error.get("message"))))
    texts = (on_one_line(record.get(name), LINE) for name in ("question", "answer"))
    return RecordedCase(record["case_key"], str(record["outcome"]), on_one_line(str(why or ""), WHY), *texts)
