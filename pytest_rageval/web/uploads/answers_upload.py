"""An uploaded file of answers for a version of a dataset: read as a whole, and held against the ids of its cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_rageval.errors import CaseError
from pytest_rageval.model import Answer
from pytest_rageval.targets.answer_files import load_answers
from pytest_rageval.targets.answers_target import AnswersTarget

SUFFIXES = (".csv", ".jsonl")


@dataclass(frozen=True, slots=True)
class AnswersUpload:
    """Answers that cover every case.

    model_names    who wrote them, as the file says
    without_contexts  how many answers name no chunks: what rests on chunks cannot be scored for them
    """

    answers: int
    model_names: tuple[str, ...]
    without_contexts: int


def read_answers_upload(path: Path, shown_as: str, ids: Sequence[str], most_rows: int) -> AnswersUpload:
    """Read the answers in a file; CaseError with every problem: of the file, and ids that are missing or unknown.

    shown_as  what the person's file is called
    ids       of all cases of the dataset
    """
    if path.suffix not in SUFFIXES:
        raise CaseError(f"{shown_as}: answers are a file that ends with {' or '.join(SUFFIXES)}")
    file = load_answers(path, shown_as=shown_as)
    if len(file.records) > most_rows:
        raise CaseError(f"{shown_as}: {len(file.records):,} answers, more than the {most_rows:,} that are taken")
    if problems := AnswersTarget(file).check_coverage([(case_id, case_id) for case_id in ids]):
        raise CaseError(*problems)
    answers = [record.answer for record in file.records.values()]
    names = sorted({name for answer in answers if isinstance(name := answer.extra.get("model_name"), str) and name})
    return AnswersUpload(len(answers), tuple(names), sum(not _has_contexts(answer) for answer in answers))


def _has_contexts(answer: Answer) -> bool:
    return any(chunk.text for chunk in answer.chunks or ())
