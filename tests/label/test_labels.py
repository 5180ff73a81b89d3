"""Labels that people wrote: what is read, and that everything wrong is said with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_rageval.check.labels import Label, read_labels
from pytest_rageval.errors import CaseError

SCALE = (0.0, 5.0)


def a_label(id: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "question": "Q?", "answer": "A.", "contexts": ["C."], "human_pass": True} | fields


def written(folder: Path, *records: Any, name: str = "labels.jsonl") -> Path:
    path = folder / name
    lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def read(path: Path) -> tuple[Label, ...]:
    return read_labels(path, SCALE, 1 << 16)


def problems(path: Path) -> list[str]:
    with pytest.raises(CaseError) as caught:
        read(path)
    return [problem.removeprefix(str(path)) for problem in caught.value.problems]


def test_a_label_names_a_case_of_a_run(tmp_path: Path):
    first, second = read(
        written(
            tmp_path,
            {"run": "r1", "case_key": "a.jsonl::x", "human_score": 2},
            {"case_key": "a.jsonl::x", "human_pass": False},
        )
    )
    assert (first.run, first.case_key, first.human_score) == ("r1", "a.jsonl::x", 2.0)
    assert (second.run, second.case_key, second.human_pass) == (None, "a.jsonl::x", False)


@pytest.mark.parametrize(
    ("word", "passes"),
    [("true", True), ("FALSE", False), ("1", True), ("0", False), ("Yes", True), ("no ", False), (1, True), (0, False)],
)
def test_pass_or_fail_has_many_spellings(tmp_path: Path, word: object, passes: bool):
    assert read(written(tmp_path, a_label("a", human_pass=word)))[0].human_pass is passes


def test_a_table_holds_contexts_as_json_or_as_one_text(tmp_path: Path):
    path = tmp_path / "labels.csv"
    rows = [
        "id,question,answer,contexts,human_score,human_pass",
        'a,Q?,A.,"[""one"", ""two""]",3.5,yes',
        'b,Q?,A.,"[1] a passage that begins with a bracket",,0',
        'c,Q?,A.,,1,',
    ]  # fmt: skip
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    first, second, third = read(path)
    assert (first.contexts, first.human_score, first.human_pass) == (("one", "two"), 3.5, True)
    assert (second.contexts, second.human_score, second.human_pass) == (
        ("[1] a passage that begins with a bracket",),
        None,
        False,
    )
    assert (third.contexts, third.human_score, third.human_pass) == ((), 1.0, None)


def test_everything_that_is_wrong_is_said_with_its_place(tmp_path: Path):
    path = written(
        tmp_path,
        a_label("a", human_scor=3),
        a_label("b", human_score=7),
        a_label("c", human_pass="perhaps"),
        {"id": "d", "question": "Q?", "human_pass": True},
        a_label("e", human_pass=None),
        "{broken",
        a_label("f", contexts=[1]),
        a_label("g", human_score="nan"),
        {"case_key": "k", "question": "Q?", "human_pass": True},
        {"run": "r", "id": "h", "human_pass": True},
        a_label("i"),
        a_label("i"),
        '{"id": "j", "judge_score": NaN, "human_pass": true}',
    )
    assert problems(path) == [
        ":1:87: case 'a': human_scor is not a known key; did you mean 'human_score'?",
        ":2:102: case 'b': human_score is 7, outside the rubric's scale 0 to 5",
        ":3:81: case 'c': human_pass is 'perhaps' (a string), expected true or false (or yes, no, 1, 0)",
        ":4:1: case 'd': question and answer are both needed to be judged; or give judge_score",
        ":5:1: case 'e': neither human_score nor human_pass is given; label the answer, or leave its line out",
        ":6:2: not valid JSON: expecting property name enclosed in double quotes",
        ":7:60: case 'f': contexts[0] is 1 (a number), expected a string",
        ":8:102: case 'g': human_score is 'nan' (a string), expected a finite number",
        ":9:1: case 'k': question stands beside case_key; the run has it already, so leave it out",
        ":10:1: case 'h': case_key is missing: which case of the run is meant?",
        ":12:1: 'i' is labelled twice, first at line 11; keep one label for each answer",
        ":13:28: case 'j': judge_score is NaN, which is not a JSON number; write null, or leave it out",
    ]


def test_a_table_without_labels_is_no_table_of_labels(tmp_path: Path):
    path = tmp_path / "labels.csv"
    path.write_text("id,question,answer\na,Q?,A.\n", encoding="utf-8")
    assert problems(path) == [":1:1: the header has no column 'human_score' or 'human_pass'"]


@pytest.mark.parametrize(("content", "said"), [("", ": holds no labels"), (None, ": does not exist")])
def test_a_file_without_labels_is_said(tmp_path: Path, content: str | None, said: str):
    path = tmp_path / "labels.jsonl"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    assert problems(path) == [said]


def test_a_file_without_end_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pytest_rageval.check.labels.MOST_LABELS", 1000)
    record = '{"id": "%d", "judge_score": 1, "human_pass": 1}'
    path = written(tmp_path, *(record % number for number in range(1005)))
    assert problems(path) == [":1001:1: more than 1,000 labels; the rest was not read"]


def test_a_line_without_end_is_not_read_to_its_end(tmp_path: Path):
    path = written(tmp_path, a_label("a", answer="x" * (1 << 17)))
    assert problems(path) == [":1:1: the line is longer than 65,536 bytes; shorten it"]
