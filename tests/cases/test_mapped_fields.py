"""`--map` and headers as people write them: names with signs of JMESPath, our own keys, chunks in cells, no answer."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from pytest_rageval.cases.exchange.formats import ReadOptions, read_other, read_other_answers
from pytest_rageval.cases.exchange.mapped_fields import parsed_fields
from pytest_rageval.errors import CaseError
from pytest_rageval.model import Json


def a_table(folder: Path, *rows: list[str]) -> Path:
    path = folder / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def a_workbook(folder: Path, *rows: list[str]) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["How to fill in this workbook"])
    sheet = book.create_sheet("Questions")
    for row in rows:
        sheet.append(row)
    path = folder / "table.xlsx"
    book.save(path)
    return path


def questions_in(path: Path, *mapped: str) -> list[Json]:
    options = ReadOptions(fields=parsed_fields(mapped))
    return [case["question"] for case in read_other(path, path.name, options=options).cases]


@pytest.mark.parametrize(
    "name", ["Question (customer)", "Text (v2)", "max (points)", "Asked?", "Nr. 1: text", 'The "text"', "length(x)"]
)
def test_the_name_of_a_column_is_no_expression(tmp_path: Path, name: str):
    path = a_table(tmp_path, [name, "Answer", "x"], ["When?", "Now.", "abc"])
    assert questions_in(path, f"question={name}") == ["When?"]


def test_an_expression_that_no_column_is_named_like_stays_one(tmp_path: Path):
    path = a_table(tmp_path, ["Frage", "Antwort"], ["Wann?", "Jetzt."])
    assert questions_in(path, "question=join(' ', ['Sag:', Frage])") == ["Sag: Wann?"]
    with pytest.raises(CaseError, match=r"--map 'question=Fragen\(x\)': there is no function Fragen\(\)"):
        questions_in(path, "question=Fragen(x)")


@pytest.mark.parametrize("kind", [a_table, a_workbook])
@pytest.mark.parametrize("header", [["Question (customer)", "Answer"], ["No", "Frage des Kunden", "Antwort"]])
def test_a_header_below_a_title_is_found_though_it_has_words_of_its_own(tmp_path: Path, kind, header: list[str]):
    values = ["1", "When?", "Now."][-len(header) :]
    path = kind(tmp_path, ["Questions of our customers", ""], header, values)
    read = read_other(path, path.name)
    assert [(case["question"], case["reference"]) for case in read.cases] == [("When?", "Now.")]
    if kind is a_table:
        assert f"{path.name}: 1 row above the header was not read" in read.notes


def test_a_row_of_texts_about_questions_is_no_header(tmp_path: Path):
    path = a_table(tmp_path, ["Text", "Remark"], ["Which question is asked most?", "Answer"], ["Who?", "Reference"])
    assert questions_in(path, "question=Text") == ["Which question is asked most?", "Who?"]


CHUNKS = [
    {"rel_path": "notes/water.md", "heading_path": "# Water", "text": "It boils."},
    {"source": "notes/ice.md"},
    {"page_content": "Snow.", "metadata": {"source": "notes/snow.md"}},
]


def answers_in(path: Path, *mapped: str) -> list[dict[str, Json]]:
    return read_other_answers(path, path.name, parsed_fields(mapped)).answers


@pytest.mark.parametrize("field", ["retrieved", "retrieved_chunks"])
def test_chunks_in_a_cell_keep_their_places(tmp_path: Path, field: str):
    path = a_table(tmp_path, ["id", "answer", "Stellen"], ["boil", "At 100.", json.dumps(CHUNKS)])
    (answer,) = answers_in(path, "id=id", "answer=answer", f"{field}=Stellen")
    assert answer["retrieved_chunks"] == [
        {"text": "It boils.", "rank": 1, "rel_path": "notes/water.md", "heading_path": "# Water"},
        {"rank": 2, "rel_path": "notes/ice.md"},
        {"text": "Snow.", "rank": 3, "rel_path": "notes/snow.md"},
    ]


def test_objects_that_are_no_chunks_become_no_passages(tmp_path: Path):
    path = a_table(tmp_path, ["id", "answer", "Stellen"], ["boil", "At 100.", '[{"weight": 3}]'])
    (answer,) = answers_in(path, "retrieved=Stellen")
    assert answer == {"id": "boil", "answer": "At 100.", "meta": {"Stellen": [{"weight": 3}]}}


def test_a_blank_answer_is_an_abstention_only_if_the_row_says_so(tmp_path: Path):
    rows = [["id", "answer", "abstained"], ["a", "Yes.", "false"], ["b", "", "true"]]
    assert answers_in(a_table(tmp_path, *rows)) == [
        {"id": "a", "answer": "Yes.", "abstained": False},
        {"id": "b", "abstained": True},
    ]
    with pytest.raises(CaseError) as raised:
        answers_in(a_table(tmp_path, *rows, ["c", "", ""], ["d", "", "false"]))
    blank = "the answer is blank and nothing was retrieved; if the system declined, write true into a column abstained"
    assert [line.partition(", else")[0] for line in str(raised.value).splitlines()] == [
        f"table.csv:4:1: case 'c': {blank}",
        f"table.csv:5:1: case 'd': {blank}",
    ]
