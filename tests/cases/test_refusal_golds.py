"""Right answers that only say that there is none."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from project import Project, lines_with

from pytest_rageval.cases.exchange.formats import read_other
from pytest_rageval.cases.refusal_golds import declines_as_gold, is_blank_gold
from pytest_rageval.cli.cases import cases as cases_command

REFUSALS = """Not in the documents.
I cannot answer this question based on the provided context.
The documentation does not mention the bank.
UNANSWERABLE
(no answer - should refuse)
I don't know.
No information available.
Cannot be answered from the documents
The bot should refuse.
nicht beantwortbar
Nicht in den Dokumenten enthalten.
Dazu habe ich leider keine Informationen.
답변 불가
제공된 문서로는 답변할 수 없습니다.
回答不可
資料には記載がありません。
文档中没有提到。
Je ne peux pas répondre à cette question à partir du contexte fourni.
Sans réponse
No se menciona en los documentos.""".splitlines()
ANSWERS = """Refunds are not possible after 30 days.
This is not supported.
No.
Not allowed.
The contract does not include a warranty.
No information is stored.
The API returns no answer.
Say 'I don't know' and escalate.
No documents are needed.
Das ist nicht möglich.
지원하지 않습니다.
It is not available in Germany.
Denied""".splitlines()


def converted(folder: Path, golds: list[str], *options: str):
    source = folder / "set.csv"
    output = folder / "cases.jsonl"
    with source.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "expected_answer", "source"])
        writer.writerows([f"What about {row}?", gold, "a.md"] for row, gold in enumerate(golds))
    ended = CliRunner().invoke(cases_command, ["convert", str(source), "-o", str(output), "--force", *options])
    assert ended.exit_code == 0, ended.exception
    return ended.output, [json.loads(line) for line in output.read_text("utf-8").splitlines()]


def test_a_refusal_as_right_answer_means_that_there_is_none(tmp_path: Path):
    output, cases = converted(tmp_path, [*REFUSALS, *ANSWERS])
    assert [case.get("answerable", True) for case in cases] == [False] * len(REFUSALS) + [True] * len(ANSWERS)
    assert all("reference" not in case and "gold_supports" not in case for case in cases[: len(REFUSALS)])
    assert [case["reference"] for case in cases[len(REFUSALS) :]] == ANSWERS
    assert f"({len(REFUSALS)} rows)" in output
    _, cases = converted(tmp_path, REFUSALS, "--map", "answerable=")
    assert [case["reference"] for case in cases] == REFUSALS


@pytest.mark.parametrize("blank", ["-", "—", "none", "None", "n/a", "tbd", "TODO", "???", "해당 없음".replace(" ", "")])
def test_marks_for_a_blank_cell_are_no_right_answer_and_no_place(tmp_path: Path, blank: str):
    _, cases = converted(tmp_path, [blank, "0"])
    assert "reference" not in cases[0]
    assert cases[1]["reference"] == "0"


@pytest.mark.parametrize(
    ("question", "gold", "is_answer"),
    [
        ("How many are included?", "None", True),
        ("Which fee applies?", "none", True),
        ("Who may enter?", "None", True),
        ("Wie viele gibt es?", "Keine", True),
        ("몇 개가 포함됩니까?", "없음", True),
        ("What is the fee?", "None", False),
        ("Wie hoch ist die Gebühr?", "keine", False),
        ("How many are included?", "-", False),
        ("How many are included?", "tbd", False),
    ],
)
def test_none_is_an_answer_where_the_question_asks_for_one_of_several(
    tmp_path: Path, question: str, gold: str, is_answer: bool
):
    source = tmp_path / "set.json"
    source.write_text(json.dumps([{"question": question, "expected_answer": gold}, {"question": "Why?"}]), "utf-8")
    case = read_other(source, source.name).cases[0]
    assert case.get("reference") == (gold if is_answer else None)


def test_a_question_about_the_documents_may_have_such_an_answer():
    assert not declines_as_gold("The policy document does not mention pets.", "Does the document mention pets?")
    assert not is_blank_gold("No")


def test_audit_names_such_a_right_answer_in_a_file_of_ours(project: Project):
    project.cases([{"id": "a", "question": "Who is it?", "reference": "I don't know."}])
    (line,) = lines_with(project.rageval("cases", "audit"), "case 'a'")
    assert "says that there is none" in line
    assert '"answerable": false' in line


def test_validate_names_such_right_answers_and_is_content(project: Project):
    project.cases(
        [
            {"id": "a", "question": "Who is it?", "reference": "I don't know."},
            {"id": "b", "question": "What is it?", "reference": "A book."},
            {"id": "c", "question": "When is it?", "answerable": False},
        ]
    )
    result = project.rageval("cases", "validate")
    assert result.ret == 0
    (line,) = lines_with(result, "says that there is none")
    assert line.startswith("1 right answer says that there is none: a; ")
    project.cases([{"id": "b", "question": "What is it?", "reference": "A book."}])
    assert "there is none" not in project.rageval("cases", "validate").stderr.str()
