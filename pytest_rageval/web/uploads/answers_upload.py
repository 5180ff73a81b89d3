"""Uploaded answers: whether they cover every case, who wrote them, and how many come without contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_rageval.errors import CaseError
from pytest_rageval.matching.passages import contexts
from pytest_rageval.model import EvalCase, Source
from pytest_rageval.targets.answer_files import AnswersTarget, load_answers

ANSWER_SUFFIXES = (".csv", ".jsonl")
ALL = 10_000
"""Number of chunks of an answer to consider: more than any cut-off."""


@dataclass(frozen=True, slots=True)
class AnswersUpload:
    """Answers that cover every case.

    model_names       models that wrote the answers, according to the file
    without_contexts  number of answers without contexts, to which groundedness and the like do not apply
    """

    answers: int
    model_names: tuple[str, ...]
    without_contexts: int


def read_answers_upload(path: Path, shown_as: str, cases: Sequence[EvalCase], most_rows: int) -> AnswersUpload:
    """Read the answers in a file, or raise CaseError with every problem, missing and unknown ids among them.

    shown_as  the name of the person's file
    cases     all cases of the dataset
    """
    if path.suffix not in ANSWER_SUFFIXES:
        raise CaseError(f"{shown_as}: answers are a file that ends with {' or '.join(ANSWER_SUFFIXES)}")
    file = load_answers(path, shown_as=shown_as, most_rows=most_rows)
    target = AnswersTarget(file)
    cases = [replace(case, source=Source("", 0)) for case in cases]  # so that problems name cases by their ids
    if problems := target.check_coverage(cases):
        raise CaseError(*problems)
    answers = [answer for case in cases if (answer := target.of(case)) is not None]
    names = sorted({name for answer in answers if isinstance(name := answer.extra.get("model_name"), str) and name})
    bare = sum(not contexts(case, answer, ALL) for case, answer in zip(cases, answers, strict=True))
    return AnswersUpload(len(answers), tuple(names), bare)
