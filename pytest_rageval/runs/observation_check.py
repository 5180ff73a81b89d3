"""Whether a run's observations are those of its records.

The seal in config.json covers results.jsonl. Scores computed again come from observations.jsonl: a lost line there
would leave an old score among new ones, and lines of another run would turn its answers into this run's verdicts. A
seal over both files would cost each run a second reading of all answers, so they are compared when they are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import listed
from pytest_rageval.runs.records.line_form import OBSERVATION, OBSERVATIONS, RESULT, RESULTS, Members
from pytest_rageval.runs.records.record_files import Key, whole_records
from pytest_rageval.runs.records.record_texts import CUT
from pytest_rageval.text import counted

NOT_OBSERVED = frozenset({"crash", "setup", "record"})
"""Kinds of error that an observation does not explain."""
_OF_RESULT = Members("answer", "error", "scores", "skipped_metrics")
_OF_OBSERVATION = Members("answer")


def was_evaluated(record: Mapping[str, Any]) -> bool:
    """Return False if a fixture failed, a mark skipped the case, or its process died."""
    if record["error"] is None:
        return bool(record["scores"] or record["skipped_metrics"])
    return record["error"]["kind"] not in NOT_OBSERVED


def check_observations(folder: Path) -> None:
    """Raise SettingsError unless each trial that was evaluated has its answer in observations.jsonl."""
    answers = {key: _answer_of(observation) for key, observation in _observations(folder)}
    evaluated = 0
    missing: list[str] = []
    foreign: list[str] = []
    for key, answer in _evaluated_answers(folder).items():
        evaluated += 1
        if key not in answers:
            missing.append(key[0])
        # A redacted run holds no answer in its results, and so nothing to compare.
        elif answer is not None and not _is_of(answer, answers[key]):
            foreign.append(key[0])
    differences: list[str] = []
    if missing:
        share = f"{len(missing):,} of {counted(evaluated, 'answer')}"
        differences.append(f"lacks {share} ({_cases(missing)})")
    if foreign:
        differences.append(f"has other answers than {RESULTS} for {_cases(foreign)}")
    if differences:
        problem = f"{OBSERVATIONS} {' and '.join(differences)}"
        raise SettingsError(f"run {folder.name}: {problem}; the run is not whole: run the cases again")


def _cases(keys: Sequence[str]) -> str:
    """Return the first of these case keys, and the number of the others; a case of several trials counts once."""
    return listed(sorted(set(keys)))


def _observations(folder: Path) -> Iterator[tuple[Key, dict[str, Any]]]:
    """Yield the observations in order: of several of a trial, the last counts."""
    for _, record in whole_records([folder / OBSERVATIONS], OBSERVATION, members=_OF_OBSERVATION):
        yield (record["case_key"], record["trial"]), record


def _answer_of(observation: Mapping[str, Any]) -> str:
    """Return the text that was answered; empty if the query failed."""
    answer = observation["answer"]
    text = answer.get("answer") if isinstance(answer, Mapping) else None
    return text if isinstance(text, str) else ""


def _evaluated_answers(folder: Path) -> dict[Key, str | None]:
    """Return the answer of each trial that was evaluated, as its record has it: maybe cut, None if it has none."""
    answers: dict[Key, str | None] = {}
    for _, record in whole_records([folder / RESULTS], RESULT, members=_OF_RESULT):
        key = record["case_key"], record["trial"]
        answers.pop(key, None)  # of a case that was run again
        if was_evaluated(record):
            answers[key] = record["answer"]
    return answers


def _is_of(recorded: str, answer: str) -> bool:
    return recorded in (answer, answer[:CUT] + "…")
