"""Other plugins beside ours while a worker dies: the run ends, one case is an error, all others have their outcomes."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from neighbours import ALL, ON_EACH
from project import Project, lines_with

pytestmark = [
    pytest.mark.child_process,
    pytest.mark.reliability("neighbours", "other plugins with a dying worker", costs="false green"),
]

BOT = """
import os
def answer(question):
    if question == "die":
        os._exit(9)
    if question == "die once" and not os.path.exists("died"):
        open("died", "w").close()
        os._exit(9)
    if question == "break":
        raise ValueError("the index is gone")
    return "wrong" if question == "miss" else "right"
"""
QUESTIONS = ["one", "miss", "die", "break", "two", "three", "four", "five"]
OUTCOMES = {"miss": "failed", "die": "error", "break": "error"}
"""Of the cases that do not pass."""
DISTRIBUTIONS = [("-n", "2"), ("-n", "2", "--dist", "load"), ("-n", "2", "--dist", "worksteal")]
RERUNS = ["-p", "rerunfailures", "--reruns=1"]


def written(project: Project, *questions: str) -> Project:
    project.write("mine.py", BOT)
    project.configure('target = "mine:answer"\nretries = 0')
    project.cases([{"id": question, "question": question, "gold": {"answer": "right"}} for question in questions])
    return project


def run(project: Project, *arguments: str) -> pytest.RunResult:
    """Run pytest with our plugin, xdist, and those that are named."""
    return project.process(
        sys.executable, "-m", "pytest", "-p", "rageval", "-p", "xdist", "--junitxml=junit.xml", *arguments,
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTEST_ADDOPTS="",
    )  # fmt: skip


def check(project: Project, result: pytest.RunResult, *, dies: bool) -> None:
    """Hold the exit status, the records, the verdict and JUnit's file against each other."""
    questions = [question for question in QUESTIONS if dies or question != "die"]
    expected = {question: OUTCOMES.get(question, "passed") for question in questions}
    assert not lines_with(result, "INTERNALERROR")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert project.outcomes() == expected
    assert Counter(record["test_case_id"] for record in project.results()) == dict.fromkeys(expected, 1)
    if dies:
        assert project.records()["die"]["error"]["kind"] == "crash"
    counts = Counter(expected.values())
    metrics = project.metrics()
    assert {name: count for name, count in metrics["outcomes"].items() if count} == counts
    assert metrics["verdict"]["word"] == "Errors"
    assert not metrics["partial"]
    assert in_junit(project.path / "junit.xml") == expected


def in_junit(path: Path) -> dict[str, str]:
    """Return the last outcome of each case in JUnit's file."""
    kinds = {"error": "error", "failure": "failed", "skipped": "skipped"}
    outcomes: dict[str, str] = {}
    for test in ElementTree.parse(path).iter("testcase"):
        inside = [kinds[child.tag] for child in test if child.tag in kinds]
        if name := test.get("name"):  # pytest-rerunfailures adds an entry without a name for a death that it repeats
            outcomes[name] = inside[0] if inside else "passed"
    return outcomes


@pytest.mark.parametrize(
    ("arguments", "how"),
    [
        pytest.param(ALL, DISTRIBUTIONS[0], id="all"),
        pytest.param(ALL, DISTRIBUTIONS[2], id="all, worksteal", marks=pytest.mark.torture),
        pytest.param(RERUNS[:2], DISTRIBUTIONS[0], id="reruns installed"),
    ],
)
def test_a_dying_worker_costs_one_case_beside_other_plugins(
    project: Project, arguments: list[str], how: tuple[str, ...]
):
    result = run(written(project, *QUESTIONS), *arguments, *how)
    check(project, result, dies=True)


@pytest.mark.torture
@pytest.mark.parametrize("how", DISTRIBUTIONS, ids=["blocks", "load", "worksteal"])
@pytest.mark.parametrize(("module", "arguments"), ON_EACH, ids=[module for module, _ in ON_EACH])
def test_a_dying_worker_costs_one_case_beside_each_neighbour(
    project: Project, module: str, arguments: list[str], how: tuple[str, ...]
):
    pytest.importorskip(module)
    check(project, run(written(project, *QUESTIONS), *arguments, *how), dies=True)


