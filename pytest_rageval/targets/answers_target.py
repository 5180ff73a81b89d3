"""The target of a file of uploaded answers: each case is answered from it, and nothing is called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_rageval.errors import SettingsError, TargetError
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.language.words import fold
from pytest_rageval.model import Answer, AskRequest, EvalCase
from pytest_rageval.targets.answer_files import AnswersFile, load_answers
from pytest_rageval.targets.answer_records import AnswerRecord, CheckedAnswers
from pytest_rageval.targets.blank_answers import THOUGHTS
from pytest_rageval.targets.target import BaseTarget, Surroundings
from pytest_rageval.targets.usual_answers import ASKING, asking


def from_spec(spec: str, given: Surroundings) -> AnswersTarget | None:
    """Make the target of `answers:FILE#SYSTEM`; the file's own name may contain `#`."""
    _, _, rest = spec.partition(":")
    if not rest:
        return None
    name = rest
    system: str | None = None
    # A file of this whole name wins: `#` is a legal character of file names.
    if "#" in rest and not (given.root / rest).is_file():
        name, _, system = rest.rpartition("#")
    path = given.root / name
    if not path.is_file():
        raise SettingsError(f"target answers:{rest}: there is no file {path}")
    answers = load_answers(path, system or None, shown_as=name, max_bytes=given.connection.max_bytes)
    return AnswersTarget(answers, spec)


class AnswersTarget(BaseTarget):
    """Looks up the answer of a case by its full key (`path::id`), its id, or its question."""

    is_called = False
    """Nothing is asked, so there is nothing to time."""
    answers_at_once = True

    def __init__(self, answers: AnswersFile, name: str | None = None) -> None:
        of_system = f"#{answers.system}" if answers.system is not None else ""
        self.name = name or f"answers:{answers.file}{of_system}"
        self.notes = list(answers.notes)
        self._answers = answers

    @classmethod
    def of_checked(cls, checked: CheckedAnswers) -> AnswersTarget:
        """Make the target of a checked file; `take` tells it the records of the cases that it will be asked."""
        return cls(AnswersFile.without_records(checked), checked.name)

    def checked(self) -> CheckedAnswers:
        """Describe the file for another process."""
        return self._answers.checked(self.name)

    def records_of(self, cases: Sequence[EvalCase]) -> list[AnswerRecord]:
        """Return the records with the answers to these cases, and to the turns before them."""
        names: dict[str | None, None] = {}
        for case in cases:
            # The history of a turn holds the answers before it.
            before = map(case.earlier_case, range(1, len(case.earlier) + 1))
            names |= {self._name(each.key, each.question): None for each in (*before, case)}
        return [self._answers.records[name] for name in names if name is not None]

    def take(self, records: Iterable[AnswerRecord]) -> None:
        """Answer by these records from now on."""
        self._answers.records = {record.name: record for record in records}

    async def ask(self, request: AskRequest) -> Answer:
        """Return the answer to the case with this key; TargetError if the file has none or its question differs."""
        # The uploaded answer is to the question as it was asked, not to its rewrite.
        if request.is_rewrite:
            raise TargetError("missing", f"{self._answers.file}: no answer for {request.case_key} asked as its rewrite")
        name = self._name(request.case_key, request.question)
        if name is None:
            raise TargetError("missing", f"{self._answers.file}: no answer for {request.case_key}")
        record = self._answers.records[name]
        # An id alone may be that of another data set: its answers would be scored against the wrong questions.
        if record.question is not None and fold(record.question) != fold(request.question):
            place = f"{self._answers.file}:{record.line}"
            found = f"question is {shown_value(record.question)}"
            expected = f"but the case asks {shown_value(request.question)}"
            remedy = "answer that one, or leave question out"
            raise TargetError("invalid_response", f"{place}: {found}, {expected}; {remedy}")
        answer = self._answers.answer(record)
        is_blank = answer.text is not None and not answer.text.strip()
        if is_blank and answer.abstained is None and THOUGHTS in answer.extra:
            raise TargetError("no_answer", f"{self._answers.file}:{record.line}: the answer holds thoughts alone")
        return answer

    async def aclose(self) -> None:
        """Do nothing: the target holds no resources."""

    def check_coverage(self, cases: Sequence[EvalCase], *, is_partial_allowed: bool = False) -> list[str]:
        """Return all mismatches between the file and the cases, one line each.

        These are cases without an answer (unless `is_partial_allowed`), ids and questions that no case or several cases
        have, and cases with two answers.
        """
        by_name: dict[str, list[str]] = {}
        for case in cases:
            for name in (case.key, case.id, asking(case.question)):
                by_name.setdefault(name, []).append(case.key)
        answered: dict[str, int] = {}
        problems = []
        for name, record in self._answers.records.items():
            line = record.line
            keys = by_name.get(name, [])
            problem = _mismatch(name, keys, by_name)
            if not problem and keys[0] in answered:
                problem = f"{keys[0]} already has an answer at line {answered[keys[0]]}"
            if problem:
                problems.append(f"{self._answers.file}:{line}: {problem}")
            else:
                answered[keys[0]] = line
        if not is_partial_allowed:
            missing = (case.key.removeprefix("::") for case in cases if self._name(case.key, case.question) is None)
            problems += [f"{self._answers.file}: no answer for {name}" for name in missing]
        return problems

    def of(self, case: EvalCase) -> Answer | None:
        """Return the answer to a case; None if the file has none."""
        name = self._name(case.key, case.question)
        return None if name is None else self._answers.answer(self._answers.records[name])

    def _name(self, case_key: str, question: str) -> str | None:
        """Return the name of the answer to a case."""
        records = self._answers.records
        for name in (case_key, case_key.partition("::")[2]):
            if name in records:
                return name
        by_question = asking(question)
        return by_question if by_question in records else None


def _mismatch(name: str, keys: Sequence[str], names: Iterable[str]) -> str:
    """Describe why an answer of this name does not belong to exactly one case; empty if it does."""
    is_question = name.startswith(ASKING)
    quoted = shown_value(name.removeprefix(ASKING))
    if not keys and is_question:
        return f"no case asks the question {quoted}"
    if not keys:
        known = (other for other in names if not other.startswith(ASKING))
        return f"no case has the id {quoted}{did_you_mean(name, known)}"
    if len({*keys}) < 2:
        return ""
    choices = " or ".join(keys)
    if is_question:
        return f"{len(keys)} cases ask the question {quoted}; give it an id: {choices}"
    return f"id {quoted} stands in {len(keys)} case files; write {choices}"
