"""The writer of a run: each result to disk first, then what aggregation needs of it to memory."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_rageval.io.atomic import write_json
from pytest_rageval.io.line_index import ends_well, line_at, whole_records
from pytest_rageval.io.sealed_lines import sealed_line
from pytest_rageval.model import CaseResult, EvalCase, Problem
from pytest_rageval.plan import Plan
from pytest_rageval.runs.disk.folder import RunFolder
from pytest_rageval.runs.disk.reader import CONFIG, METRICS, OBSERVATIONS, RESULTS, StoredRun
from pytest_rageval.runs.disk.resume import check_same, fold_journals, journals, mend
from pytest_rageval.runs.disk.row_records import check_result
from pytest_rageval.runs.record_lines import RecordLine
from pytest_rageval.runs.records import result_record
from pytest_rageval.runs.row import Row, SharedParts

MOST_UNWRITTEN, MOMENT_S = 256, 0.2
"""Records that wait to be written, and seconds."""


class Keeper:
    """The run that is being written: its folder, its rows, and what the system said of itself."""

    def __init__(self, folder: RunFolder, plan: Plan, config: Mapping[str, Any]) -> None:
        self.plan = plan
        self.config = config
        self.folder = folder
        self.rows: dict[tuple[str, int], Row] = {}
        """By case key and trial; of one that came twice (a retried case) the last."""
        self._has_replaced = False
        """Did any row come again?"""
        self.versions: Mapping[str, Any] | None = None
        self.reported: set[str] = set()
        self.model_names: set[str] = set()
        """Who gave uploaded answers, as their file says."""
        self.unread: set[str] = set()
        """Fields that the system sends where they are not read."""
        self.warnings: list[str] = []
        self._shared = SharedParts()
        self._coverages: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self._noted_bytes = 0
        """Length of results.jsonl as far as the rows know it."""
        self._unwritten: list[bytes] = []
        self._written_at = 0.0

    @classmethod
    def new(cls, reports: Path, plan: Plan, config: Mapping[str, Any]) -> Keeper:
        """A run that begins."""
        begun = datetime.now(UTC).isoformat(timespec="microseconds")
        keeper = cls(RunFolder.new(reports, plan.settings.run_id), plan, {**config, "begun": begun})
        try:
            keeper.folder.begin()
            write_json(keeper.folder.path / CONFIG, keeper.config)
        except BaseException:  # Ctrl-C too: no folder stays of a run that never began
            keeper.discard()
            raise
        return keeper

    @classmethod
    def resuming(cls, run: StoredRun, plan: Plan, config: Mapping[str, Any]) -> Keeper:
        """A run that was interrupted, with all that it has finished; SettingsError where it is not the same run."""
        check_same(run, config)
        keeper = cls(RunFolder(run.path), plan, run.config)
        keeper.folder.claim()
        try:
            keeper.warnings += mend(run.path)
            (run.path / METRICS).unlink(missing_ok=True)  # the mark of its end: whatever happens now, it has not ended
            keeper.reconcile()
            keeper.warnings.append(f"resumed {run.run_id}: {len(keeper.rows)} results were there already")
            keeper.folder.log(keeper.warnings[-1])
        except BaseException:  # Ctrl-C too: the folder is not held any longer
            keeper.folder.close()
            raise
        return keeper

    def take(self, payload: str) -> None:
        """Keep what the report of another process brought: lines of results.jsonl."""
        self.add([RecordLine(line.encode(), json.loads(line)) for line in payload.split("\n")])

    def add(self, lines: Iterable[RecordLine], *, is_paid: bool = True) -> None:
        """Keep lines of results.jsonl; those of answers that cost nothing are written in blocks."""
        for line in lines:
            self._unwritten.append(line.data)
            if is_paid or len(self._unwritten) >= MOST_UNWRITTEN or time.monotonic() > self._written_at + MOMENT_S:
                self._write()
            row = self.note(line.record)
            if row.outcome == "error":
                self.folder.log(f"{row.key}: {row.error_kind}: {row.message or 'its message is left out'}")

    def _write(self) -> None:
        """Write the records that wait."""
        data, self._unwritten, self._written_at = b"\n".join(self._unwritten), [], time.monotonic()
        if data:
            self._noted_bytes += self.folder.append(RESULTS, data)

    def crashed(self, case: EvalCase, message: str) -> None:
        """Keep a record for a case whose process died; one that had finished before keeps its own."""
        if not self._has_all(case.key):
            self.take_over(case.key)
        if self._has_all(case.key):
            return
        result = CaseResult(case, "error", error=Problem("crash", message))
        record = result_record(result, self.plan, self.config["config_hash"])
        self.add([RecordLine(sealed_line(record), record)])

    def _has_all(self, case_key: str) -> bool:
        """Are all trials of a case recorded?"""
        return all((case_key, number) in self.rows for number in range(self.plan.settings.repeat))

    def take_over(self, case_key: str | None = None) -> None:
        """Keep results that workers have written and could not send, of one case or of all."""
        self.reconcile()  # first: what was interrupted between writing and noting would be taken once more
        for path in journals(self.folder.path, RESULTS):
            notes: list[str] = []
            for place, record in whole_records([path], notes, check_result, is_growing=True):
                key = record["case_key"]
                if (key, record["trial"]) not in self.rows and case_key in (None, key):
                    self.take(line_at(place))
            self.warnings += [note for note in notes if note not in self.warnings]

    def reconcile(self) -> None:
        """Make the rows those of the records on disk: an interrupt may have come between the writing and the noting."""
        self._write()
        path = self.folder.path / RESULTS
        size = path.stat().st_size if path.exists() else 0
        if size == self._noted_bytes:
            return
        if not ends_well(path):
            self.folder.append(RESULTS, "")  # ends the torn line, which is then left out
        self.rows.clear()
        self._has_replaced = False
        self._coverages.clear()
        for _, record in whole_records([path], self.warnings, check_result):
            self.note(record)
        self._noted_bytes = path.stat().st_size

    def settle(self) -> None:
        """Once the workers are gone, and their results taken over: remove their files; leave one line a trial."""
        if self._has_replaced:
            for name in (RESULTS, OBSERVATIONS):
                fold_journals(self.folder.path, name, self.warnings)
        for path in journals(self.folder.path, RESULTS):
            path.unlink()
        if journals(self.folder.path, OBSERVATIONS):
            fold_journals(self.folder.path, OBSERVATIONS, self.warnings)

    def discard(self) -> None:
        """Leave no trace of a run in which nothing happened."""
        self.folder.close()
        shutil.rmtree(self.folder.path)

    def note(self, record: Mapping[str, Any]) -> Row:
        """Take what aggregation needs of a record; nothing is written."""
        row = Row.of(record, self._shared)
        self._has_replaced |= (row.key, row.trial) in self.rows
        self.rows[row.key, row.trial] = row
        coverage, versions = record["indexing_coverage"], record["versions"]
        if coverage is not None:
            self._coverages.setdefault(json.dumps(coverage, sort_keys=True), (row.key, coverage))
        self.versions = self.versions or versions
        self.reported.update(record.get("reported", ()))
        self.unread.update(record.get("unread", ()))
        if isinstance(name := record.get("model_name"), str):
            self.model_names.add(name)
        return row

    @property
    def coverage(self) -> Mapping[str, Any] | None:
        """What the system says of its index; of several different statements the one of the first case key."""
        if not self._coverages:
            return None
        return min(self._coverages.values(), key=lambda stated: stated[0])[1]

    @property
    def has_changing_coverage(self) -> bool:
        return len(self._coverages) > 1
