"""Read and repair an interrupted run's files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.verdict import over_trials
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.io.line_index import Key, Place, ends_well, index, line_at, lines_of, record_at
from pytest_rageval.model import CaseResult, EvalCase, GateFailed, Observation, Problem, Timings
from pytest_rageval.runs.comparable import other_configuration
from pytest_rageval.runs.disk.reader import OBSERVATIONS, RESULTS, StoredRun, observation_of
from pytest_rageval.runs.disk.row_records import check_observation, check_result

REDONE = frozenset({"crash", "record"})
"""Kinds of error that stand for a case which nobody finished."""


def check_same(run: StoredRun, config: Mapping[str, Any]) -> None:
    """SettingsError unless this configuration is the one that the run was begun with; it names what differs."""
    difference = other_configuration(run.config, config)
    if difference is not None:
        raise SettingsError(f"--rageval-resume: run {run.run_id} was begun with another configuration: {difference}")


class Unfinished:
    """An interrupted run: results and observations by case key and trial, read from their files when asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run = StoredRun(folder)
        self.config = run.config
        self._results = run.record_places()
        self._observations = run.observation_places()

    def is_done(self, key: str) -> bool:
        """Has this case a result, of every trial?"""
        return (key, 0) in self._results

    def result(self, case: EvalCase) -> CaseResult:
        """What a case that is done came to, all of its trials together, as it was recorded."""
        numbers = takewhile(lambda number: (case.key, number) in self._results, count())
        trials = [
            result_of(record_at(self._results[case.key, number]), case, self.observation(case.key, number))
            for number in numbers
        ]
        stands, scores = over_trials(trials, lambda trial: trial.error is not None)
        return replace(stands, scores=scores)

    def observation(self, key: str, number: int) -> Observation | None:
        """What was observed of a trial, None where nothing was, or asking failed."""
        place = self._observations.get((key, number))
        if place is None:
            return None
        record = record_at(place)
        return None if record["error"] or record["answer"] is None else observation_of(record, self.config)


def result_of(record: Mapping[str, Any], case: EvalCase, observation: Observation | None) -> CaseResult:
    """A line of results.jsonl as the result that it was written from, without what only the observation holds."""
    verdict, error, latency = record["verdict"], record["error"], record["latency"]
    return CaseResult(
        case,
        record["outcome"],
        observation=observation,
        scores=record["scores"],
        details=record["score_details"],
        skipped_metrics=record["skipped_metrics"],
        passed_gates=verdict["gates_held"],
        failed_gates=tuple(GateFailed(**gate) for gate in verdict["failed_gates"]),
        unobserved=tuple(verdict.get("unobserved", ())),
        unexamined=tuple(verdict.get("unexamined", ())),
        is_gold_examined=bool(verdict.get("gold_examined")),
        error=Problem(error["kind"], error["message"] or "") if error else None,
        metric_errors=record.get("metric_errors", {}),
        reason=record["reason"],
        timings=Timings(
            latency["queue_ms"],
            latency["total_ms"],
            latency["judge_ms"],
            latency.get("retry_wait_ms"),
            record.get("requests"),
        ),
        trial=record["trial"],
        attempts=record["attempts"],
    )


def mend(folder: Path) -> list[str]:
    """Make the files of an interrupted run whole: one line a case and trial, none torn, those of its workers folded in.

    Left out are cases that have not all of their trials, and those whose process died, or could not write down what it
    observed, for a full disk: they are to be done again.
    Returns what a person should know, a line each.
    """
    config = StoredRun(folder).config
    notes: list[str] = []
    for name in (RESULTS, OBSERVATIONS):
        fold_journals(folder, name, notes, trials=int(config["settings"].get("repeat", 1)) if name == RESULTS else None)
    return notes


def fold_journals(folder: Path, name: str, notes: list[str], trials: int | None = None) -> None:
    """Bring a file of the run and its workers' files of the same kind into the one, the last line a case and trial.

    With `trials` only cases count that have so many, and that ended with a result of their own.
    """
    own, others = folder / name, journals(folder, name)
    check = check_result if name == RESULTS else check_observation
    places = index([own, *others], notes, check)
    kept = list(places) if trials is None else _complete(places, trials)
    if others or len(kept) < sum(1 for _ in lines_of(own)) or not ends_well(own):
        write_lines(own, (line_at(places[key]) for key in kept))
    for path in others:
        path.unlink(missing_ok=True)


def journals(folder: Path, name: str) -> list[Path]:
    """The files that workers have written beside the run's file of this name."""
    stem, _, ending = name.partition(".")
    return sorted(folder.glob(f"{stem}-*.{ending}"))


def _complete(places: Mapping[Key, Place], trials: int) -> list[Key]:
    done: Counter[str] = Counter()
    for (key, _), place in places.items():
        error = record_at(place)["error"]
        done[key] += error is None or error["kind"] not in REDONE
    return [key for key in places if done[key[0]] >= trials]
