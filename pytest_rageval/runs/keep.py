"""Results as they come: each line to disk first, then what aggregation needs of it to memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_rageval.model import CaseResult, EvalCase, Problem
from pytest_rageval.plan import Plan
from pytest_rageval.runs.records import observation_record, result_record, to_line
from pytest_rageval.runs.rows import Row
from pytest_rageval.runs.store import RunFolder, write_json


class Keeper:
    """The run that is being written: its folder, its rows, and what the system said of itself."""

    def __init__(self, reports: Path, plan: Plan, config: dict[str, Any]) -> None:
        self.plan = plan
        self.config = config
        self.folder = RunFolder(reports, plan.settings.run_id)
        self.rows: dict[tuple[str, int], Row] = {}
        self.versions: Mapping[str, Any] | None = None
        self.warnings: list[str] = []
        self._coverages: dict[str, tuple[str, Mapping[str, Any]]] = {}
        write_json(self.folder.path / "config.json", config)

    def take(self, payload: str) -> None:
        """Keep what a report brought: pairs of lines, a record and its observation."""
        lines = payload.split("\n")
        for record_line, observation_line in zip(lines[::2], lines[1::2], strict=True):
            self.folder.append("results.jsonl", record_line)
            if observation_line:
                self.folder.append("observations.jsonl", observation_line)
            self._note(json.loads(record_line))

    def crashed(self, case: EvalCase, message: str) -> None:
        """Keep a record for a case whose process died; one that had finished before keeps its own."""
        if (case.key, 0) in self.rows:
            return
        result = CaseResult(case, "error", error=Problem("crash", message))
        settings = self.plan.settings
        record = result_record(result, settings, self.plan.registry, self.config["config_hash"])
        lines = [to_line(record), "" if settings.redact else to_line(observation_record(result, settings))]
        self.take("\n".join(lines))

    def _note(self, record: Mapping[str, Any]) -> None:
        row = Row.of(record)
        self.rows[row.key, row.trial] = row
        if row.outcome == "error":
            self.folder.log(f"{row.key}: {row.error_kind}: {row.message}")
        coverage, versions = record["indexing_coverage"], record["versions"]
        if coverage is not None:
            self._coverages.setdefault(json.dumps(coverage, sort_keys=True), (row.key, coverage))
        self.versions = self.versions or versions

    @property
    def coverage(self) -> Mapping[str, Any] | None:
        """What the system says of its index; of several different statements the one of the first case key."""
        if not self._coverages:
            return None
        return min(self._coverages.values(), key=lambda found: found[0])[1]

    @property
    def has_changing_coverage(self) -> bool:
        return len(self._coverages) > 1
