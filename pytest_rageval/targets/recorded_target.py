"""A system as an earlier run recorded it: to score or judge its answers again, nothing is called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_rageval.errors import CaseError, SettingsError, TargetError
from pytest_rageval.io.json_lines import JsonRow, json_rows
from pytest_rageval.io.lines import read_lines
from pytest_rageval.io.messages import Findings, Report, Unsound
from pytest_rageval.io.records import RecordReader
from pytest_rageval.io.sealed_lines import DamagedLineError, check_seal
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import Answer, AskRequest
from pytest_rageval.targets.answer_files import LONGEST_LINE
from pytest_rageval.targets.native_contract import read_response

OBSERVATIONS = "observations.jsonl"


@dataclass(frozen=True, slots=True)
class _Place:
    """Whose answer a line of observations holds."""

    case_key: str
    trial: int = 0


_PLACES: RecordReader[_Place] = RecordReader(_Place, takes_whole_floats=True)


class RecordedTarget:
    """Answers from the observations of a run folder, by case key and trial; of several records the last counts.

    `notes` says what a reader should know, such as a last line that was cut off. A run without observations is a
    SettingsError, a damaged one a CaseError with every problem.
    """

    is_called = False
    """Nothing is asked, so there is nothing to time."""
    answers_at_once = True

    def __init__(self, run: Path, name: str | None = None) -> None:
        self.name = name or f"run:{run.name}"
        self.notes: list[str] = []
        self._answers: dict[tuple[str, int], Answer] = {}
        path = run / OBSERVATIONS
        if not path.is_file():
            remedy = "answers are kept there unless the run was redacted, or its folder moved"
            raise SettingsError(f"run {run.name}: there is no {path}; {remedy}")
        report = Report(f"{run.name}/{OBSERVATIONS}")

        def is_torn(number: int, line: bytes) -> bool:
            try:
                parse(line)
            except StrictJsonError:
                self.notes.append(f"{report.file}:{number}: dropped, the line was cut off while it was written")
                return True
            return False

        for row in json_rows(read_lines(path, report, LONGEST_LINE, is_torn), report):
            self._take(row, report)
        if len(report):
            raise CaseError(*report.problems)

    async def ask(self, request: AskRequest) -> Answer:
        """The recorded answer; TargetError `missing` if that case or trial has none."""
        answer = self._answers.get((request.case_key, request.trial))
        if answer is None:
            trial = f", trial {request.trial}" if request.trial else ""
            raise TargetError("missing", f"{self.name}: no answer is recorded for {request.case_key}{trial}")
        return answer

    async def aclose(self) -> None:
        """Nothing is held open."""

    def has_answer(self, case_key: str, trial: int = 0) -> bool:
        """True if an answer to that case is recorded."""
        return (case_key, trial) in self._answers

    def _take(self, row: JsonRow, report: Report) -> None:
        """Keep one record, or report what is wrong with it."""
        try:
            check_seal(row.text.encode())
        except DamagedLineError as damage:
            report.add_unread(row.line, 1, str(damage))
            return
        problems = Findings()
        try:
            place = _PLACES.read({name: row.record[name] for name in ("case_key", "trial") if name in row.record})
        except Unsound as unsound:
            problems.include((), unsound.findings)
        if row.record.get("answer") is not None:  # null where asking failed
            try:
                answer = read_response(row.record["answer"])
            except Unsound as unsound:
                problems.include(("answer",), unsound.findings)
            else:
                if not problems:
                    self._answers[place.case_key, place.trial] = answer
        if problems:
            report.add_findings(row.line, problems, None, row.column_finder().column)
