"""A file of answers is taken when it covers every case of the dataset, and only then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from founding_documents import FOUNDING

from pytest_rageval.cases import load_file
from pytest_rageval.errors import CaseError
from pytest_rageval.model import EvalCase
from pytest_rageval.web.uploads.upload_folder import read_answers_upload


def cases(*ids: str) -> list[EvalCase]:
    return [EvalCase(case_id, f"What is {case_id}?") for case_id in ids]


def answers(tmp_path: Path, *records: dict[str, object]) -> Path:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_the_answers_of_the_documents_are_taken_with_who_wrote_them():
    upload = read_answers_upload(
        FOUNDING / "uploaded.csv", "uploaded.csv", load_file(FOUNDING / "one.csv", FOUNDING).cases, 100
    )
    # q1 brings its context with the case; nothing says what the answer to q2 rests on.
    assert (upload.answers, upload.model_names, upload.without_contexts) == (2, ("qwen2.5-14b",), 1)


def test_missing_and_unknown_ids_are_listed_together(tmp_path: Path):
    file = answers(tmp_path, {"id": "q1", "answer": "4"}, {"id": "q22", "answer": "?"}, {"id": "<b>", "answer": "?"})
    with pytest.raises(CaseError) as error:
        read_answers_upload(file, "mine.jsonl", cases("q1", "q2", "q3"), 100)
    assert list(error.value.problems) == [
        "mine.jsonl:2: no case has the id 'q22'; did you mean 'q2'?",
        "mine.jsonl:3: no case has the id '<b>'",
        "mine.jsonl: no answer for q2",
        "mine.jsonl: no answer for q3",
    ]


def test_repeated_ids_and_broken_lines_are_said_with_their_place(tmp_path: Path):
    file = answers(tmp_path, {"id": "q1", "answer": "4"}, {"id": "q1", "answer": "5"}, {"id": "q2"})
    with pytest.raises(CaseError) as error:
        read_answers_upload(file, "mine.jsonl", cases("q1", "q2"), 100)
    assert [problem.partition(": ")[0] for problem in error.value.problems] == ["mine.jsonl:2:8", "mine.jsonl:3:1"]


def test_a_file_of_another_kind_or_with_too_many_rows_is_refused(tmp_path: Path):
    with pytest.raises(CaseError, match=r"ends with \.csv or \.jsonl"):
        read_answers_upload(tmp_path / "answers.xlsx", "mine.xlsx", cases("q1"), 100)
    file = answers(tmp_path, {"id": "q1", "answer": "4"}, {"id": "q2", "answer": "4"})
    with pytest.raises(CaseError, match="more answers than the 1 that are taken"):
        read_answers_upload(file, "mine.jsonl", cases("q1", "q2"), 1)
