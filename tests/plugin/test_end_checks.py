"""Each check at the end of a run, by the smallest run that only this check fails."""

from __future__ import annotations

import pytest
from project import Project, a_case, a_missed_case, lines_with

CASES = [a_case("one"), a_case("two", "boiling two")]
UNFINISHED = """
import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    return True if item.name == "two" else None
"""
SKIPPING = "import pytest\n@pytest.fixture(autouse=True)\ndef never():\n    pytest.skip('not today')\n"
HIDING = """
import pytest
@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        report.outcome, report.longrepr = "passed", None
    return report
"""


def failing_checks(result: pytest.RunResult) -> list[str]:
    """The checks and gates of the run that failed, in their order."""
    lines = lines_with(result, "FAILED rageval-gates::")
    return [line.partition("::")[2].partition(" - ")[0] for line in lines]


def test_a_case_that_was_collected_and_has_no_result_fails_completeness(project: Project):
    project.cases(CASES)
    project.write("conftest.py", UNFINISHED)
    result = project.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert failing_checks(result) == ["completeness"]
    assert lines_with(result, "1 case collected without a result: evalcases/a.jsonl::two")


def test_a_run_of_skipped_cases_alone_fails_examined(project: Project):
    project.cases(CASES)
    project.write("conftest.py", SKIPPING)
    result = project.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert failing_checks(result) == ["examined"]


def test_a_written_gate_that_looked_at_no_case_fails_as_unmeasured(project: Project):
    project.cases(CASES)
    result = project.run("--rageval-gate", "key_fact_recall >= 0.5")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert failing_checks(result) == ["key_fact_recall >= 0.5"]
    assert lines_with(result, "unmeasured: no case that the gate is for has a value of key_fact_recall")


def test_a_failure_that_pytest_did_not_count_fails_verdicts(project: Project):
    project.cases([*CASES, a_missed_case("missed")])
    project.write("conftest.py", HIDING)
    result = project.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert failing_checks(result) == ["verdicts"]


def test_a_baseline_of_another_dataset_fails_baseline(project: Project):
    project.cases(CASES)
    project.run("--rageval-update-baseline")
    project.cases([a_case("other")])
    result = project.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert failing_checks(result) == ["baseline"]


def test_a_part_of_the_cases_is_partial_and_fails_no_gate_of_the_run(project: Project):
    project.cases(CASES)
    result = project.run("-k", "one", "--rageval-gate", "run key_fact_recall >= 0.5")
    assert result.ret == 0
    assert project.metrics()["partial"] is True
    assert failing_checks(project.run("--rageval-gate", "run key_fact_recall >= 0.5")) == ["key_fact_recall"]


def test_a_part_of_the_cases_never_becomes_the_baseline(project: Project):
    project.cases(CASES)
    result = project.run("-k", "one", "--rageval-update-baseline", "--rageval-force")
    assert failing_checks(result) == ["update-baseline"]
    assert not (project.path / "reports/baseline.json").exists()
