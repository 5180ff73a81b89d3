"""The writer of a run: each result to disk first, then what aggregation needs of it to memory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_rageval.io.atomic import write_json
from pytest_rageval.model import CaseResult, EvalCase, Problem
from pytest_rageval.plan import Plan
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records import result_record, to_line
from pytest_rageval.runs.resume import check_same, fold_journals, journals, mend
from pytest_rageval.runs.row import Row


class Keeper:
    """The run that is being written: its folder, its rows, and what the system said of itself."""

    def __init__(self, folder: RunFolder, plan: Plan, config: Mapping[str, Any]) -> None:
        self.plan = plan
        self.config = config
        self.folder = folder
        self.rows: dict[tuple[str, int], Row] = {}
        self.versions: Mapping[str, Any] | None = None
        self.reported: set[str] = set()
        self.warnings: list[str] = []
        self._coverages: dict[str, tuple[str, Mapping[str, Any]]] = {}

    @classmethod
    def new(cls, reports: Path, plan: Plan, config: Mapping[str, Any]) -> Keeper:
        """A run that begins."""
        begun = datetime.now(UTC).isoformat(timespec="microseconds")
        keeper = cls(RunFolder.new(reports, plan.settings.run_id), plan, {**config, "begun": begun})
        keeper.folder.claim()
        write_json(keeper.folder.path / "config.json", keeper.config)
        return keeper

    @classmethod
    def resuming(cls, run: StoredRun, plan: Plan, config: Mapping[str, Any]) -> Keeper:
        """A run that was interrupted, with all that it has finished; SettingsError where it is not the same run."""
        check_same(run, config)
        keeper = cls(RunFolder(run.path), plan, run.config)
        keeper.folder.claim()
        keeper.warnings += mend(run.path)
        for record in run.records():
            keeper.note(record)
        keeper.warnings.append(f"resumed {run.run_id}: {len(keeper.rows)} results were there already")
        keeper.folder.log(keeper.warnings[-1])
        return keeper

    def take(self, payload: str) -> None:
        """Keep what a report brought: lines of results.jsonl."""
        for line in payload.split("\n"):
            self.folder.append("results.jsonl", line)
            row = self.note(json.loads(line))
            if row.outcome == "error":
                self.folder.log(f"{row.key}: {row.error_kind}: {row.message or 'its message is left out'}")

    def crashed(self, case: EvalCase, message: str) -> None:
        """Keep a record for a case whose process died; one that had finished before keeps its own."""
        if (case.key, 0) in self.rows:
            return
        result = CaseResult(case, "error", error=Problem("crash", message))
        record = result_record(result, self.plan, self.config["config_hash"])
        self.take(to_line(record))

    def take_over(self) -> None:
        """Keep results that workers have written and could not send."""
        for path in journals(self.folder.path, "results.jsonl"):
            with path.open(encoding="utf-8", newline="\n") as file:
                for line in file:
                    self._take_over(line)

    def settle(self) -> None:
        """Once the workers are gone: take over their last lines, and remove their files."""
        self.take_over()
        for path in journals(self.folder.path, "results.jsonl"):
            path.unlink()
        if journals(self.folder.path, "observations.jsonl"):
            fold_journals(self.folder.path, "observations.jsonl", self.warnings)
        self.folder.close()

    def discard(self) -> None:
        """Leave no trace of a run in which nothing happened."""
        self.folder.close()
        shutil.rmtree(self.folder.path)

    def _take_over(self, line: str) -> None:
        if not line.endswith("\n"):
            return  # the last one, of a process that died while it wrote
        record = json.loads(line)
        if (record["case_key"], record["trial"]) not in self.rows:
            self.take(line.removesuffix("\n"))

    def note(self, record: Mapping[str, Any]) -> Row:
        """Take what aggregation needs of a record; nothing is written."""
        row = Row.of(record)
        self.rows[row.key, row.trial] = row
        coverage, versions = record["indexing_coverage"], record["versions"]
        if coverage is not None:
            self._coverages.setdefault(json.dumps(coverage, sort_keys=True), (row.key, coverage))
        self.versions = self.versions or versions
        self.reported.update(record.get("reported", ()))
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
