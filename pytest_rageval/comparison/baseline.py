"""The sides of a comparison: a run, a file of aggregates, or the baseline.

A baseline is the committed reference: a run's metrics and, by case key, content hash, outcome and scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_rageval.comparison.baseline_texts import read_texts, write_texts
from pytest_rageval.comparison.case_diff import Record, records_of
from pytest_rageval.config.project import Project
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import read_json, write_text
from pytest_rageval.io.json_text import json_text
from pytest_rageval.io.messages import shown_value
from pytest_rageval.runs.columns import CaseColumns
from pytest_rageval.runs.reader import StoredRun, checked_config, checked_metrics, open_stored_run
from pytest_rageval.runs.records.line_form import RESULTS
from pytest_rageval.runs.row import CaseScores, Row, cases_of

SCHEMA = 1
"""The schema of metrics.json; a baseline is a metrics.json with cases."""
REMEDY = "make a new one with --rageval-update-baseline"
NO_BASELINE = "none"
OF_RUN = "run:"
"""Values in place of a file: no baseline, or a stored run, for example `run:20261122_101500`."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: a run, a baseline, or a file of aggregates.

    name     the user's name for it
    metrics  the content of metrics.json
    scores   None if only aggregates are known
    config   the content of config.json; None if it is not known
    run      None if there are no records
    texts    the records stored next to a baseline whose run is gone, by case
    """

    name: str
    metrics: Mapping[str, Any]
    scores: CaseColumns | None
    config: Mapping[str, Any] | None = None
    run: StoredRun | None = None
    note: str | None = None
    texts: Mapping[str, Record] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        return str(self.metrics["volatile"].get("run_id") or self.name)

    @property
    def has_records(self) -> bool:
        return bool(self.texts) or (self.run is not None and self.run.has_records)

    @property
    def damage(self) -> str | None:
        """Return how the records of the run differ from those that it wrote; None if they are whole or not there."""
        return self.run.damage if self.run is not None else None

    def records(self, keys: Set[str]) -> dict[str, Record]:
        """Return the records of these cases, as far as they exist."""
        if self.run is not None:
            return records_of(self.run.path / RESULTS, keys)
        return {key: record for key, record in self.texts.items() if key in keys}

    def readable_records(self, keys: Set[str]) -> dict[str, Record]:
        """Return the same, and none from damaged files: what they would only explain is left out.

        A damaged run says so where it is shown itself; it must not keep a later one from its end.
        """
        try:
            return self.records(keys)
        except SettingsError:
            return {}

    @property
    def cases(self) -> CaseColumns:
        return CaseColumns() if self.scores is None else self.scores

    @property
    def categories(self) -> Mapping[str, str]:
        return self.cases.categories

    @property
    def k(self) -> int | None:
        """Return the configured cut-off; None if it is not known."""
        return None if self.config is None else self.config.get("k")


def project_baseline(project: Project) -> Side | None:
    """Return the baseline to compare with; one that the user named must exist, unless this run is to replace it.

    If it is to be replaced, a baseline that cannot be read counts as none.
    """
    settings = project.settings
    written = settings.baseline or ""
    is_none = written == NO_BASELINE
    is_run = written.startswith(OF_RUN)
    if settings.update_baseline and (is_none or is_run):
        raise SettingsError(f"--rageval-update-baseline: the baseline is {written!r}, no file; name the file to write")
    if is_none:
        return None
    if is_run:
        return _stored_run_as_baseline(project.reports, written.removeprefix(OF_RUN))
    if not settings.update_baseline:
        return read_baseline(project.baseline_file, is_required=settings.baseline is not None)
    _check_place(project.baseline_file)  # before any query: only a file or nothing can be replaced
    try:
        return read_baseline(project.baseline_file, is_required=False)
    except SettingsError:
        return None


def _stored_run_as_baseline(reports: Path, run_id: str) -> Side:
    side = side_of_run(open_stored_run(reports, run_id))
    if side.metrics["partial"] or side.scores is None:
        raise SettingsError(f"baseline: run {side.run_id} holds a part of its cases, which shows nothing; name another")
    if side.damage is not None:
        raise SettingsError(f"baseline: {side.damage}")
    return side


def read_baseline(path: Path, *, is_required: bool) -> Side | None:
    """Return the baseline or None without one; raise SettingsError if it is broken, or missing though required."""
    if not _check_place(path) and not is_required:
        return None
    try:
        content = read_json(path, "baseline")
    except SettingsError as error:
        raise SettingsError(f"{error}; {REMEDY}") from None
    schema = content.get("schema")
    if "cases" in content and schema != SCHEMA:
        raise SettingsError(f"baseline: {path}: schema is {shown_value(schema)}, this version reads {SCHEMA}; {REMEDY}")
    if content.get("partial") is True:
        raise SettingsError(f"baseline: {path} is of a partial run, which shows nothing; {REMEDY}")
    try:
        cases = {key: _case_scores(case) for key, case in content.pop("cases").items()}
        for member in ("metrics", "volatile"):
            content[member]  # KeyError if it is missing
        config: Mapping[str, Any] | None = content.pop("config", None)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise SettingsError(f"baseline: {path} is not a baseline; {REMEDY}") from None
    if not cases:
        raise SettingsError(f"baseline: {path} holds no case; {REMEDY}")
    return Side(str(path), checked_metrics(content, path), CaseColumns.of(cases), config)


def _case_scores(case: Mapping[str, Any]) -> CaseScores:
    return CaseScores(
        content_hash=case["content_hash"],
        outcome=case["outcome"],
        scores=_numbers(case["scores"]),
        decision_hash=case["decision_hash"],
        conversation=_conversation_of(case),
    )


def _conversation_of(case: Mapping[str, Any]) -> str | None:
    """Return the conversation of a turn; raise TypeError if it is no text."""
    conversation = case.get("conversation")
    if not isinstance(conversation, str | None):
        raise TypeError
    return conversation


def _check_place(path: Path) -> bool:
    """Return True for a file, False for nothing; raise SettingsError for anything else, or if it cannot be read."""
    try:
        path.lstat()
        if path.is_file():
            return True
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise SettingsError(f"baseline: {path} cannot be read: {error.strerror}; mend that, or name another") from None
    if path.is_dir():
        kind = "a folder"
    elif path.is_symlink():
        kind = "a link that leads to no file"
    else:
        kind = "no regular file"
    raise SettingsError(f"baseline: {path} is {kind}; remove it, name a file, or say none")


def _numbers(scores: Mapping[str, Any]) -> dict[str, float]:
    """Return the scores; raise TypeError or ValueError if one is not a finite number."""
    for value in scores.values():
        if isinstance(value, bool) or not math.isfinite(value):
            raise ValueError
    return dict(scores)


OF_THE_RUN = frozenset({"begun", "project", "hardware", "libraries", "recorded"})
"""Members that differ between runs with equal results; a committed file leaves them out."""


def write_baseline(
    path: Path, metrics: Mapping[str, Any], rows: Iterable[Row], config: Mapping[str, Any], folder: Path
) -> None:
    """Replace the baseline and its texts, one case on each line so that diffs are readable.

    `folder`: of the run, whose records hold the texts.
    """
    cases_now = cases_of(rows)
    write_texts(path, str(metrics["volatile"].get("run_id")), cases_now, folder)
    # The comparison was with the baseline that this one replaces.
    # What a baseline holds is committed: causes quote messages of errors.
    kept = {name: value for name, value in metrics.items() if name not in ("comparison", "causes")}
    kept["config"] = {name: value for name, value in config.items() if name not in OF_THE_RUN}
    head = json_text(kept, sort_keys=True).removesuffix("\n}")
    cases = ",\n".join(f"  {json_text(row.key)}: {_case_line(row)}" for row in cases_now)
    write_text(path, f'{head},\n "cases": {{\n{cases}\n }}\n}}\n')


def _case_line(row: Row) -> str:
    content = {
        "content_hash": row.content_hash,
        "decision_hash": row.decision_hash,
        "outcome": row.outcome,
        "scores": dict(row.scores),
    }
    if row.conversation is not None:
        content["conversation"] = row.conversation
    return json_text(content, None, sort_keys=True)


def open_side(reports: Path, baseline: Path, reference: str) -> Side:
    """Open the side that a reference names: `baseline`, a file of metrics or a baseline, or else a run.

    Raise SettingsError if it does not exist or has not ended.
    """
    if reference == "baseline":
        return _of_baseline(reference, baseline, reports)
    path = Path(reference)
    if not path.is_file() or (path.parent / "config.json").is_file():
        return side_of_run(open_stored_run(reports, reference, baseline), reference)
    content = read_json(path, "compare")
    if "cases" in content:
        return _of_baseline(reference, path, reports)
    metrics = checked_metrics(content, path)
    run = _run_of(metrics, reports)
    if run is not None:
        return side_of_run(run, reference)
    return Side(reference, metrics, None, note=_only_means(reference))


def side_of_run(run: StoredRun, name: str = "", cases: CaseColumns | None = None) -> Side:
    """Return a finished run as a side; raise SettingsError if it has not ended.

    name   its id by default
    cases  its cases if they are in memory; else they are read
    """
    name = name or run.run_id
    scores = run.scores if cases is None else cases
    note = _only_means(name) if scores is None else None
    return Side(name, run.finished_metrics, scores, run.config, run, note)


def _of_baseline(name: str, path: Path, reports: Path) -> Side:
    baseline = read_baseline(path, is_required=True)
    assert baseline is not None  # because it is required
    run = _run_of(baseline.metrics, reports)
    if run is not None:
        categories = run.scores.categories if run.scores is not None else {}
        scores = replace(baseline.cases, categories=categories)
        return replace(baseline, name=name, scores=scores, config=run.config, run=run)
    config = None if baseline.config is None else checked_config(baseline.config, path)
    side = replace(baseline, name=name, config=config)
    try:
        texts = read_texts(path, baseline.run_id)
    except ValueError as problem:
        return replace(side, note=str(problem))
    if len(texts) == len(baseline.cases):
        return replace(side, texts=texts)
    if texts:
        held = f"the texts of {len(texts):,} of its {len(baseline.cases):,} cases"
        without_text = "the others"
    else:
        held = "no texts"
        without_text = "its cases"
    note = (
        f"{name} holds {held}, and its run {baseline.run_id} is not in {reports / 'runs'}: "
        f"of {without_text} the outcomes and scores are shown"
    )
    return replace(side, texts=texts, note=note)


def _only_means(name: str) -> str:
    return f"{name} holds no cases: means are compared as they are, without pairing and without evidence"


def with_stored_run(side: Side, reports: Path) -> Side:
    """Return a baseline with the run that it came from, if that is still stored here."""
    if side.run is not None:
        return side
    return replace(side, run=_run_of(side.metrics, reports))


def _run_of(metrics: Mapping[str, Any], reports: Path) -> StoredRun | None:
    """Return the run of these metrics, if its folder still exists and is of the same run."""
    run_id = metrics["volatile"].get("run_id")
    if not isinstance(run_id, str) or not run_id or Path(run_id).name != run_id:
        return None
    run = StoredRun(reports / "runs" / run_id)
    try:
        stored = run.metrics
    except SettingsError:
        return None
    if stored is None:
        return None
    is_same = all(stored.get(name) == metrics.get(name) for name in ("config_hash", "metrics", "outcomes"))
    return run if is_same else None
