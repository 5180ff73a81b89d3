"""`rageval compare`: real runs of a project, in each form, with the exit code of what was found."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from project import Project, a_case, a_missed_case
from project import rageval as command
from stored_runs import a_row, store

WORSE = """
import bot
def answer(question):
    found = bot.answer(question)
    if "worse" in question:
        found["debug"]["retrieved_chunks"] = []
        found["answer"] = "I say <b>nothing</b>."
    return found
"""


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """A folder of two stored runs: ten cases pass in the first, three of them fail in the second."""
    keys = [f"a.jsonl::물-{number}" for number in range(10)]
    store(tmp_path / "reports", "first", [a_row(key, recall_any_at_5=1.0) for key in keys], records={})
    failed: dict[str, Any] = {"outcome": "failed", "failed": (("recall_any@5", None),)}
    worse = [
        a_row(key, recall_any_at_5=float(number >= 3), **(failed if number < 3 else {}))
        for number, key in enumerate(keys)
    ]
    store(tmp_path / "reports", "second", worse, records={keys[0]: {"answer": "I say <b>nothing</b>."}})
    return tmp_path


def rageval(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    cleared = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    with mock.patch.dict(os.environ, cleared, clear=True):
        return command(folder, "compare", *arguments, **environment)


def test_real_runs_are_compared_with_their_cases(project: Project):
    project.cases([a_case(f"물-{n}", f"boiling {'worse' if n < 3 else 'fine'} {n}") for n in range(10)])
    project.write("worse.py", WORSE)
    project.run("--rageval-update-baseline", "--rageval-run-id", "first")
    project.run("--rageval-target", "worse:answer", "--rageval-run-id", "second")
    found = rageval(project.path, "baseline", "latest")
    assert found.returncode == 1, found.stderr
    for said in (
        "→ worse:answer",
        "FAILS: recall_any@5 1.0 → 0.7, tolerated drop 0.05",
        "Fail now, did not before (3)",
        "evalcases/a.jsonl::물-0",
        "lost (was rank 1), notes/water.md > # Water > ## Boiling",
        "I say <b>nothing</b>.",
    ):
        assert said in found.stdout
    assert found.stdout.startswith("✘ Fails the build: 3 cases newly fail, ")

    with_tables = rageval(project.path, "first", "second", "--format", "json").stdout
    for run in ("first", "second"):
        (project.path / "reports/runs" / run / "scores.jsonl").unlink()
    assert rageval(project.path, "first", "second", "--format", "json").stdout == with_tables

    (project.path / "reports/runs/first").rename(project.path / "elsewhere")
    with_texts = rageval(project.path, "baseline", "latest").stdout
    assert "answer before  Water boils at 100 degrees" in with_texts
    (project.path / "reports/baseline.texts.json.gz").unlink()
    elsewhere = rageval(project.path, "baseline", "latest")
    assert elsewhere.returncode == 1
    assert "baseline holds no texts" in elsewhere.stdout
    assert "answer before  no record was kept" in elsewhere.stdout


@pytest.mark.parametrize("form", ["markdown", "html", "json", "terminal"])
def test_a_file_holds_what_would_have_been_shown(reports: Path, form: str):
    found = rageval(reports, "first", "second", "--format", form, "--output", "out/found.txt")
    assert (found.returncode, found.stdout, found.stderr) == (1, "", "")
    text = (reports / "out/found.txt").read_text(encoding="utf-8")
    assert "물-0" in text
    assert "<b>nothing</b>" not in text or form in ("json", "terminal")


def test_another_dataset_is_an_error_until_it_is_ignored(reports: Path):
    rows = [a_row(f"a.jsonl::물-{number}", recall_any_at_5=1.0, content_hash="other") for number in range(10)]
    store(reports / "reports", "third", rows)
    refused = rageval(reports, "first", "third")
    assert refused.returncode == 1
    assert "ERROR: not comparable: dataset was " in refused.stderr
    assert "10 changed (a.jsonl::물-0, a.jsonl::물-1" in refused.stderr
    assert "--ignore-invariants compares all the same" in refused.stderr
    taken = rageval(reports, "first", "third", "--ignore-invariants")
    assert taken.returncode == 0
    assert "compared in spite of: dataset was" in taken.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["first"], "Missing argument 'B'"),
        (["first", "nowhere"], "ERROR: there is no run 'nowhere'; the last ones are first, second"),
        (["first", "second", "--format", "pdf"], "Invalid value for '--format'"),
        (["first", "second", "--output", "reports/runs/first/config.json/x"], "cannot be written"),
    ],
)
def test_wrong_usage_ends_with_2_and_a_line(reports: Path, arguments: list[str], said: str):
    found = rageval(reports, *arguments)
    assert found.returncode == 2
    assert said in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("verb", [["gate", "latest", "--gate", "mrr >= 1"], ["compare", "latest~1", "latest"]])
def test_colour_of_every_verb_obeys_the_two_variables(project: Project, verb: list[str]):
    project.cases([a_missed_case("odd"), a_case("boil")])
    project.run()
    project.run()

    def shown(**environment: str) -> str:
        return project.rageval(*verb, **{"NO_COLOR": "", "FORCE_COLOR": ""} | environment).stdout.str()

    assert "\x1b[" not in shown()
    assert "\x1b[" in shown(FORCE_COLOR="1")
    assert "\x1b[" not in shown(FORCE_COLOR="1", NO_COLOR="1")
