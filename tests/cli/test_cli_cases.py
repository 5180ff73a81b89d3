"""`rageval cases`: what a person sees, what a program reads, and the exit codes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pytest_rageval.cli.cases import cases

pytestmark = pytest.mark.usefixtures("here")


def a_project(root: Path, **files: str) -> None:
    (root / "evalcases").mkdir()
    for name, content in files.items():
        (root / "evalcases" / name.replace("__", ".")).write_text(content, encoding="utf-8")


def rageval_cases(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cases, [str(one) for one in arguments])


SOUND = '{"id": "q1", "question": "Why?"}\n{"id": "q2", "question": "왜?", "category": "시장"}\n'


def test_sound_files_are_counted_and_the_exit_code_is_0(here: Path):
    a_project(here, a__jsonl=SOUND, b__csv="question\nHow?\n")
    result = rageval_cases("validate")
    assert (result.exit_code, result.output) == (0, "2 files, 3 cases, 0 problems\n")


def test_problems_are_listed_one_a_line_and_the_exit_code_is_1(here: Path):
    a_project(here, a__jsonl=SOUND + "{\n", b__jsonl='{"question": 1}')
    result = rageval_cases("validate")
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        "evalcases/a.jsonl:3:2: not valid JSON: expecting property name enclosed in double quotes",
        "evalcases/b.jsonl:1:14: question is 1 (a number), expected a string",
        "2 files, 2 cases, 2 problems",
    ]


def test_validate_as_json(here: Path):
    a_project(here, a__jsonl=SOUND + "null")
    result = rageval_cases("validate", "--json")
    assert result.exit_code == 1
    problem = "evalcases/a.jsonl:3:1: is null, expected an object"
    assert json.loads(result.output) == {
        "cases": 2,
        "problems": 1,
        "files": [{"path": str(here / "evalcases/a.jsonl"), "cases": 2, "problems": [problem]}],
        "next": [shlex.join(["rageval", "cases", "validate", str(here / "evalcases/a.jsonl")])],
    }


def test_named_files_and_folders_are_checked_instead(here: Path):
    a_project(here, a__jsonl=SOUND, b__jsonl="{")
    (here / "other.jsonl").write_text(SOUND)
    assert rageval_cases("validate", "evalcases/a.jsonl", "other.jsonl").exit_code == 0
    assert rageval_cases("validate", "evalcases").exit_code == 1


def test_everything_in_a_folder_may_be_named_references_and_answers_included(here: Path):
    a_project(
        here,
        x__questions__csv="id,question\nq1,Why?\n",
        x__references__csv="id,reference\nq1,Because.\n",
        x__answers__csv="id,answer\nq1,Because.\n",
    )
    result = rageval_cases("validate", *sorted((here / "evalcases").iterdir()))
    assert result.exit_code == 0
    assert "x.answers.csv: holds answers, not cases; passed over" in result.stderr
    assert result.stdout == "1 file, 1 case, 0 problems\n"


@pytest.mark.parametrize("arguments", [["validate"], ["stats"], ["validate", "gone.jsonl"], ["validate", "--foo"]])
def test_nothing_to_check_and_wrong_usage_exit_with_2(arguments: list[str]):
    assert rageval_cases(*arguments).exit_code == 2


def test_stats_count_everything_by_name(here: Path):
    a_project(
        here,
        a__jsonl=SOUND,
        b__jsonl='{"query": "Why?", "relevant_ids": [], "category": "negative", "tags": ["x", "y"], "domain": "lab"}\n'
        '{"question": "Why?", "gold": {"answer": "a", "concepts": []}, "gold_supports": [{"rel_path": "a.md"}]}',
    )
    counts = json.loads(rageval_cases("stats", "--json").output)
    assert counts == {
        "cases": 4,
        "problems": 0,
        "file": {"evalcases/a.jsonl": 2, "evalcases/b.jsonl": 2},
        "spelling": {"question only": 2, "anchors+layers": 1, "ids": 1},
        "category": {"uncategorised": 2, "negative": 1, "시장": 1},
        "difficulty": {"not said": 4},
        "domain": {"not said": 3, "lab": 1},
        "tag": {"x": 1, "y": 1},
        "answerable": {"yes": 3, "no": 1},
        "requires_kg": {"no": 4},
        "gold": {"none": 2, "answers": 1, "chunk_ids": 1, "concepts": 1, "supports": 1},
        "next": ["rageval cases audit"],
    }
