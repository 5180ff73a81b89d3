"""The recipes of CONTRIBUTING.md as patches of at most two files, after which every face knows what is new."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import tomllib
import zlib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from judge_server import JudgeServer
from processes import python
from project import ALONE, BOT, PLAIN, SOME, ProjectFolder, a_case, a_missed_case

import pytest_rageval
from pytest_rageval.comparison.case_filter import WORDS
from pytest_rageval.model import EvalCase
from pytest_rageval.model.case_fields import DESCRIPTIVE_FIELDS

pytestmark = pytest.mark.child_process
PACKAGE = Path(pytest_rageval.__file__).parent
RECIPES = Path(__file__).parent / "data" / "recipes"
MOST_FILES = 2
"""The product files that a recipe's patch may touch."""


class PatchedProject(ProjectFolder):
    """A project whose commands run a copy of the package with a recipe's patch."""

    def __init__(self, folder: Path, recipe: str) -> None:
        super().__init__(folder / "project")
        self.source = folder / "source"
        # With its compiled files, which are valid as long as the copy keeps their times: a start takes a third.
        shutil.copytree(PACKAGE, self.source / PACKAGE.name)
        patch = tomllib.loads((RECIPES / f"{recipe}.toml").read_text(encoding="utf-8"))
        touched = apply_patch(self.source, patch)
        assert len(touched) <= MOST_FILES, sorted(touched)
        self.write("bot.py", BOT)
        self.configure('target = "bot:answer"')

    def python(self, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = os.environ | {"PYTHONPATH": str(self.source), "COLUMNS": "160", "NO_COLOR": "1"} | environment
        done = python(*arguments, cwd=self.path, env=variables)
        print(done.stdout, done.stderr)
        return done

    def rageval(self, *arguments: str | Path, **environment: str) -> str:
        """Run the command; return its output. Exit statuses above 1 fail the test."""
        done = self.python("-m", "pytest_rageval", *arguments, **environment)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    def pytest(self, run_id: str, *arguments: str, **environment: str) -> None:
        done = self.python("-m", "pytest", "-q", *PLAIN, "--rageval-run-id", run_id, *arguments, **ALONE, **environment)
        assert done.returncode in (0, 1), done.stdout

    def results(self, run_id: str) -> dict[str, dict[str, Any]]:
        """Return the records of a run by case id."""
        lines = (self.path / "reports" / "runs" / run_id / "results.jsonl").read_text(encoding="utf-8").splitlines()
        return {record["test_case_id"]: record for record in map(json.loads, lines)}

    def metrics(self) -> dict[str, Any]:
        return json.loads((self.path / "reports" / "metrics.json").read_text(encoding="utf-8"))


def apply_patch(source: Path, patch: Mapping[str, Any]) -> set[str]:
    """Apply a recipe's insertions and new files; return the files that it touches."""
    for created in patch.get("create", ()):
        path = source / created["file"]
        assert not path.exists()
        path.write_text(created["text"], encoding="utf-8")
    for insertion in patch.get("insert", ()):
        path = source / insertion["file"]
        text = path.read_text(encoding="utf-8")
        anchor = insertion["before"]
        assert text.count(anchor) == 1, f"{insertion['file']} holds {text.count(anchor)} times: {anchor}"
        path.write_text(text.replace(anchor, insertion["text"] + anchor), encoding="utf-8")
    return {change["file"] for changes in patch.values() for change in changes}


def test_a_metric_is_one_function_and_is_defined_scored_gated_and_explained(tmp_path: Path):
    project = PatchedProject(tmp_path, "metric")
    assert "rank_share" in project.rageval("metrics")
    project.cases(SOME)
    project.configure('target = "bot:answer"\nmetrics.enabled = ["rank_share"]')
    project.pytest("one", "--rageval-gate", "rank_share >= 1")
    assert project.metrics()["metrics"]["rank_share@5"]["mean"] == 1
    assert project.results("one")["boil"]["scores"] == {"rank_share@5": 1.0}
    assert "the first gold is at rank 1" in project.rageval("explain", "one", "boil")


def test_a_provider_is_one_row_and_judges_with_its_own_key_which_is_masked(tmp_path: Path):
    project = PatchedProject(tmp_path, "provider")
    project.cases(SOME[:1])
    key = "the-key-of-acme-0123456789"
    with JudgeServer(key=key) as server:
        judge = f"acme:model-1@{server.url}"
        project.pytest("one", "--rageval-judge", judge, ACME_API_KEY=key)
        assert len(server.chats) >= 1
    assert project.results("one")["boil"]["judge"]["heuristic"] is False
    written = b"".join(path.read_bytes() for path in project.path.rglob("*") if path.is_file())
    assert key.encode() not in written
    assert "acme:MODEL" in project.python("-m", "pytest_rageval", "judge-check", "--judge", "acm:x").stderr


def test_a_verb_is_one_module_and_one_line(tmp_path: Path):
    project = PatchedProject(tmp_path, "verb")
    project.cases([a_case("boil"), a_missed_case("missed")])
    project.pytest("one")
    assert "failures" in project.rageval("--help")
    assert project.rageval("failures", "one").split() == ["missed"]
    assert json.loads(project.rageval("failures", "one", "--json"))["failed"] == ["missed"]


def test_a_column_of_compared_metrics_is_one_row_and_stands_in_terminal_and_page(tmp_path: Path):
    project = PatchedProject(tmp_path, "column")
    cases = [a_case(f"boil-{number}") for number in range(3)]
    project.cases(cases)
    project.pytest("before")
    project.write("bot.py", (project.path / "bot.py").read_text(encoding="utf-8").replace("notes/water", "notes/ice"))
    project.pytest("after")
    assert "3 in pairs" in project.rageval("compare", "before", "after")
    page = project.path / "pair.html"
    project.rageval("compare", "before", "after", "--format", "html", "--output", page)
    assert "3 in pairs" in page.read_text(encoding="utf-8")


def index_of_page(page: str) -> dict[str, Any]:
    """Return the index block of a report: the columns of its list of cases, which its filter reads."""
    blocks = re.search(r'id="blocks"[^>]*>([^<]*)<', page)
    assert blocks is not None
    first = blocks[1].split("\n")[0]
    return json.loads(zlib.decompress(base64.b64decode(first)))


FORM_OF_BROWSER = """
from starlette.datastructures import FormData
from pytest_rageval.web.column_mapping import CHOICES, guess_mapping
from pytest_rageval.web.pages.dataset_cases import case_of_form, case_values
form = FormData({"question": "Why?", "audience": "staff", "based_on": "1"})
case = case_of_form(form, None, 1000)[1]
print(case.audience, case_values(case)["audience"], "audience" in CHOICES, guess_mapping(["Zielgruppe"])[0].field)
"""


def test_a_case_field_is_one_row_and_is_read_filtered_broken_down_and_shown(tmp_path: Path):
    project = PatchedProject(tmp_path, "case_field")
    project.cases([a_case("boil", audience="customers"), a_missed_case("missed", audience="staff"), a_case("plain")])
    # Read: from lines, rows and other tools' files; described for editors.
    project.write("evalcases/b.csv", "id,question,reference,audience\nrow,What is boiling?,Water boils.,staff\n")
    project.write("other.csv", "Question,Expected answer,Zielgruppe\nWhat is boiling?,Water boils.,staff\n")
    assert " 0 problems" in project.rageval("cases", "validate")
    counts = json.loads(project.rageval("cases", "stats", "--json"))
    assert counts["audience"] == {"staff": 2, "customers": 1, "not said": 1}
    project.rageval("cases", "convert", "other.csv", "--output", "converted.jsonl")
    assert json.loads((project.path / "converted.jsonl").read_text(encoding="utf-8"))["audience"] == "staff"
    assert json.loads(project.rageval("cases", "schema"))["properties"]["audience"]["type"] == ["string", "null"]
    # Recorded, broken down, and a condition of gates.
    project.pytest("one", "--rageval-gate", "mrr >= 0.9 when audience=staff")
    records = project.results("one")
    assert {name: record["audience"] for name, record in records.items()} == {
        "boil": "customers", "missed": "staff", "plain": None, "row": "staff",
    }  # fmt: skip
    assert "mrr" in [gate["metric"] for gate in records["missed"]["verdict"]["failed_gates"]]
    breakdown = project.metrics()["by_audience"]
    assert {value: group["tests"] for value, group in breakdown.items()} == {"customers": 1, "staff": 2}
    # Shown and filtered: terminal, page, export, browser.
    assert "staff" in project.rageval("explain", "one", "missed")
    index = index_of_page((project.path / "reports" / "runs" / "one" / "report.html").read_text(encoding="utf-8"))
    assert "audience" in index["descriptive"]
    assert sorted(index["audiences"]) == ["", "customers", "staff"]
    project.rageval("run", "--only", "audience:customers", "--from", "one", "--run-id", "two")
    assert [*project.results("two")] == ["boil"]
    table = project.path / "run.csv"
    project.rageval("export", "one", "--format", "csv", "--output", table)
    assert "audience" in table.read_text(encoding="utf-8").splitlines()[0]
    browser = project.python("-c", FORM_OF_BROWSER)
    assert browser.stdout.split() == ["staff", "staff", "True", "audience"], browser.stderr


def test_a_run_from_before_a_case_field_can_still_be_read(tmp_path: Path):
    project = PatchedProject(tmp_path, "case_field")
    project.cases([a_case("boil"), a_missed_case("missed")])
    # Recorded by the package as it is.
    unpatched = {"PYTHONPATH": str(PACKAGE.parent)}
    project.pytest("old", **unpatched)
    assert "audience" not in project.results("old")["boil"]
    assert "1 passed" in project.rageval("report", "old") + project.rageval("gate", "old")
    project.pytest("new")
    assert "cases" in project.rageval("compare", "old", "new")


def test_a_type_of_assertions_is_one_function_and_is_read_negated_described_and_shown(tmp_path: Path):
    project = PatchedProject(tmp_path, "assertion")
    ends: dict[str, Any] = {"assert": [{"type": "ends-with", "value": "level."}]}
    negated: dict[str, Any] = {"assert": [{"not-ends-with": "level."}]}
    project.cases([a_case("ends") | ends, a_case("not") | negated])
    schema = json.loads(project.rageval("cases", "schema"))
    assert "not-ends-with" in schema["$defs"]["single_assertion"]["anyOf"][0]["properties"]["type"]["enum"]
    project.pytest("one")
    assert {name: record["scores"]["assertions"] for name, record in project.results("one").items()} == {
        "ends": 1.0, "not": 0.0,
    }  # fmt: skip
    assert "not-ends-with 'level.': it ends otherwise" in project.rageval("explain", "one", "not")


def test_descriptive_fields_are_fields_of_a_case_and_no_other_words_of_the_filter():
    names = [field.name for field in DESCRIPTIVE_FIELDS]
    assert set(names) <= {field.name for field in fields(EvalCase)}
    whole_words = {"outcome", "changed", "tag", "file", "layer", "doubt", "cause", "flaky", "unchecked", "answer"}
    whole_words |= {"conversation", "turn"}
    assert set(WORDS) == {*names, *whole_words}
    assert {*whole_words, "id", "fell", "latency", "drop", "level"}.isdisjoint(names)
