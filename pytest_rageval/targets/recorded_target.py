"""A system as an earlier run recorded it: to score or judge its answers again, nothing is called."""

from __future__ import annotations

from pathlib import Path

from pytest_rageval.errors import CaseError, SettingsError, TargetError
from pytest_rageval.model import Answer, AskRequest
from pytest_rageval.targets.answer_lines import AnswerLine, read_json_lines
from pytest_rageval.targets.native_contract import answer_from_response
from pytest_rageval.targets.values import Wrong, text, whole

OBSERVATIONS = "observations.jsonl"


class RecordedTarget:
    """Answers from the observations of a run folder, by case key and trial; of several records the last counts.

    `notes` says what a reader should know, such as a last line that was cut off. A run without observations is a
    SettingsError, a damaged one a CaseError with every problem.
    """

    is_called = False
    """Nothing is asked, so there is nothing to time."""

    def __init__(self, run: Path, name: str | None = None) -> None:
        self.name = name or f"run:{run.name}"
        self.notes: list[str] = []
        self._answers: dict[tuple[str, int], Answer] = {}
        path = run / OBSERVATIONS
        place = f"{run.name}/{OBSERVATIONS}"
        try:
            taken = [self._take(line, f"{place}:{line.number}") for line in read_json_lines(path)]
        except FileNotFoundError:
            remedy = "answers are kept there unless the run was redacted, or its folder moved"
            raise SettingsError(f"run {run.name}: there is no {path}; {remedy}") from None
        except OSError as error:
            raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
        if problems := [problem for problem in taken if problem]:
            raise CaseError(*problems)

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
        """Is an answer to that case recorded?"""
        return (case_key, trial) in self._answers

    def _take(self, line: AnswerLine, where: str) -> str:
        """Keep one record; what is wrong with it, or nothing."""
        if line.data is None:
            if not line.is_torn:
                return f"{where}: {line.problem}"
            self.notes.append(f"{where}: dropped, the line was cut off while it was written")
            return ""
        try:
            key = text(line.data.get("case_key"), "case_key")
            trial = whole(line.data.get("trial", 0), "trial")
            if line.data.get("answer") is not None:  # null where asking failed
                self._answers[key, trial] = answer_from_response(line.data["answer"], where)
        except Wrong as wrong:
            return f"{where}: {wrong}"
        except TargetError as error:
            return str(error)
        return ""
