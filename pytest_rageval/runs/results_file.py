"""Files of a run being written: results, observations, and the journals of workers; resumed and repaired."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.verdict import over_trials
from pytest_rageval.io.atomic import write_json
from pytest_rageval.io.sealed_lines import ends_well
from pytest_rageval.matching.dialects import is_ambiguous_flag, is_missed_flag
from pytest_rageval.model import CaseResult, EvalCase, Observation, Problem, Trial
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.scoring import AskFailure, Observed
from pytest_rageval.runs.comparable import other_configuration
from pytest_rageval.runs.flaky_cases import passed_when_rerun
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.reader import CONFIG, METRICS, StoredRun
from pytest_rageval.runs.record_seal import seal_of
from pytest_rageval.runs.records.line_form import (
    NOTED,
    OBSERVATION,
    OBSERVATIONS,
    RESULT,
    RESULTS,
    record_of,
)
from pytest_rageval.runs.records.observation_line import observation_line, observation_of
from pytest_rageval.runs.records.record_files import journals, record_at, whole_records
from pytest_rageval.runs.records.result_line import RecordLine, result_of, result_record
from pytest_rageval.runs.row import Row, SharedParts
from pytest_rageval.runs.run_files import CRASH, fold_journals, repair
from pytest_rageval.runs.run_ref import next_moment

MOST_UNWRITTEN = 256
MOMENT_S = 0.2
"""How many records may wait to be written, and for how many seconds."""


class NotedRecord(NamedTuple):
    """What a run notes of a record: its row, and what the system reported of itself."""

    row: Row
    coverage: Mapping[str, Any] | None
    versions: Mapping[str, Any] | None
    reported: Sequence[str]
    unread: Sequence[str]
    flags: Sequence[str]
    model_name: object


def noted_record(record: Mapping[str, Any], shared: SharedParts) -> NotedRecord:
    """Return what a run notes of a record; `shared` has the parts that rows share."""
    return NotedRecord(
        row=Row.of(record, shared),
        coverage=record["indexing_coverage"],
        versions=record["versions"],
        reported=record.get("reported", ()),
        unread=record.get("unread", ()),
        flags=record.get("flags") or (),
        model_name=record.get("model_name"),
    )


class RunWriter:
    """The run that is being written: its folder, its rows, and what the system reported of itself."""

    def __init__(self, folder: RunFolder, plan: Plan, config: Mapping[str, Any]) -> None:
        self.plan = plan
        self.config = config
        self.folder = folder
        self.rows: dict[tuple[str, int], Row] = {}
        """By case key and trial; the last row of a retried case."""
        self.crashes = Counter[str]()
        """How often the process of a case died, by case key."""
        self._has_replaced = False
        """Whether a row was replaced by a later one."""
        self.versions: Mapping[str, Any] | None = None
        self.reported: set[str] = set()
        self.model_names: set[str] = set()
        """The models of uploaded answers, from their file."""
        self.unread: set[str] = set()  # fields that the system sends where they are not read
        self.place_flags: list[str] = []  # about names of several files, and golds that a chunk holds
        self.warnings: list[str] = []
        self._shared = SharedParts()
        self._coverages: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self._noted_bytes = 0  # of results.jsonl, covered by the rows
        self._unwritten: list[bytes] = []
        self._written_at = 0.0

    @classmethod
    def new(cls, reports: Path, plan: Plan, config: Mapping[str, Any]) -> RunWriter:
        """Begin a new run."""
        begun = next_moment(reports / "runs").isoformat(timespec="microseconds")
        writer = cls(RunFolder.new(reports, plan.settings.run_id), plan, {**config, "begun": begun})
        try:
            writer.folder.begin()
            write_json(writer.folder.path / CONFIG, writer.config)
        except BaseException:  # Ctrl-C too: leave no folder of a run that never began
            writer.discard()
            raise
        return writer

    @classmethod
    def resuming(cls, run: StoredRun, plan: Plan, config: Mapping[str, Any]) -> RunWriter:
        """Continue an interrupted run with all its results; raise SettingsError if its configuration differs."""
        difference = other_configuration(run.config, config)
        if difference is not None:
            problem = f"run {run.run_id} was begun with another configuration: {difference}"
            raise SettingsError(f"--rageval-resume: {problem}")
        if not run.can_be_resumed:
            raise SettingsError(f"--rageval-resume: {run.damage}")
        writer = cls(RunFolder(run.path), plan, run.config)
        writer.folder.lock()
        try:
            writer.warnings += repair(run.path)
            (run.path / METRICS).unlink(missing_ok=True)  # this file marks the end of a run, and it has not ended now
            writer.reconcile()
            writer.warnings.append(f"resumed {run.run_id}: {len(writer.rows)} results were there already")
            writer.folder.log(writer.warnings[-1])
        except BaseException:  # Ctrl-C too: unlock the folder
            writer.folder.close()
            raise
        return writer

    def take(self, lines: bytes) -> None:
        """Add the lines of results.jsonl that another process made."""
        taken = (RecordLine(line, record_of(line, RESULT, NOTED)) for line in lines.split(b"\n"))
        self.add(map(self._with_crashes, taken))

    def _with_crashes(self, line: RecordLine) -> RecordLine:
        """Count the attempts in which the process of a case died: the one that made this record knows only its own."""
        crashes = self.crashes[line.record["case_key"]]
        if not crashes:
            return line
        record = record_of(line.data, RESULT)
        attempts = record["attempts"] + crashes
        reason = record["reason"]
        if record["outcome"] == "passed" and reason is None:
            reason = passed_when_rerun(attempts)
        return RecordLine.of({**record, "attempts": attempts, "reason": reason})

    def add(self, lines: Iterable[RecordLine], *, is_paid: bool = True) -> None:
        """Add lines of results.jsonl; lines of free answers are written in blocks."""
        for line in lines:
            self._add(line.data, noted_record(line.record, self._shared))
        if is_paid:
            self._write()

    def take_noted(self, lines: bytes, noted: Sequence[NotedRecord]) -> None:
        """Add the lines that another process made, without reading them again."""
        for line, of_line in zip(lines.split(b"\n"), noted, strict=True):
            if self.crashes[of_line.row.key]:
                self.take(line)
            else:
                self._add(line, of_line)
        self._write()

    def _add(self, line: bytes, noted: NotedRecord) -> None:
        self._unwritten.append(line)
        row = self._note(noted)
        self._noted_bytes += len(line) + 1
        if row.outcome == "error":
            self.folder.log(f"{row.key}: {row.error_kind}: {row.message or 'its message is left out'}")
        if len(self._unwritten) >= MOST_UNWRITTEN or time.monotonic() > self._written_at + MOMENT_S:
            self._write()

    def _write(self) -> None:
        """Write the waiting records."""
        # Taken out first: an interrupt in between may lose a line (`reconcile` notices), but never writes one twice.
        lines = self._unwritten
        self._unwritten = []
        self._written_at = time.monotonic()
        if lines:
            self.folder.append(RESULTS, b"\n".join(lines))

    def crashed(self, case: EvalCase, message: str) -> None:
        """Record a crash for a case whose process died, unless the case had finished."""
        self.collect_results(case.key)
        first = self.rows.get((case.key, 0))
        trials = self.plan.settings.repeat
        if first is not None and first.records is not None:
            trials = min(trials, first.records)
        rows = [self.rows.get((case.key, number)) for number in range(trials)]
        if any(row is None or row.error_kind == CRASH for row in rows):
            self.crashes[case.key] += 1
            problem = Problem(CRASH, message)
            crash = CaseResult(case, "error", error=problem, attempts=self.crashes[case.key])
            self.add([RecordLine.of(result_record(crash, self.plan, self.config["config_hash"]))])

    def collect_results(self, case_key: str | None = None) -> None:
        """Add the results that workers have written but could not send, of one case or of all."""
        self.reconcile()  # first: a record that was written but not noted would be added twice
        for path in journals(self.folder.path, RESULTS):
            notes: list[str] = []
            for place, record in whole_records([path], RESULT, notes, is_growing=True):
                key = record["case_key"]
                if (key, record["trial"]) not in self.rows and case_key in (None, key):
                    self.take(place.read().rstrip(b"\n"))
            self.warnings += [note for note in notes if note not in self.warnings]

    def reconcile(self) -> None:
        """Rebuild the rows from the file if they differ: an interrupt may come between writing and noting a record."""
        self._write()
        path = self.folder.path / RESULTS
        # By size, without reading the file.
        size = path.stat().st_size if path.exists() else 0
        if size == self._noted_bytes:
            return
        if not ends_well(path):
            self.folder.append(RESULTS, "")  # end the torn line, so that readers leave it out
        self.rows.clear()
        self._has_replaced = False
        self._coverages.clear()
        for _, record in whole_records([path], RESULT, self.warnings, members=NOTED):
            self.note(record)
        self._noted_bytes = path.stat().st_size

    def fold_worker_files(self) -> None:
        """Remove the files of the workers, after their end and `collect_results`, and leave one line for each trial."""
        for path in journals(self.folder.path, RESULTS):
            path.unlink()  # the file of the run has all their records, with the attempts that ended in a crash counted
        for kind in (RESULT, OBSERVATION):
            if self._has_replaced or journals(self.folder.path, kind.file):
                fold_journals(self.folder.path, kind, self.warnings)

    def seal(self) -> dict[str, Any]:
        """Return the seal over the records on disk."""
        self._write()
        return seal_of(self.folder.path / RESULTS, self.rows.keys(), has_replaced=self._has_replaced)

    def discard(self) -> None:
        """Delete the folder of a run in which nothing happened."""
        self.folder.close()
        shutil.rmtree(self.folder.path)

    def note(self, record: Mapping[str, Any]) -> Row:
        """Store what aggregation needs of a record, without writing it."""
        return self._note(noted_record(record, self._shared))

    def _note(self, noted: NotedRecord) -> Row:
        row = noted.row
        self._has_replaced |= (row.key, row.trial) in self.rows
        self.rows[row.key, row.trial] = row
        if noted.coverage is not None:
            # As text, since mappings have no hash; systems repeat the same coverage with each answer.
            written = json.dumps(noted.coverage, sort_keys=True)
            self._coverages.setdefault(written, (row.key, noted.coverage))
        self.versions = self.versions or noted.versions
        self.reported.update(noted.reported)
        self.unread.update(noted.unread)
        self.place_flags += [flag for flag in noted.flags if is_ambiguous_flag(flag) or is_missed_flag(flag)]
        if isinstance(noted.model_name, str):
            self.model_names.add(noted.model_name)
        return row

    @property
    def coverage(self) -> Mapping[str, Any] | None:
        """Return what the system reports of its index; if it varies, the statement of the first case key."""
        return min(self._coverages.values(), key=lambda stated: stated[0], default=("", None))[1]

    @property
    def has_changing_coverage(self) -> bool:
        return len(self._coverages) > 1


class RunJournal:
    """The files that one process writes: those of the run, of a worker if it is named, or none without a folder."""

    def __init__(
        self, folder: RunFolder | None, plan: Plan, worker: str | None, unfinished: InterruptedRun | None
    ) -> None:
        self._folder = folder
        self._settings = plan.settings
        self._mask = plan.mask
        self._worker = worker
        self._unfinished = unfinished

    def find(self, trial: Trial) -> Observed | None:
        """Return the observation of a trial in the run that is resumed."""
        return self._unfinished.observation(trial.key, trial.number) if self._unfinished else None

    def keep(self, trials: Sequence[Trial], observed: Sequence[Observed]) -> list[Observed]:
        """Write observations at once, unless texts are redacted; replace those without a JSON form by errors."""
        if self._settings.redact or self._folder is None:
            return list(observed)
        kept: list[Observed] = []
        lines: list[bytes] = []
        for trial, each in zip(trials, observed, strict=True):
            try:
                lines.append(observation_line(trial, each, self._settings, self._mask))
                kept.append(each)
            except (ValueError, TypeError, RecursionError) as error:
                kept.append(AskFailure(Problem("record", f"what was observed cannot be written as JSON: {error}")))
        try:
            if lines:
                self._folder.append(_of(self._worker, OBSERVATIONS), b"\n".join(lines))
        except OSError as error:
            problem = Problem("record", f"what was observed cannot be written: {error.strerror}")
            return [AskFailure(problem)] * len(kept)
        return kept

    def results(self, payload: str | bytes) -> None:
        """Write the result lines of a finished item on a worker; the controller reads them from the report."""
        if self._worker is not None and self._folder is not None:
            with suppress(OSError):  # the controller reports a full disk
                self._folder.append(_of(self._worker, RESULTS), payload)

    def close(self) -> None:
        """Close a worker's files."""
        if self._worker is not None and self._folder is not None:
            self._folder.close()


