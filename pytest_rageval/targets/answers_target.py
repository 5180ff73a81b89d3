"""A system whose answers are in a file already: scoring only, nothing is called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_rageval.errors import TargetError
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.model import Answer, AskRequest, EvalCase
from pytest_rageval.targets.answer_files import ASKING, AnswersFile, asking
from pytest_rageval.words import fold


class AnswersTarget:
    """Looks the answer of a case up by its full key (`path::id`), its id, or its question."""

    is_called = False
    """Nothing is asked, so there is nothing to time."""
    answers_at_once = True

    def __init__(self, answers: AnswersFile, name: str | None = None) -> None:
        of_system = f"#{answers.system}" if answers.system is not None else ""
        self.name = name or f"answers:{answers.shown}{of_system}"
        self.notes = list(answers.notes)
        self._answers = answers

    async def ask(self, request: AskRequest) -> Answer:
        """Return the answer to the case with this key; TargetError if the file has none, or one to another question."""
        name = self._name(request.case_key, request.question)
        if name is None:
            raise TargetError("missing", f"{self._answers.shown}: no answer for {request.case_key}")
        record = self._answers.records[name]
        if record.question is not None and fold(record.question) != fold(request.question):
            raise TargetError(
                "invalid_response",
                f"{self._answers.shown}:{record.line}: question is {shown_value(record.question)}, but the case asks "
                f"{shown_value(request.question)}; answer that one, or leave question out",
            )
        return record.answer

    async def aclose(self) -> None:
        """Nothing is held open."""

    def check_coverage(self, cases: Sequence[EvalCase], *, is_partial_allowed: bool = False) -> list[str]:
        """Return everything that does not fit between the file and all cases, one line each.

        Cases without an answer (unless `is_partial_allowed`), ids and questions that no case has, those that several
        cases have, and cases that are answered twice.
        """
        by_name: dict[str, list[str]] = {}
        for case in cases:
            for name in (case.key, case.id, asking(case.question)):
                by_name.setdefault(name, []).append(case.key)
        answered: dict[str, int] = {}
        problems = []
        for name, record in self._answers.records.items():
            line, keys = record.line, by_name.get(name, [])
            problem = _mismatch(name, keys, by_name)
            if not problem and keys[0] in answered:
                problem = f"{keys[0]} already has an answer at line {answered[keys[0]]}"
            if problem:
                problems.append(f"{self._answers.shown}:{line}: {problem}")
            else:
                answered[keys[0]] = line
        if not is_partial_allowed:
            missing = (case.key.removeprefix("::") for case in cases if self.of(case) is None)
            problems += [f"{self._answers.shown}: no answer for {name}" for name in missing]
        return problems

    def of(self, case: EvalCase) -> Answer | None:
        """Return the answer to a case, None if the file has none."""
        name = self._name(case.key, case.question)
        return None if name is None else self._answers.records[name].answer

    def _name(self, case_key: str, question: str) -> str | None:
        """Return what the answer to a case stands under."""
        records = self._answers.records
        for name in (case_key, case_key.partition("::")[2]):
            if name in records:
                return name
        by_question = asking(question)
        return by_question if by_question in records else None


def _mismatch(name: str, keys: Sequence[str], names: Iterable[str]) -> str:
    """Say why an answer of this name is not that of exactly one case; nothing if it is."""
    is_question = name.startswith(ASKING)
    shown = shown_value(name.removeprefix(ASKING))
    if not keys and is_question:
        return f"no case asks the question {shown}"
    if not keys:
        known = (other for other in names if not other.startswith(ASKING))
        return f"no case has the id {shown}{did_you_mean(name, known)}"
    if len({*keys}) > 1 and is_question:
        return f"{len(keys)} cases ask the question {shown}; give it an id: {' or '.join(keys)}"
    if len({*keys}) > 1:
        return f"id {shown} stands in {len(keys)} case files; write {' or '.join(keys)}"
    return ""
