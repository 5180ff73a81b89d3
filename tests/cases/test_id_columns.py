"""Columns of ids under the names that people give them, and those that only look like them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pytest_rageval.cases.exchange.formats import read_other

NAMES = (
    "#,No,No.,Nr.,№,N°,ref,Code,key,UID,tc,TC ID,case_no,Case No.,case id,question id,Q#,ID #,QID,Case #,S.No,"
    "Lfd. Nr.,"
    "Test ID,Testfall,identifiant,Identificador,Kennung,Volgnummer,번호,문항 번호,番号,項番,编号,序号,题号,item"
)


def ids(folder: Path, rows: Sequence[Mapping[str, object]]) -> list[object]:
    path = folder / "set.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return [case.get("id") for case in read_other(path, path.name).cases]


@pytest.mark.parametrize("name", NAMES.split(","))
@pytest.mark.parametrize("values", [["7", "8"], [101, 102], ["RQ-1", "RQ-2"]], ids=["figures", "numbers", "codes"])
def test_ids_have_many_names(name, values, tmp_path):
    rows = [{name: value, "question": f"What is {value}?", "expected_answer": "It."} for value in values]
    assert ids(tmp_path, rows) == [str(value) for value in values]


@pytest.mark.parametrize(
    "values", [["HR", "HR"], ["HR-1", None], ["a long remark about it", "another one"], ["x" * 70, "y" * 70],
               ["a.md", "b.md"], [True, False], [1.5, 2.5]]
)  # fmt: skip
@pytest.mark.parametrize("name", ["ref", "code", "uid"])
def test_what_repeats_is_blank_or_is_no_id_is_none(name, values, tmp_path):
    rows = [
        {"question": f"What is number {at}?", "expected_answer": "It.", name: value} for at, value in enumerate(values)
    ]
    assert all(len(str(each)) == 12 for each in ids(tmp_path, rows))  # hashes of the content


@pytest.mark.parametrize("name", ["ref", "code", "key"])
def test_what_may_be_the_only_right_answer_is_no_id(name, tmp_path):
    rows = [{"question": f"Which code has {town}?", name: code} for town, code in (("Bern", "031"), ("Basel", "061"))]
    assert not {"031", "061"} & set(ids(tmp_path, rows))


def test_an_id_stays_the_id_beside_a_number_and_gives_way_where_it_repeats(tmp_path):
    rows = [
        {"#": 1, "id": "a", "question": "Q1?", "expected": "A."},
        {"#": 2, "id": "b", "question": "Q2?", "expected": "B."},
    ]
    assert ids(tmp_path, rows) == ["a", "b"]
    assert ids(tmp_path, [row | {"id": "handbook"} for row in rows]) == ["1", "2"]
