"""Re-scoring of a stored run: scores, verdicts and aggregates anew from what was observed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_rageval.comparison.baseline import Baseline
from pytest_rageval.comparison.outcomes import ending_again
from pytest_rageval.engine import Observed, Unobserved, evaluation
from pytest_rageval.errors import SettingsError
from pytest_rageval.finish import Extent, Finished, finish
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.io.line_index import record_at
from pytest_rageval.model import EvalCase, Problem, Timings, Trial
from pytest_rageval.plan import Plan
from pytest_rageval.rescore.recorded_measures import (
    Stays,
    is_described_measure,
    recorded_measures,
    recorded_run_measures,
)
from pytest_rageval.runs.disk.folder import RunFolder
from pytest_rageval.runs.disk.reader import OBSERVATIONS, RESULTS, StoredRun, observation_of, recorded_case
from pytest_rageval.runs.disk.writer import Keeper
from pytest_rageval.runs.records import case_fields, result_record, to_line
from pytest_rageval.targets.native_contract import answer_from_response

NOT_OBSERVED = frozenset({"crash", "setup", "record"})
"""Kinds of error of which an observation, where there is one, says nothing."""
Line = Mapping[str, Any]
Lines = Iterator[Line]


def _unseen(done: int) -> None:
    """Nobody watches."""


@dataclass(frozen=True, slots=True)
class Redo:
    """How a stored run is decided again.

    plan      its own plan (`replan.plan_again`), and `config` what config.json is to say then
    baseline  what its verdict is compared with
    stays     measures that keep their recorded scores
    labels    by key, cases with new labels; they are in the observations already
    watch     called with the number of cases that are done
    """

    run: StoredRun
    plan: Plan
    config: Mapping[str, Any]
    baseline: Baseline | None
    stays: Stays = is_described_measure
    labels: Mapping[str, EvalCase] | None = None
    watch: Callable[[int], None] = _unseen


def redo(how: Redo, change: Callable[[Lines], Lines] | None = None) -> Finished:
    """Decide the run again and write what it comes to: records, metrics.json and config.json; summary.md is a report.

    `change` is what becomes of the lines of observations.jsonl first, one for one. Each file is replaced in one step,
    observations before records: whoever interrupts this finds the run as it was, or can do it again.
    """

    return _rewritten(how, _records(how), change)


def aggregate_again(how: Redo, change: Callable[[Lines], Lines] | None = None) -> Finished:
    """Aggregate the recorded scores and verdicts anew, by the new labels if there are any.

    Without labels only metrics.json and config.json are written.
    """
    if how.labels is not None:
        has_observations = (how.run.path / OBSERVATIONS).exists()
        records = (_with_labels(record, how) for record in how.run.records())
        return _rewritten(how, records, change if has_observations else None)

    def read(keeper: Keeper) -> None:
        for record in how.run.records():
            keeper.note(record)

    return _finished(how, read)


def _rewritten(how: Redo, records: Lines, change: Callable[[Lines], Lines] | None) -> Finished:
    def write(keeper: Keeper) -> None:
        if change is not None:
            places = how.run.observation_places().values()
            write_lines(how.run.path / OBSERVATIONS, map(to_line, change(map(record_at, places))))
        write_lines(how.run.path / RESULTS, _noted(records, keeper))

    return _finished(how, write)


def _finished(how: Redo, keep: Callable[[Keeper], None]) -> Finished:
    """What the run comes to with the records that `keep` notes; no other process can write it meanwhile."""
    earlier = how.run.finished_metrics
    folder = RunFolder(how.run.path)
    folder.claim()
    try:
        plan = replace(how.plan, run_measures=recorded_run_measures(how.plan, earlier))
        keeper = Keeper(folder, plan, how.config)
        keep(keeper)
        return finish(keeper, plan, again(keeper, earlier), how.baseline, how.run.path / "baseline.json")
    finally:
        folder.close()


def again(keeper: Keeper, earlier: Mapping[str, Any]) -> Extent:
    """The extent of a run that has its records already: no more, and no less partial than it was."""
    keys = {key for key, _ in keeper.rows}
    return Extent(keys, keys, earlier=earlier)


def check_observed(run: StoredRun) -> None:
    """SettingsError where a run keeps no observations: cut texts would score differently."""
    if not (run.path / OBSERVATIONS).exists():
        raise SettingsError(
            f"run {run.run_id} keeps no {OBSERVATIONS}, which this needs: it was run with --rageval-redact, or the "
            "file was not brought along; run it anew"
        )


def _noted(records: Iterator[Line], keeper: Keeper) -> Iterator[str]:
    for record in records:
        keeper.note(record)
        yield to_line(record)


# ── case by case ──────────────────────────────────────────────────────────────────────────────────────────────


def _records(how: Redo) -> Lines:
    """The records anew, all trials of a case together, in the order of the old ones."""
    observations = how.run.observation_places()
    for number, records in enumerate(how.run.cases(), start=1):
        places = [observations.get((record["case_key"], record["trial"])) for record in records]
        lines = [None if place is None else record_at(place) for place in places]
        yield from _again(records, lines, how)
        how.watch(number)


def _again(records: Sequence[dict[str, Any]], lines: Sequence[Line | None], how: Redo) -> list[Line]:
    """The records of a case; as they were, but for its labels, where a trial was not observed."""
    observed_lines = [line for line in lines if line is not None]
    if len(observed_lines) < len(records) or not all(map(_was_evaluated, records)):
        return [_with_labels(record, how) for record in records]
    measures = recorded_measures(how.plan, records, how.stays)
    if measures is None:
        return list(records)
    plan, first = replace(how.plan, measures=measures), records[0]
    trials = [trial_of(line) for line in observed_lines]
    observed = [observed_of(line, how.run.config) for line in observed_lines]
    evaluated = evaluation(trials, observed, plan, first["attempts"])
    outcome, reason = ending_again(evaluated.overall, records, plan, how.baseline)
    decided = (evaluated.overall, *evaluated.trials)
    overall, *results = (replace(result, outcome=outcome, reason=reason) for result in decided)
    config_hash = how.config["config_hash"]
    return [result_record(result, plan, config_hash, overall) for result in results]


def observed_of(line: Line, config: Mapping[str, Any]) -> Observed:
    """What a line of observations.jsonl holds; a line that nobody of ours has written is a SettingsError."""
    try:
        if line["error"] is None and (observation := observation_of(line, config)) is not None:
            return observation
        answer = None if line["answer"] is None else answer_from_response(line["answer"], line["case_key"])
        return Unobserved(Problem(**line["error"]), Timings(**line["timings"]), answer)
    except (KeyError, TypeError, ValueError, AttributeError):
        where = f"{OBSERVATIONS}: {line.get('case_key')!r}"
        raise SettingsError(f"{where}: not an observation as a run writes it; was the file changed?") from None


def trial_of(line: Line) -> Trial:
    """Which asking of which case a line of observations.jsonl is about."""
    case = recorded_case(line)
    test = line["case_key"].removeprefix(case.key).removeprefix("::")
    return Trial(case, line["trial"], test or None)


def _was_evaluated(record: Line) -> bool:
    """Does the record rest on what was observed? Not where a fixture failed, a mark skipped it, or its process died."""
    if record["error"] is None:
        return bool(record["scores"] or record["skipped_metrics"])
    return record["error"]["kind"] not in NOT_OBSERVED


def _with_labels(record: dict[str, Any], how: Redo) -> dict[str, Any]:
    case = (how.labels or {}).get(f"{record['source']['file']}::{record['test_case_id']}")
    return record if case is None else record | case_fields(case, how.plan)
