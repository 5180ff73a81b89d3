"""Every option of pytest and of `rageval run` works with a value that is documented, on cases of the demo's kind."""

from __future__ import annotations

import importlib
import inspect

import pytest
from judge_server import JudgeServer
from project import Project, a_case

import pytest_rageval
from pytest_rageval.cli.main import VERBS
from pytest_rageval.config.options import OPTIONS

VALUES = {
    "target": ["bot:answer"], "k": ["7"], "folder-mode": ["off"], "rerank-vector-weight": ["0.5"],
    "rerank-lexical-weight": ["0.5"], "param": ["min_score=0.2"], "version": ["index=2027-01"], "timeout": ["30"],
    "judge": ["lexical"], "judge-temperature": ["0"], "judge-cache": ["use"], "max-cost": ["1.5"], "retrieval-only": [],
    "metrics": ["recall_any,mrr"], "skip": ["L1"], "gate": ["run recall_any@5 >= 0.1"],
    "regression": ["recall_any@5 drop 5%"], "baseline": ["base.json"], "update-baseline": [], "force": [],
    "allow-regressions": [], "ignore-invariants": [], "known-failures": ["ratchet"], "allow-partial": [],
    "repeat": ["2"], "history": ["gold"], "rewrites": [], "pass-rule": ["majority"],
    "repeat-until": ["decided"], "confirm": ["3"], "shard": ["1/2"],
    "concurrency": ["3"], "reports": ["elsewhere"], "run-id": ["mine"], "description": ["a try"],
    "store-full-text": [], "redact": [], "dry-run": [],
}  # fmt: skip
"""Values that the documentation shows. `judge-base-url` and `resume` need a server and a run: see below."""
BESIDE = {
    "baseline": ["--rageval-update-baseline"],
    "force": ["--rageval-update-baseline"],
    "param": ["--rageval-target", "demo"],
    "folder-mode": ["--rageval-target", "demo"],
    "rerank-vector-weight": ["--rageval-target", "demo"],
    "rerank-lexical-weight": ["--rageval-target", "demo"],
}
"""What an option goes with."""
FINE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


def arguments(name: str) -> list[str]:
    return [*BESIDE.get(name, []), f"--rageval-{name}", *VALUES[name]]


def test_the_table_holds_every_option():
    assert {option.name for option in OPTIONS} == {*VALUES, "judge-base-url", "resume"}


@pytest.mark.parametrize("name", VALUES)
def test_an_option_works_in_pytest(project: Project, name: str):
    project.cases([a_case("one"), a_case("two", "What is the boiling point at sea level?")])
    result = project.run(*arguments(name))
    assert result.ret in FINE, result.outlines
    assert "ERROR" not in str(result.errlines)


@pytest.mark.parametrize("name", VALUES)
def test_an_option_works_in_the_command(project: Project, name: str):
    project.cases([a_case("one"), a_case("two", "What is the boiling point at sea level?")])
    project.configure('target = "bot:answer"')
    result = project.rageval("run", *(word.replace("--rageval-", "--") for word in arguments(name)))
    assert result.ret in (0, 1), result.outlines


def test_a_run_is_resumed_and_a_server_judges(project: Project):
    project.cases([a_case("one")])
    project.run("--rageval-run-id", "first")
    assert project.run("--rageval-resume", "first").ret in FINE
    with JudgeServer() as server:
        result = project.run("--rageval-judge", "openai:m", "--rageval-judge-base-url", f"{server.url}/v1")
    assert result.ret in FINE, result.outlines


@pytest.mark.parametrize("verb", [verb for group in VERBS.values() for verb in group])
def test_every_verb_shows_its_help(project: Project, verb: str):
    result = project.rageval(verb, "--help")
    assert result.ret == 0
    assert result.outlines[0].startswith("Usage: ")
    assert f"rageval {verb}" in result.outlines[0]


@pytest.mark.parametrize("name", pytest_rageval.__all__)
def test_every_public_name_can_be_imported_by_itself(name: str):
    value = getattr(importlib.import_module("pytest_rageval"), name)
    assert value is not None
    assert name == "__version__" or inspect.getdoc(value)
