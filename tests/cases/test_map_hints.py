"""Every `--map` that a conversion prints does what it says when it is copied into a shell."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_rageval.cli.cases import cases as cases_command

_HINT = re.compile(r"--map (?:'[^']*'(?:\"'\"'[^']*')*|[^\s';]\S*?)+(?=[\s;,)]|$)")


def table(path: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def documents(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def convert(path: Path, *options: str):
    cases = path.with_name("cases.jsonl")
    ended = CliRunner().invoke(cases_command, ["convert", str(path), "-o", str(cases), "--force", *options])
    read = [json.loads(line) for line in cases.read_text("utf-8").splitlines()] if ended.exit_code == 0 else None
    said = ended.output if ended.exception is None else str(ended.exception)
    return said, read


def hints(output: str) -> list[list[str]]:
    """Return the options that a shell makes of each printed hint."""
    return [shlex.split(found) for found in _HINT.findall(output)]


def answerable(cases: Sequence[Mapping[str, object]]) -> list[bool]:
    return [bool(case.get("answerable", True)) for case in cases]


def rows_of(column: str, values: Sequence[str]) -> list[dict[str, str]]:
    return [{"question": f"Q{row}?", "expected_answer": "A.", column: value} for row, value in enumerate(values)]


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("expected_behavior", ("answer", "refuse", "clarify", ""), (True, False, True, True)),
        ("expected_behavior", ("answer", "refuse", "decline", "clarify"), (True, False, False, True)),
        ("should refuse?", ("no", "yes", "perhaps", ""), (True, False, True, True)),
        ("Expected behaviour (bot's)", ("refuse", "answer", "ask back"), (False, True, True)),
        ("answerable", ("yes", "no", "partially", "it's `no`"), (True, False, True, True)),
        ("answerable", ("yes", "partially"), (True, False)),
        ("is_impossible", ("no", "yes", "don't know"), (True, False, True)),
    ],
)
def test_the_hint_for_a_flag_keeps_what_was_read(tmp_path: Path, column: str, values, expected):
    path = table(tmp_path / "set.csv", rows_of(column, values))
    output, cases = convert(path)
    assert cases is None
    first, last = hints(output)
    assert answerable(convert(path, *first)[1]) == [*expected]
    assert answerable(convert(path, *last)[1]) == [True] * len(values)


@pytest.mark.parametrize(
    "expression", ['b != `"refuse"`', "b != 'refuse'", "!(b == 'refuse')", "contains(b, 'answer')"]
)
@pytest.mark.parametrize("column", ["expected_behavior", "should_refuse", "unanswerable"])
def test_an_expression_means_what_it_says_whatever_the_column_is_called(tmp_path: Path, column: str, expression: str):
    path = table(tmp_path / "set.csv", rows_of(column, ("answer", "refuse")))
    mapped = re.sub(r"\bb\b", column, expression)
    assert answerable(convert(path, "--map", f"answerable={mapped}")[1]) == [True, False]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("Unanswerable (yes/no)", ("no", "yes")),
        ("expected_behavior", ("answer", "refuse")),
        ("In the docs", ("x", "")),
        ("kb?", ("ja", "nein")),
    ],
)
def test_a_column_of_flags_can_be_named_alone(tmp_path: Path, column: str, values):
    path = table(tmp_path / "set.csv", rows_of(column, values))
    assert answerable(convert(path, "--map", f"answerable={column}")[1]) == [True, False]


def test_the_hints_for_two_flags_that_differ_take_the_one_that_they_name(tmp_path: Path):
    rows = [
        {"question": "Who?", "expected_answer": "A.", "Answerable?": "yes", "Out of scope": "yes"},
        {"question": "When?", "expected_answer": "B.", "Answerable?": "yes", "Out of scope": "no"},
    ]
    path = table(tmp_path / "set.csv", rows)
    first, second = hints(convert(path)[0])
    assert answerable(convert(path, *first)[1]) == [True, True]
    assert answerable(convert(path, *second)[1]) == [False, True]


def test_the_hints_for_two_answers_take_the_one_that_they_name(tmp_path: Path):
    rows = [{"question": "Who?", "Expected answer": "A.", "Ground truth": "B."}]
    path = table(tmp_path / "set.csv", rows)
    first, second = hints(convert(path)[0])
    assert convert(path, *first)[1][0]["reference"] == "A."
    assert convert(path, *second)[1][0]["reference"] == "B."


def test_a_hint_for_a_member_within_objects_finds_it_and_keeps_the_format(tmp_path: Path):
    row = {"inputs": {"question": "Who?"}, "outputs": {"answer": "A."}, "metadata": {"is answerable": "partly"}}
    path = documents(tmp_path / "set.jsonl", [row, row | {"metadata": {"is answerable": "no"}}])
    first, _ = hints(convert(path)[0])
    _, cases = convert(path, *first)
    assert answerable(cases) == [True, False]
    assert [case["question"] for case in cases] == ["Who?"] * 2
    assert cases[0]["reference"] == "A."


def test_a_hint_for_what_looks_like_gold_takes_it(tmp_path: Path):
    row = {"inputs": {"question": "Who?"}, "outputs": {"answer": "A.", "other": 1}, "metadata": {"gold source": "x y"}}
    path = documents(tmp_path / "set.jsonl", [row])
    output, _ = convert(path)
    for hint in hints(output):
        assert convert(path, *hint)[1][0]["gold_supports"] == [{"rel_path": "x y"}]


@pytest.mark.parametrize("name", ["Is it?", "a.b", "it's", "a `b`", 'a "b"', "a=b"])
def test_a_name_with_any_sign_is_quoted_for_the_shell(tmp_path: Path, name: str):
    rows = [{"question": "Who?", f"answerable ({name})": "yes"}, {"question": "When?", f"answerable ({name})": "maybe"}]
    path = table(tmp_path / "set.csv", rows)
    first, _ = hints(convert(path)[0])
    assert answerable(convert(path, *first)[1]) == [True, False]
