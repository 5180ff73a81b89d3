"""The documentation holds: its examples run as they stand, its tables name what the code has, its links lead somewhere.

In a page, a fenced block with a title is a file, and one of the language `console` is run: what follows `$` is a
command, the lines below it must come in that order (`...` stands for anything). The last command ends with the code
that `exit=N` names, 0 unless given, all others with 0. Other blocks, `sh` among them, are for reading.
"""

from __future__ import annotations

import glob
import inspect
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import make_reference
import pytest
from judge_server import a_model
from project import SOME, Project, rageval, run_pytest

from pytest_rageval import metric, model
from pytest_rageval.assertions.registry import TYPES
from pytest_rageval.cli.main import GROUP_OF
from pytest_rageval.config.options import OPTIONS
from pytest_rageval.config.settings import ENVIRONMENT
from pytest_rageval.demo.parameters import Ask
from pytest_rageval.gates.gate import FIELDS
from pytest_rageval.gates.regression import DEFAULT_REGRESSIONS
from pytest_rageval.judges.rubrics import rubric_names
from pytest_rageval.plugin import hookspecs
from pytest_rageval.runs.row import ASK_FAILED
from pytest_rageval.targets.native_contract import RECORD_FIELDS

ROOT = Path(__file__).parents[1]
WRITTEN_BY_PROGRAMS = {"metrics.md", "benchmarks.md", *make_reference.PAGES}
PAGES = [ROOT / "README.md"]
PAGES += sorted(path for path in (ROOT / "docs").glob("*.md") if path.name not in WRITTEN_BY_PROGRAMS)
_BLOCK = re.compile(r"^```(\w+)(?: ([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """Language, what stands after it, and content of each fenced block that has a language."""
    yield from _BLOCK.findall(text)


def text_of(page: str) -> str:
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


@pytest.fixture
def folder(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty folder in which commands find this environment, pytest our plugin alone, and long lines room."""
    for path in project.path.iterdir():
        path.unlink()
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p pytest_rageval.plugin.hooks")
    monkeypatch.setenv("COLUMNS", "160")
    return project


def check_output(result: pytest.RunResult, expected: list[str]) -> None:
    """The lines come in this order; `...` and wide gaps stand for anything."""
    wild = [re.sub(r"\.\.\.| {3,}", "*", glob.escape(line)) for line in expected]
    result.stdout.fnmatch_lines([line for line in wild if line.strip("* ")])


CALL = r"(?:pytest|rageval)(?: (?:(?! [|>&;])[^|;])*)?"
CALLS = re.compile(rf"{CALL}(?: (?:\|\||&&) (?:{CALL}|true))*")


def needs_shell(command: str) -> bool:
    """Is it anything but calls of pytest and rageval, one if the other ended well or badly?"""
    return CALLS.fullmatch(re.sub(r"\"[^\"]*\"|'[^']*'", "x", command)) is None


def run(folder: Project, command: str) -> pytest.RunResult:
    """Run a command: in this process, where it needs no shell."""
    if needs_shell(command):
        return folder.process("bash", "-c", f"{command} 2>&1")
    code, shown = 0, []
    for how, call in re.findall(r"(^|\|\| |&& )(.*?)(?: (?=\|\||&&)|$)", command):
        if (how == "|| " and code == 0) or (how == "&& " and code != 0):
            continue
        name, *arguments = shlex.split(call)
        code = 0
        if name != "true":
            ended = (run_pytest if name == "pytest" else rageval)(folder.path, *arguments)
            code = ended.returncode
            shown += (ended.stdout + ended.stderr).splitlines()
    return pytest.RunResult(code, shown, [], 0.0)


def check_console(folder: Project, content: str, last_exit: int) -> None:
    """Run the commands of a console block; what they print and how they end must be as written."""
    _, *parts = re.split(r"^\$ ", content, flags=re.MULTILINE)
    for number, part in enumerate(parts, start=1):
        command, *expected = part.splitlines()
        result = run(folder, command)
        assert result.ret == (last_exit if number == len(parts) else 0), command
        check_output(result, expected)


def pages() -> Iterator[Any]:
    """Pages with examples to run; those of which some need a shell start processes."""
    for path in PAGES:
        commands = re.findall(r"^\$ (.*)", path.read_text(encoding="utf-8"), re.MULTILINE)
        marks = [pytest.mark.child_process] if any(map(needs_shell, commands)) else []
        yield pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("page", [*pages()])
def test_the_examples_of_a_page_run_as_they_stand(page: Path, folder: Project):
    if page.stem == "nli":
        words = "Water boils at 100 degrees. Milk boils sooner. Iron melts beyond 1538."
        a_model(folder.path / "models" / "nli", [words])
    for language, about, content in blocks(page.read_text(encoding="utf-8")):
        if title := re.search(r'title="(.+?)"', about):
            folder.write(title[1], content)
        elif language == "console":
            code = re.search(r"exit=(\d+)", about)
            check_console(folder, content, int(code[1]) if code else 0)


@pytest.mark.parametrize("name", make_reference.PAGES)
def test_a_reference_page_is_as_the_code_has_it(name: str):
    assert text_of(name) == make_reference.PAGES[name](), "write it again: python docs/make_reference.py"


def names(page: str) -> set[str]:
    """The words in the code spans of a page."""
    return set(re.findall(r"[\w-]+", " ".join(re.findall(r"`([^`\n]+)`", text_of(page)))))


def of_fields(*types: type[Any]) -> set[str]:
    return {field.name for one in types for field in fields(one)} - {"extra"}


HOOKS = {name for name in vars(hookspecs) if name.startswith("pytest_rageval_")}


FIXTURES = {"rag_client", "rag_judge", "rag_judge_cache", "eval_case", "rageval"}
FOR_SCRIPTS = {"EvaluatedRun", "RunComparison", "compare", "compare_runs", "evaluate", "load_cases"}


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("commands.md", {*GROUP_OF}),
        ("target-contract.md", RECORD_FIELDS | ASK_FAILED),
        ("target-contract.md", of_fields(model.Chunk, model.Reference, model.Trace, model.FolderSelection)),
        ("shipped-rubrics.md", {*rubric_names()}),
        ("gates.md", {*FIELDS, *(gate.split("@")[0].split()[0] for gate in DEFAULT_REGRESSIONS)}),
        ("options.md", {*ENVIRONMENT}),
        ("extending.md", HOOKS),
        ("api.md", {*inspect.signature(metric).parameters}),
        ("fixtures.md", FIXTURES),
        ("assertion-types.md", {*TYPES}),
        ("python.md", FOR_SCRIPTS),
        ("demo.md", {*Ask.model_fields} - {"question", "vaults", "folders", "history"}),
    ],
)
def test_a_page_names_all_that_the_code_has(page: str, wanted: set[str]):
    assert wanted - names(page) == set()


def test_every_field_that_a_run_writes_is_described(project: Project):
    project.cases(SOME)
    project.run()
    files = [project.runs[-1] / name for name in ("config.json", "metrics.json", "results.jsonl", "observations.jsonl")]
    texts = [path.read_text(encoding="utf-8").partition("\n{")[0] for path in files]  # of JSON lines the first
    assert {key for text in texts for key in json.loads(text)} - names("fields.md") - names("runs.md") == set()


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_options_that_are_spoken_of_exist_and_links_lead_somewhere(document: Path):
    text = document.read_text(encoding="utf-8")
    known = {f"--rageval-{option.name}" for option in OPTIONS}
    assert set(re.findall(r"--rageval-[a-z-]*[a-z]", text)) - known == set()
    for link, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)", text):
        target = document.parent / link if link else document
        assert target.exists(), link
        titles = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
        assert not anchor or anchor[1:] in [re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in titles]
