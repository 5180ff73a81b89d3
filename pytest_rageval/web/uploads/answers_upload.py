"""An uploaded file of answers for a version of a dataset: read as a whole, and held against the ids of its cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_rageval.errors import CaseError
from pytest_rageval.matching.passages import contexts
from pytest_rageval.model import EvalCase, Source
from pytest_rageval.targets.answer_files import load_answers
from pytest_rageval.targets.answers_target import AnswersTarget

SUFFIXES = (".csv", ".jsonl")
ALL = 10_000
"""Chunks of an answer that are looked at: more than any cut-off."""


@dataclass(frozen=True, slots=True)
class AnswersUpload:
    """Answers that cover every case.

    model_names       who wrote them, as the file says
    without_contexts  how many answers come without any text that they rest on: what is held against it, such as
                      groundedness, is not applicable to them
    """

    answers: int
    model_names: tuple[str, ...]
    without_contexts: int


def read_answers_upload(path: Path, shown_as: str, cases: Sequence[EvalCase], most_rows: int) -> AnswersUpload:
    """Read the answers in a file; CaseError with every problem: of the file, and ids that are missing or unknown.

    shown_as  what the person's file is called
    cases     all of the dataset
    """
    if path.suffix not in SUFFIXES:
        raise CaseError(f"{shown_as}: answers are a file that ends with {' or '.join(SUFFIXES)}")
    file = load_answers(path, shown_as=shown_as, most_rows=most_rows)
    target = AnswersTarget(file)
    cases = [replace(case, source=Source("", 0)) for case in cases]  # a person knows them by their ids
    if problems := target.check_coverage(cases):
        raise CaseError(*problems)
    answers = [answer for case in cases if (answer := target.of(case)) is not None]
    names = sorted({name for answer in answers if isinstance(name := answer.extra.get("model_name"), str) and name})
    bare = sum(not contexts(case, answer, ALL) for case, answer in zip(cases, answers, strict=True))
    return AnswersUpload(len(answers), tuple(names), bare)
