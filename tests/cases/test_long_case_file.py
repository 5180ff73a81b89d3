"""Cases of a long file that are read again are those that were read first; a changed file is said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from project import a_case

from pytest_rageval.cases import content_hash, load_file, long_case_file, read_long_file
from pytest_rageval.cases.long_case_file import ChangedCaseFile
from pytest_rageval.cases.selected_cases import SelectedCases
from pytest_rageval.io.compact.file_lines import FileLines
from pytest_rageval.model import EvalCase
from pytest_rageval.runs.config import dataset_hash, dataset_hash_of


@pytest.fixture(autouse=True)
def _few_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_case_file, "HELD", 2)


def write(path: Path, ids: Sequence[str], end: str = "\n") -> Path:
    lines = [json.dumps(a_case(case_id), ensure_ascii=False) for case_id in ids]
    path.write_text(end.join(lines), encoding="utf-8", newline="")
    return path


IDS = ("a", "b", "탑", "d", "e")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n  \n"])
def test_its_cases_are_those_of_a_file_that_is_held(tmp_path: Path, end: str):
    path = write(tmp_path / "a.jsonl", IDS, end)
    held, long = load_file(path, tmp_path), read_long_file(path, tmp_path)
    assert list(long.cases) == list(held.cases)
    assert long.cases[-1] == held.cases[-1]
    assert long.cases[1:4] == list(held.cases[1:4])
    assert long.spellings == held.spellings
    assert not long.problems


def test_problems_are_those_of_a_file_that_is_held(tmp_path: Path):
    path = write(tmp_path / "a.jsonl", [*IDS, "b", "e", "f"])
    path.write_text(path.read_text(encoding="utf-8") + '\n{"id": "탑", "question": 3}\n{"id"', encoding="utf-8")
    held, long = load_file(path, tmp_path), read_long_file(path, tmp_path)
    assert long.problems == held.problems
    assert len(long.problems) == 5
    assert list(long.cases) == list(held.cases)
    path.write_text("\n")
    assert read_long_file(path, tmp_path).problems == load_file(path, tmp_path).problems
    gone = tmp_path / "gone.jsonl"
    assert read_long_file(gone, tmp_path).problems == load_file(gone, tmp_path).problems


def test_cases_with_references_and_those_of_a_table_are_held(tmp_path: Path):
    (tmp_path / "x.questions.jsonl").write_text('{"id": "a", "question": "Why?"}\n')
    (tmp_path / "x.references.jsonl").write_text('{"id": "a", "reference": "So."}\n')
    (tmp_path / "t.csv").write_text("id,question\na,Why?\nb,How?\nc,Who?\n")
    for name in ("x.questions.jsonl", "t.csv"):
        assert read_long_file(tmp_path / name, tmp_path) == load_file(tmp_path / name, tmp_path)


@pytest.mark.parametrize("change", ["edited", "longer", "cut off", "gone"])
def test_a_file_that_changed_since_is_said_with_its_line(tmp_path: Path, change: str):
    path = write(tmp_path / "a.jsonl", IDS)
    cases = read_long_file(path, tmp_path).cases
    if change == "gone":
        path.unlink()
    else:
        text = path.read_text(encoding="utf-8")
        edited = {"edited": text.replace('"e"', '"E"'), "longer": f"\n{text}", "cut off": text[: len(text) // 2]}
        path.write_text(edited[change], encoding="utf-8")
    assert cases[0].id == "a"
    with pytest.raises(ChangedCaseFile, match=r"^a\.jsonl:5: has changed since the run began; put it back"):
        cases[4]


# ── those that a run selects ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def parts(tmp_path: Path) -> list[Sequence[EvalCase]]:
    return [
        read_long_file(write(tmp_path / "a.jsonl", IDS), tmp_path).cases,
        (),
        load_file(write(tmp_path / "b.jsonl", ("a", "z")), tmp_path).cases,
    ]


def test_selected_cases_are_one_sequence(parts: list[Sequence[EvalCase]]):
    every = [case for part in parts for case in part]
    cases = SelectedCases(parts)
    assert list(cases) == every
    assert list(cases.names()) == [(case.key, case.id) for case in every]
    assert list(cases.keys()) == [case.key for case in every]
    assert list(cases[2:6]) == every[2:6]
    assert cases[-1] == every[-1]
    assert ("a.jsonl::탑", "탑") in cases.names()
    assert "b.jsonl::z" in cases.keys()  # noqa: SIM118 because it is no mapping
    assert "b.jsonl::b" not in cases.keys()  # noqa: SIM118
    assert not SelectedCases()


def test_their_contents_are_known_without_a_line_that_is_read_again(
    parts: list[Sequence[EvalCase]], monkeypatch: pytest.MonkeyPatch
):
    every = [(case.key, content_hash(case)) for part in parts for case in part]
    monkeypatch.delattr(FileLines, "text")
    cases = SelectedCases(parts)
    assert list(cases.contents()) == every
    assert list(SelectedCases([cases[3:]]).contents()) == every[3:]
    assert dataset_hash(cases) == dataset_hash_of(every)


def test_those_of_some_keys_keep_their_order(parts: list[Sequence[EvalCase]]):
    cases = SelectedCases(parts)
    some = cases.where(lambda key: key.endswith(("e", "a")))
    assert [case.key for case in some] == ["a.jsonl::a", "a.jsonl::e", "b.jsonl::a"]
    assert [case.key for case in some.where(lambda key: "::a" in key)] == ["a.jsonl::a", "b.jsonl::a"]
    assert [case.key for case in some[1:]] == ["a.jsonl::e", "b.jsonl::a"]
    assert cases.where(lambda _: True) is cases
    assert list(SelectedCases.of(list(some)).keys()) == list(some.keys())
    assert SelectedCases.of(some) is some
