"""`rageval export`: where it writes, what it will not overwrite, and what goes wrong in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from project import problems
from stored_runs import a_result, a_run

from pytest_rageval.cli.main import rageval

REPORTS = Path("reports")
RUN = REPORTS / "runs" / "a"


@pytest.fixture(autouse=True)
def a_stored_run(here: Path) -> None:
    a_run(here / REPORTS, "a", a_result("q1", "남산"), a_result("q2"))


def export(*arguments: str) -> Result:
    return CliRunner().invoke(rageval, ["export", *arguments])


@pytest.mark.parametrize("form", ["csv", "json", "sqlite"])
def test_a_run_is_written_into_its_folder_again_and_again(form: str):
    for _ in range(2):
        result = export("latest", "--format", form)
        assert (result.exit_code, result.output.rpartition("/")[2]) == (0, f"report.{form}: 2 records\n")
    assert [path.name for path in RUN.iterdir() if path.name.startswith((".", "report"))] == [f"report.{form}"]


def test_a_file_that_is_there_is_replaced_by_force_alone():
    Path("mine.csv").write_text("precious")
    assert problems(export("a", "--format", "csv", "--output", "mine.csv")) == [
        "--output: mine.csv is there already; replace it with --force"
    ]
    assert Path("mine.csv").read_text() == "precious"
    assert export("a", "--format", "csv", "--output", "mine.csv", "--force").exit_code == 0
    assert Path("mine.csv").read_text(encoding="utf-8").splitlines()[1].startswith('"evalcases/a.jsonl::q1","q1",0,')


def test_text_goes_to_standard_output_and_nothing_else_does():
    result = export("a", "--format", "json", "--output", "-")
    assert [record["answer"] for record in json.loads(result.stdout)["cases"]] == ["남산", "At 100 degrees."]
    assert export("a", "--format", "csv", "--output", "-").stdout.count("\n") == 3
    assert export("a", "--format", "sqlite", "--output", "-").exit_code == 2


@pytest.mark.parametrize("form", ["csv", "json", "sqlite"])
def test_a_place_that_cannot_be_written_to_is_one_line(form: str):
    Path("file").write_text("")
    Path("folder").mkdir()
    for output in ("file/below", "folder"):
        (problem,) = problems(export("a", "--format", form, "--output", output, "--force"))
        assert problem.startswith(f"--output: {output} cannot be written: ")
    assert list(Path("folder").iterdir()) == []
