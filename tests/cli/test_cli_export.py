"""`rageval export`: where it writes, what it will not overwrite, and what goes wrong in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from stored_runs import a_result, a_run

from pytest_rageval.cli.main import rageval
from pytest_rageval.errors import RagevalError

REPORTS = Path("reports")
RUN = REPORTS / "runs" / "a"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    a_run(tmp_path / REPORTS, "a", a_result("q1", "남산"), a_result("q2"))
    return tmp_path


def export(*arguments: str) -> Result:
    return CliRunner().invoke(rageval, ["export", *arguments])


def problems(result: Result) -> tuple[str, ...]:
    assert isinstance(result.exception, RagevalError), result.output
    return result.exception.problems


@pytest.mark.parametrize("form", ["csv", "json", "sqlite"])
def test_a_run_is_written_into_its_folder_again_and_again(form: str):
    for _ in range(2):
        result = export("latest", "--format", form)
        assert (result.exit_code, result.output.rpartition("/")[2]) == (0, f"report.{form}: 2 records\n")
    assert [path.name for path in RUN.iterdir() if path.name.startswith((".", "report"))] == [f"report.{form}"]


def test_what_is_written_into_the_folder_stays_out_of_git():
    assert "report.*" in (REPORTS / ".gitignore").read_text().splitlines()


def test_a_file_that_is_there_is_replaced_by_force_alone():
    Path("mine.csv").write_text("precious")
    assert problems(export("a", "--format", "csv", "--output", "mine.csv")) == (
        "--output: mine.csv is there already; replace it with --force",
    )
    assert Path("mine.csv").read_text() == "precious"
    assert export("a", "--format", "csv", "--output", "mine.csv", "--force").exit_code == 0
    assert Path("mine.csv").read_text(encoding="utf-8").splitlines()[1].startswith('"evalcases/a.jsonl::q1","q1",0,')


def test_text_goes_to_standard_output_and_nothing_else_does():
    result = export("a", "--format", "json", "--output", "-")
    assert [record["answer"] for record in json.loads(result.stdout)["cases"]] == ["남산", "At 100 degrees."]
    assert export("a", "--format", "csv", "--output", "-").stdout.count("\n") == 3
    assert export("a", "--format", "sqlite", "--output", "-").exit_code == 2


def test_a_run_that_did_not_finish_is_exported_and_said(tmp_path: Path):
    a_run(tmp_path / REPORTS, "dead", is_finished=False)
    result = export("dead", "--format", "csv", "--output", "-")
    assert result.stderr == "run dead did not finish: no aggregates, and 1 of its results\n"
    assert result.exit_code == 0


@pytest.mark.parametrize("form", ["csv", "json", "sqlite"])
def test_a_place_that_cannot_be_written_to_is_one_line(form: str):
    Path("file").write_text("")
    Path("folder").mkdir()
    for output in ("file/below", "folder"):
        (problem,) = problems(export("a", "--format", form, "--output", output, "--force"))
        assert problem.startswith(f"--output: {output} cannot be written: ")
    assert list(Path("folder").iterdir()) == []


@pytest.mark.parametrize("form", ["csv", "json", "sqlite"])
@pytest.mark.parametrize(
    ("old", "new"), [('"tags":[]', '"tags":3'), ('"verdict"', '"vrdct"'), ('"retrieved_chunks":[', '"retrieved":[')]
)
def test_a_record_that_no_run_writes_is_one_line_and_no_file(form: str, old: str, new: str):
    path = RUN / "results.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    result = export("a", "--format", form, "--output", "out")
    if result.exit_code:  # a format may do without the field
        assert problems(result) == (
            "run a has no results; there is nothing to export",
            "results.jsonl:1: does not match its checksum; it is left out",
            "results.jsonl:2: does not match its checksum; it is left out",
        )
        assert not Path("out").exists()
    assert [path.name for path in Path().iterdir() if path.name.startswith(".out")] == []


def test_a_run_that_is_not_there_is_named_with_those_that_are():
    assert problems(export("b", "--format", "csv")) == ("there is no run 'b'; the last ones are a",)