@pytest.mark.torture
@pytest.mark.parametrize(
    "how", [("-n", "0"), *DISTRIBUTIONS, ("-n", "2", "--dist", "loadfile"), ("-n", "2", "--dist", "loadscope")]
)
@pytest.mark.parametrize(("module", "arguments"), ON_EACH, ids=[module for module, _ in ON_EACH])
def test_without_a_death_each_neighbour_sees_every_outcome(
    project: Project, module: str, arguments: list[str], how: tuple[str, ...]
):
    pytest.importorskip(module)
    living = [question for question in QUESTIONS if question != "die"]
    check(project, run(written(project, *living), *arguments, *how), dies=False)


def test_reports_of_other_plugins_show_the_dead_worker_as_pytest_does(project: Project):
    pytest.importorskip("pytest_jsonreport")
    pytest.importorskip("pytest_reportlog")
    plugins = ["-p", "pytest_jsonreport", "--json-report", "-p", "pytest_reportlog.plugin", "--report-log=log.jsonl"]
    result = run(written(project, *QUESTIONS), *plugins, "-n", "2")
    check(project, result, dies=True)
    tests = json.loads((project.path / ".report.json").read_text(encoding="utf-8"))["tests"]
    assert Counter(test["outcome"] for test in tests) == {"passed": 5, "failed": 1, "error": 2}
    lines = (project.path / "log.jsonl").read_text(encoding="utf-8").splitlines()
    reports = [report for report in map(json.loads, lines) if report["$report_type"] == "TestReport"]
    failed = {report["nodeid"].partition("::")[2]: report for report in reports if report["outcome"] == "failed"}
    assert set(failed) == {"miss", "die", "break"}
    assert all(isinstance(report["longrepr"], str) for report in failed.values())


@pytest.mark.parametrize(
    "how", [DISTRIBUTIONS[1], pytest.param(DISTRIBUTIONS[2], marks=pytest.mark.torture)], ids=["load", "worksteal"]
)
def test_a_case_that_passes_when_a_plugin_runs_it_again_is_named(project: Project, how: tuple[str, ...]):
    written(project, "one", "two", "die once", "three")
    result = run(project, *RERUNS[:2], "--reruns=3", *how)
    assert result.ret == 0
    record = project.records()["die once"]
    assert (record["outcome"], record["attempts"]) == ("passed", 2)
    key = record["case_key"]
    assert project.metrics()["passed_when_rerun"] == [key]
    assert "1 case is flaky" in project.metrics()["verdict"]["sentence"]
    assert lines_with(result, f"passed only when run again: {key}")


def test_a_case_that_keeps_ending_its_worker_counts_its_attempts(project: Project):
    result = run(written(project, *QUESTIONS), *RERUNS, "-n", "2", "--dist", "load")
    check(project, result, dies=True)
    assert project.records()["die"]["attempts"] == 2
    assert "passed_when_rerun" not in project.metrics()


def test_an_attempt_that_failed_before_it_passed_is_named_without_workers(project: Project):
    written(project, "one", "flaky")
    project.write("mine.py", "asked = []\ndef answer(question):\n    asked.append(question)\n"
                             "    return 'right' if asked.count('flaky') != 1 else 'wrong'\n")  # fmt: skip
    project.cases([{"id": "flaky", "question": "flaky", "gold": {"answer": "right"}}])
    result = run(project, *RERUNS)
    assert result.ret == 0
    assert lines_with(result, "passed only when run again: evalcases/a.jsonl::flaky")
    for report in ("summary.md", "report.html"):
        assert "1 case is flaky (flaky)" in (project.runs[-1] / report).read_text(encoding="utf-8")


@pytest.mark.parametrize("dist", ["loadscope", pytest.param("loadfile", marks=pytest.mark.torture)])
def test_a_case_that_such_a_distribution_runs_again_fails_the_run_as_its_error_is_counted(project: Project, dist: str):
    result = run(written(project, "one", "die once", "two"), "-n", "2", "--dist", dist)
    assert not lines_with(result, "INTERNALERROR")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert set(project.outcomes().values()) == {"passed"}
    verdict = project.metrics()["verdict"]
    assert verdict["word"] == "Failed"
    assert "--dist load runs no case again" in verdict["problems"]["verdicts"]
    assert lines_with(result, "rageval-gates::verdicts")
    # Which of the two gets the case is the machine's choice.
    assert lines_with(result, f" died, and --dist {dist} gives its case to another")
