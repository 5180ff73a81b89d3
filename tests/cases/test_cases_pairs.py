"""Questions in one file, references in another: joined on id, and nothing of either is lost in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from case_files import loaded

from pytest_rageval.cases.discovery import find_case_files
from pytest_rageval.cases.loading import CaseFile

QUESTIONS = "id,question,tag\nq1,Why?,t\nq2,How?,\n"
REFERENCES = "id,reference\nq2,So.\nq1,Because.\n"


def joined(
    folder: Path, questions: str = QUESTIONS, references: str = REFERENCES, kinds: tuple[str, str] = ("csv", "csv")
) -> CaseFile:
    (folder / f"x.references.{kinds[1]}").write_text(references, encoding="utf-8")
    return loaded(folder, questions, f"x.questions.{kinds[0]}")


def test_questions_get_their_references_by_id(tmp_path: Path):
    file = joined(tmp_path)
    assert file.problems == ()
    assert [(case.id, case.gold.answers) for case in file.cases] == [("q1", ("Because.",)), ("q2", ("So.",))]
    assert [str(case.source) for case in file.cases] == ["x.questions.csv:2", "x.questions.csv:3"]


def test_either_file_may_be_jsonl(tmp_path: Path):
    questions = '{"id": "q1", "question": "Why?", "gold_supports": [{"rel_path": "a.md"}]}\n'
    file = joined(tmp_path, questions, "id,reference\nq1,Because.\n", ("jsonl", "csv"))
    assert (file.problems, file.cases[0].gold.answers) == ((), ("Because.",))
    (tmp_path / "x.references.csv").unlink()
    references = '{"id": "q1", "reference": "Because."}\n\n{"id": "q2", "reference": "So."}\n'
    file = joined(tmp_path, references=references, kinds=("csv", "jsonl"))
    assert (file.problems, [case.gold.answers for case in file.cases]) == ((), [("Because.",), ("So.",)])


@pytest.mark.parametrize(
    ("references", "kind"),
    [
        ("id,reference\nq1,Because.\nq2, \n", "csv"),
        ('{"id": "q1", "reference": "a"}\n{"id": "q2", "reference": ""}\n', "jsonl"),
    ],
)
def test_a_reference_that_is_blank_is_missing(tmp_path: Path, references: str, kind: str):
    file = joined(tmp_path, references=references, kinds=("csv", kind))
    (problem,) = file.problems
    assert problem.startswith(f"x.references.{kind}:")
    assert problem.endswith("case 'q2': reference is missing")


def test_a_row_of_a_file_of_references_needs_one_unless_it_says_otherwise(tmp_path: Path):
    file = loaded(tmp_path, "id,question,reference,answerable,tag\na,Why?,So.,,\nb,How?,,,t\nc,Who?,,false,\n", "x.csv")
    assert [case.id for case in file.cases] == ["a", "c"]
    (problem,) = file.problems
    assert problem.startswith("x.csv:3:8: case 'b': reference is missing")


@pytest.mark.parametrize("blank", ["", "  ", "\\t"])
def test_a_blank_reference_means_the_same_in_a_table_and_in_jsonl(tmp_path: Path, blank: str):
    text = f'{{"id": "b", "question": "How?", "reference": "{blank}"}}\n'
    tables = [loaded(tmp_path, text, "x.jsonl"), loaded(tmp_path, "id,question,reference\nb,How?, \n", "x.csv")]
    for file in tables:
        (problem,) = file.problems
        assert "case 'b': reference is missing; write it, or say that the case has no answer" in problem
    unanswerable = '{"id": "c", "question": "Who?", "reference": "", "answerable": false}\n'
    (case,) = loaded(tmp_path, unanswerable, "y.jsonl").cases
    assert (case.answerable, case.gold.answers) == (False, None)


@pytest.mark.parametrize("name", ["answers.csv", "references.csv", "answers.jsonl"])
def test_files_called_questions_and_answers_are_a_pair(tmp_path: Path, name: str):
    rows = {"q1": "Because.", "q2": "So."}
    lines = [json.dumps({"id": id, "reference": text}) for id, text in rows.items()]
    text = "\n".join(lines) if name.endswith("jsonl") else REFERENCES
    (tmp_path / name).write_text(text, encoding="utf-8")
    file = loaded(tmp_path, QUESTIONS, "questions.csv")
    assert (file.problems, [case.gold.answers for case in file.cases]) == ((), [("Because.",), ("So.",)])
    assert find_case_files(tmp_path, ("*.csv", "*.jsonl")) == [tmp_path / "questions.csv"]


def test_answers_of_a_system_beside_questions_are_no_references(tmp_path: Path):
    (tmp_path / "answers.csv").write_text("id,answer\nq1,42\nq2,43\n", encoding="utf-8")
    file = loaded(tmp_path, QUESTIONS, "questions.csv")
    assert (file.problems, [case.gold.answers for case in file.cases]) == ((), [None, None])


@pytest.mark.parametrize(
    ("questions", "references", "problems"),
    [
        (
            QUESTIONS,
            "id,reference\nq1,a\nq3,b\n",
            [
                "x.questions.csv:3:1: case 'q2': id has no reference in x.references.csv",
                "x.references.csv:3:1: case 'q3': no question has this id in x.questions.csv",
            ],
        ),
        (
            "id,question\n,Why?\n",
            REFERENCES,
            [
                "x.questions.csv:2:1: id is missing; it joins the question with its reference in x.references.csv",
                "x.references.csv:2:1: case 'q2': no question has this id in x.questions.csv",
                "x.references.csv:3:1: case 'q1': no question has this id in x.questions.csv",
            ],
        ),
        (
            "id,question,reference\nq1,Why?,a\nq2,How?,\n",
            REFERENCES,
            ["x.questions.csv:2:1: case 'q1': reference belongs into x.references.csv; leave it out here"],
        ),
        (
            QUESTIONS,
            "id,answer\nq1,a\n",
            [
                "x.references.csv:1:1: 'answer' is not a known column; it is 'reference' here; "
                "`rageval cases convert` reads such files"
            ],
        ),
    ],
    ids=["on one side only", "no id", "on both sides", "another column"],
)
def test_what_does_not_join_is_said_in_the_file_where_it_stands(
    tmp_path: Path, questions: str, references: str, problems: list[str]
):
    found = joined(tmp_path, questions, references).problems
    assert list(found)[: len(problems)] == problems
    assert len(found) == len(problems) or "the header" in found[-1]


def test_a_line_that_cannot_be_read_makes_no_id_look_missing(tmp_path: Path):
    file = joined(tmp_path, QUESTIONS, "id,reference\nq1\nq2,So.\n")
    assert [problem.split(": ")[0] for problem in file.problems] == ["x.references.csv:2:1"]
    file = joined(tmp_path, "id,question\nq1\nq2,Why?\n", REFERENCES)
    assert [problem.split(": ")[0] for problem in file.problems] == ["x.questions.csv:2:1"]


def test_questions_need_exactly_one_file_of_references(tmp_path: Path):
    alone = loaded(tmp_path, QUESTIONS, "y.questions.csv")
    assert alone.problems == (
        "y.questions.csv: needs its references beside it, in y.references.csv or y.references.jsonl; "
        "or give the file another name",
    )
    (tmp_path / "x.references.jsonl").write_text("")
    assert joined(tmp_path).problems == (
        "x.questions.csv: both x.references.csv and x.references.jsonl stand beside it; keep one",
    )
