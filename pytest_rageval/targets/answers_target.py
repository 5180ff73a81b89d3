"""A system whose answers are in a file already: scoring only, nothing is called."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pytest_rageval.errors import TargetError
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.model import Answer, AskRequest
from pytest_rageval.targets.answer_files import AnswersFile


class AnswersTarget:
    """Looks the answer of a case up by its full key (`path::id`) or its id."""

    is_called = False
    """Nothing is asked, so there is nothing to time."""
    answers_at_once = True

    def __init__(self, answers: AnswersFile, name: str | None = None) -> None:
        of_system = f"#{answers.system}" if answers.system is not None else ""
        self.name = name or f"answers:{answers.shown}{of_system}"
        self._answers = answers

    async def ask(self, request: AskRequest) -> Answer:
        """The answer to the case with this key; TargetError `missing` if the file has none."""
        name = self._name(request.case_key)
        if name is None:
            raise TargetError("missing", f"{self._answers.shown}: no answer for {request.case_key}")
        return self._answers.records[name].answer

    async def aclose(self) -> None:
        """Nothing is held open."""

    def has_answer(self, case_key: str) -> bool:
        """True if there is an answer for the case with this key."""
        return self._name(case_key) is not None

    def check_coverage(self, cases: Collection[tuple[str, str]], *, is_partial_allowed: bool = False) -> list[str]:
        """Everything that does not fit between the file and all cases, given as (key, id): one line each.

        Cases without an answer (unless `is_partial_allowed`), ids that no case has, ids that several cases have, and
        cases that are answered twice, by id and by key.
        """
        if self._fits_exactly(cases):
            return []
        by_id: dict[str, list[str]] = {}
        for key, case_id in cases:
            by_id.setdefault(case_id, []).append(key)
        keys = {key for key, _ in cases}
        names = [*by_id, *keys]
        problems = []
        records = self._answers.records
        for name in records:
            where = f"{self._answers.shown}:{records.line(name)}"
            if name in keys:
                continue
            of_id = by_id.get(name, [])
            if not of_id:
                problems.append(f"{where}: no case has the id {shown_value(name)}{did_you_mean(name, names)}")
            elif len(of_id) > 1:
                problems.append(
                    f"{where}: id {shown_value(name)} stands in {len(of_id)} case files; write {' or '.join(of_id)}"
                )
            elif of_id[0] in records:
                other = records.line(of_id[0])
                problems.append(f"{where}: {of_id[0]} already has an answer at line {other}")
        if not is_partial_allowed:
            problems += [f"{self._answers.shown}: no answer for {key}" for key, _ in cases if not self.has_answer(key)]
        return problems

    def _fits_exactly(self, cases: Iterable[tuple[str, str]]) -> bool:
        """Has each case one answer, and each answer one case? Of many cases little more is noted than that."""
        records = self._answers.records
        answered = bytearray(records.last_line + 1)  # by line: of a million names a set would take 100 MB
        for key, case_id in cases:
            name = key if key in records else case_id
            if name not in records or (case_id != name and case_id in records):
                return False
            line = records.line(name)
            if answered[line]:
                return False
            answered[line] = True
        return sum(answered) == len(records)

    def _name(self, case_key: str) -> str | None:
        """What the answer to a case stands under."""
        records, case_id = self._answers.records, case_key.partition("::")[2]
        return case_key if case_key in records else case_id if case_id in records else None
