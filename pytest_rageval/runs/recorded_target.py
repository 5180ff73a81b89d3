"""A system as recorded by an earlier run: re-scores or re-judges its answers without calling anything."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_rageval.errors import CaseError, SettingsError, TargetError
from pytest_rageval.io.masking import MASK
from pytest_rageval.io.messages import Findings, Report, Unsound, shown_value
from pytest_rageval.io.sealed_lines import DamagedLineError, lines_of
from pytest_rageval.io.strict_json import Positions
from pytest_rageval.language.words import fold
from pytest_rageval.model import Answer, AskRequest
from pytest_rageval.runs.records.line_form import OBSERVATIONS, record_of
from pytest_rageval.runs.records.observation_line import marked
from pytest_rageval.targets.native_contract import read_response
from pytest_rageval.targets.target import BaseTarget, Surroundings

QUESTION = "question"
_SCOPE = ("vaults", "folders", "contexts")
"""The members of a request that limit where the system searches."""


def from_spec(spec: str, given: Surroundings) -> RecordedTarget | None:
    """Make the target of `run:RUN_ID`."""
    _, _, run_id = spec.partition(":")
    runs = given.reports / "runs"
    if not run_id:
        return None
    # The id becomes a path: no slash and no `..` may lead out of the reports.
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", run_id):
        quoted = shown_value(run_id)[1:-1]
        raise SettingsError(f"target run:{quoted}: that is not the id of a run, as in 20251218_063617")
    if not (runs / run_id).is_dir():
        raise SettingsError(f"target run:{run_id}: there is no such run in {runs}")
    return RecordedTarget(runs / run_id, spec)


class RecordedTarget(BaseTarget):
    """Answers from the observations of a run folder, by case key and trial; of several records the last counts.

    `notes` are for the reader, such as a truncated last line. A run without observations raises SettingsError, a
    damaged one CaseError with every problem.
    """

    is_called = False
    """Nothing is asked, so there is nothing to time."""
    answers_at_once = True

    def __init__(self, run: Path, name: str | None = None) -> None:
        self.name = name or f"run:{run.name}"
        self.notes: list[str] = []
        self._answers: dict[tuple[str, int], Answer] = {}
        self._asked: dict[tuple[str, int], Mapping[str, Any]] = {}
        """The recorded request of each answer, as in its case."""
        self._rewrites: dict[tuple[str, int], tuple[str, Answer]] = {}
        """The rewrite that was asked, and the answer to it."""
        path = run / OBSERVATIONS
        if not path.is_file():
            remedy = "answers are kept there unless the run was redacted, or its folder moved"
            raise SettingsError(f"run {run.name}: there is no {path}; {remedy}")
        report = Report(f"{run.name}/{OBSERVATIONS}")
        for place, line in lines_of(path):
            self._take(place.number, line, report)
        if len(report):
            raise CaseError(*report.problems)

    async def ask(self, request: AskRequest) -> Answer:
        """Return the recorded answer; raise TargetError `missing` if that case or trial has none."""
        if request.is_rewrite:
            return self._rewritten_answer(request)
        answer = self._answers.get((request.case_key, request.trial))
        if answer is None:
            trial = f", trial {request.trial}" if request.trial else ""
            raise TargetError("missing", f"{self.name}: no answer is recorded for {request.case_key}{trial}")
        changed = _changed(self._asked[request.case_key, request.trial], request)
        if changed:
            what = f"the {' and the '.join(changed)} of {request.case_key} changed since it was asked"
            raise TargetError("invalid_response", f"{self.name}: {what}; ask the system itself")
        return answer

    def _rewritten_answer(self, request: AskRequest) -> Answer:
        recorded = self._rewrites.get((request.case_key, request.trial))
        # An answer to another wording of the rewrite is no answer to this one.
        if recorded is None or recorded[0] != request.question:
            what = f"no answer is recorded for {request.case_key} asked as its rewrite"
            raise TargetError("missing", f"{self.name}: {what}")
        return recorded[1]

    async def aclose(self) -> None:
        """Do nothing: the target holds no resources."""

    def has_answer(self, case_key: str, trial: int = 0) -> bool:
        """Return True if an answer to that case is recorded."""
        return (case_key, trial) in self._answers

    def _take(self, number: int, line: bytes, report: Report) -> None:
        try:
            record = record_of(line)
            if record.get("answer") is not None:  # null if the query failed
                key = (record["case_key"], record["trial"])
                self._answers[key] = marked(read_response(record["answer"]), record)
                self._asked[key] = _asked_of(record)
            rewrite = record.get("rewrite")
            if isinstance(rewrite, Mapping) and rewrite.get("answer") is not None:
                answer = marked(read_response(rewrite["answer"]), rewrite)
                self._rewrites[record["case_key"], record["trial"]] = (str(rewrite.get("question")), answer)
        except DamagedLineError as damage:
            if line.endswith(b"\n"):
                report.add(number, 1, str(damage))
            else:
                self.notes.append(f"{report.file}:{number}: dropped, the line was cut off while it was written")
        except Unsound as unsound:
            problems = Findings()
            problems.include(("answer",), unsound.findings)
            report.add_findings(number, problems, None, Positions(line.decode()).column)


def _asked_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the recorded request of a line: the members of its case that a request has, too."""
    case = record.get("case")
    if not isinstance(case, Mapping):
        return {}
    asked = {name: case.get(name) for name in (QUESTION, *_SCOPE)}
    # The history of a turn is what the system said before, which the run itself repeats.
    if case.get("turn") is None:
        asked["history"] = case.get("history")
    return asked


def _changed(asked: Mapping[str, Any], request: AskRequest) -> list[str]:
    """Return the members of the request that differ from the recorded ones: an id may be that of another question."""
    changed = []
    question = asked.get(QUESTION)
    if isinstance(question, str) and not _is_masked(question) and fold(question) != fold(request.question):
        changed.append(QUESTION)
    for name in _SCOPE:
        now = getattr(request, name)
        if name in asked and _differs(asked[name], now):
            changed.append(name)
    if "history" in asked:
        history = [turn._asdict() for turn in request.history or ()]
        if _differs(asked["history"], history):
            changed.append("history")
    return changed


def _differs(recorded: Sequence[Any] | None, now: Sequence[Any] | None) -> bool:
    return list(recorded or ()) != list(now or ()) and not _is_masked(json.dumps(recorded))


def _is_masked(recorded: str) -> bool:
    """Return True if a credential was masked in what was asked: then it cannot be compared."""
    return MASK in recorded
