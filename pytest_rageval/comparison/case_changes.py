"""What a comparison says of single cases: which newly fail, are fixed or new, and whose answers differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any, Literal

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.case_diff import Record, representative_trial
from pytest_rageval.model import NOTHING
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import OBSERVATIONS, RESULT, RESULTS, Members
from pytest_rageval.runs.records.line_scan import trials_of
from pytest_rageval.runs.records.record_files import record_paths, whole_records

CHANGES = {"worse": "flipped_to_fail", "fixed": "flipped_to_pass", "unmeasured": "unmeasured", "new": "only_after"}
"""The changes of a case since the baseline, with the lists of metrics.json that name such cases; else `same`."""
UNCHANGED = "same"
AnswerChange = Literal["same", "different", "unknown"]
ANSWER_CHANGES: tuple[AnswerChange, ...] = ("different", "same", "unknown")
"""Words of the filter `answer:`; `unknown` for a case that ended in an error, or whose other answer is not kept."""
CUT = "…"
"""The end of an answer that is cut in its record."""
_ANSWERS = Members("case_key", "trial", "outcome", "answer", "verdict", "error", where_written=("confirms",))


def changes_of(comparison: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the change of each changed case by key, from a comparison; for several changes, the first."""
    changes: dict[str, str] = {}
    if comparison is None or not comparison.get("compared", True):
        return changes
    for change, name in (*CHANGES.items(), ("worse", "fails_new_gate"), ("new", "changed_cases")):
        for case in comparison.get(name, ()):
            key = case["case_key"] if isinstance(case, Mapping) else case
            changes.setdefault(key, change)
    return changes


def new_causes_of(comparison: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the causes that the comparison shows, by case, in place of those in the records."""
    if comparison is None or not comparison.get("compared", True):
        return {}
    return {key: cause["kind"] for key, cause in comparison.get("new_causes", NOTHING).items()}


def answer_changes(answers: Mapping[str, str | None], side: Side, before: Side) -> dict[str, AnswerChange]:
    """Return whether the answer of each case is the one of the other run; a case that this one lacks is left out.

    answers  those of `side` by case, as its records have them, without cases that ended in errors: these have no
             answer, and not another one
    """
    earlier = dict(_answers(before))
    changes: dict[str, AnswerChange] = {}
    cut_alike = set()
    for key, answer in answers.items():
        if key not in earlier:
            continue
        was = earlier[key]
        if answer is None and was is None:
            continue
        changes[key] = "same" if answer == was else "different"
        if answer == was and answer is not None and answer.endswith(CUT):
            cut_alike.add(key)
    # Records hold the beginning of an answer: what follows it stands in the observations.
    whole = _whole_answers(side.run, cut_alike)
    whole_before = _whole_answers(before.run, cut_alike)
    for key in cut_alike:
        if key not in whole or key not in whole_before:
            changes[key] = "unknown"
        elif whole[key] != whole_before[key]:
            changes[key] = "different"
    return changes


def _answers(side: Side) -> Iterator[tuple[str, str | None]]:
    """Yield each case with the answer of the trial that stands for it."""
    if side.run is None:
        yield from ((key, record["answer"]) for key, record in side.texts.items())
        return
    trials: dict[str, dict[int, Record]] = {}
    for _, record in whole_records(record_paths(side.run.path, RESULTS), RESULT, [], members=_ANSWERS):
        if not record.get("confirms"):  # an attempt that confirms a new failure stands for no case
            trials.setdefault(record["case_key"], {})[record["trial"]] = record
    for key, records in trials.items():
        shown = representative_trial(records)
        if not shown["error"]:
            yield key, shown["answer"]


def _whole_answers(run: StoredRun | None, keys: Set[str]) -> dict[str, dict[int, str | None]]:
    """Return the answers of all trials of some cases, from the observations; none if the run does not keep them."""
    answers: dict[str, dict[int, str | None]] = {}
    if run is None or not keys:
        return answers
    for path in record_paths(run.path, OBSERVATIONS):
        for key, trials in trials_of(path, keys, {"answer"}).items():
            of_case = answers.setdefault(key, {})
            for trial, line in trials.items():
                of_case[trial] = (line["answer"] or {}).get("answer")
    return answers