def _of(worker: str | None, name: str) -> str:
    stem, _, ending = name.partition(".")
    return name if worker is None else f"{stem}-{worker}.{ending}"


class InterruptedRun:
    """An interrupted run: results and observations by case key and trial, read from its files on demand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run = StoredRun(folder)
        self.config = run.config
        self._results = run.record_places()
        self._observations = run.observation_places()

    def is_done(self, key: str) -> bool:
        """Return True if the case has a result (`repair` has removed those without all their trials)."""
        return (key, 0) in self._results

    def has_begun(self, key: str) -> bool:
        """Return True if the case has a result, or an answer without one."""
        return self.is_done(key) or (key, 0) in self._observations

    def result(self, case: EvalCase) -> CaseResult:
        """Return the recorded result of a finished case over all its trials."""
        trials: list[CaseResult] = []
        while (case.key, len(trials)) in self._results:
            number = len(trials)
            record = record_at(self._results[case.key, number])
            if record.get("confirms"):
                break  # the first attempt has decided about the scores
            trials.append(result_of(record, case, self.observation(case.key, number)))
        stands, scores = over_trials(trials, lambda trial: trial.error is not None)
        return replace(stands, scores=scores)

    def observation(self, key: str, number: int) -> Observation | None:
        """Return the observation of a trial; None if there is none or querying failed."""
        place = self._observations.get((key, number))
        if place is None:
            return None
        record = record_at(place)
        if record["error"] or record["answer"] is None:
            return None
        return observation_of(record, self.config)
