"""Hooks can swallow, replace and rewrite reports: what records and pytest say of a case must agree all the same."""

from __future__ import annotations

import pytest
from project import Project, a_case, a_missed_case, lines_with

pytestmark = pytest.mark.reliability("false greens", "hooks that hide a verdict", costs="false green")

MAKING = """
import pytest
@pytest.hookimpl(wrapper=True, {order})
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        {change}
    return report
"""
LOGGING = """
import pytest
@pytest.hookimpl({order}=True)
def pytest_runtest_logreport(report):
    if report.failed:
        {change}
"""
REPLACING = """
import pytest
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if not report.failed:
        return report
    return pytest.TestReport(item.nodeid, item.location, {}, "passed", None, report.when)
"""
SWALLOWING_THE_CALL = """
import pytest
@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    try:
        return (yield)
    except AssertionError:
        return None
"""
SENDING = """
import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_report_to_serializable(config, report):
    if getattr(report, "failed", False) and hasattr(config, "workerinput"):
        report.outcome, report.longrepr = "passed", None
        {also}
"""
OWN_PROTOCOL = """
import pytest
from _pytest.runner import runtestprotocol
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        if not report.failed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True
"""
UNCOUNTED = """
import pytest
@pytest.hookimpl(trylast=True)
def pytest_runtestloop(session):
    pass
@pytest.hookimpl(wrapper=True)
def pytest_runtest_logreport(report):
    yield
    SESSIONS[0].testsfailed = 0
SESSIONS = []
def pytest_sessionstart(session):
    SESSIONS.append(session)
"""
SHOWN = """
def pytest_report_teststatus(report):
    if report.failed:
        return "passed", ".", "PASSED"
"""
PASSED = 'report.outcome, report.longrepr = "passed", None'
SKIPPED = 'report.outcome, report.longrepr = "skipped", ("", 1, "no")'
HOOKS = {
    "made passed": MAKING.format(order="trylast=True", change=PASSED),
    "made skipped last": MAKING.format(order="tryfirst=True", change=SKIPPED),
    "replaced": REPLACING,
    "logged as passed": LOGGING.format(order="tryfirst", change=PASSED),
    "call swallowed": SWALLOWING_THE_CALL,
    "not counted": UNCOUNTED,
    "shown as passed": SHOWN,
}
OF_WORKERS = {
    "sent as passed": SENDING.format(also=""),
    "sent without its record": SENDING.format(also="report.__dict__.pop('rageval', None)"),
    "never sent": OWN_PROTOCOL,
}
BREAKING_BOT = """
import bot
def answer(question):
    if "broken" in question:
        raise ValueError("the index is gone")
    return bot.answer(question)
"""


@pytest.fixture
def failing(project: Project) -> Project:
    """Three cases: one passes, one fails a gate, one cannot be asked."""
    project.cases([a_case("good"), a_missed_case("bad"), a_case("broken", "boiling broken")])
    project.write("breaking.py", BREAKING_BOT)
    project.configure('target = "breaking:answer"\nretries = 0')
    return project


def verdict_lines(result: pytest.RunResult) -> list[str]:
    return [line for line in lines_with(result, "pytest did not count it so") if "a.jsonl::" in line]


@pytest.mark.parametrize(
    ("hook", "how"),
    [*((hook, []) for hook in HOOKS), *((hook, ["-n", "2"]) for hook in ("made passed", "replaced", "not counted"))]
    + [(hook, ["-n", "2"]) for hook in OF_WORKERS],
    ids=str,
)
def test_a_failure_that_a_hook_hides_or_that_is_lost_between_workers_fails_the_run(
    failing: Project, hook: str, how: list[str]
):
    failing.write("conftest.py", (HOOKS | OF_WORKERS)[hook])
    result = failing.run("--rageval-update-baseline", "--rageval-force", *how)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert any("a.jsonl::bad" in line for line in verdict_lines(result))
    assert lines_with(result, "Fails the build: ")
    assert failing.outcomes() == {"good": "passed", "bad": "failed", "broken": "error"}
    assert failing.metrics()["outcomes"]["failed"] == 1
    assert not (failing.path / "reports/baseline.json").exists()


def test_a_failure_that_is_never_logged_is_a_case_without_a_result(failing: Project):
    failing.write("conftest.py", OWN_PROTOCOL)
    result = failing.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert lines_with(result, "2 cases collected without a result")


OWN_TEST = """
import pytest
{mark}
@pytest.mark.rageval("evalcases/a.jsonl")
def test_own(rageval, eval_case):
    result = rageval.evaluate(eval_case)
    if {asserts}:
        result.assert_gates()
"""


def own_tests(project: Project, *, mark: str = "", asserts: bool = True) -> None:
    project.write("test_own.py", OWN_TEST.format(mark=mark, asserts=asserts))
    project.configure('target = "breaking:answer"\nretries = 0\ncases = ["none/*.jsonl"]')


@pytest.mark.parametrize(
    ("hook", "how"),
    [("made passed", ["-n", "2"]), ("made skipped last", []), ("logged as passed", [])],
    ids=str,
)
def test_gates_of_the_projects_own_tests_are_held_against_their_reports_too(
    failing: Project, hook: str, how: list[str]
):
    own_tests(failing)
    failing.write("conftest.py", HOOKS[hook])
    result = failing.run("test_own.py", *how)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert any("a.jsonl::bad" in line for line in verdict_lines(result))


def test_a_test_of_the_projects_own_decides_itself_what_fails_it(failing: Project):
    own_tests(failing, asserts=False)
    result = failing.run("test_own.py", "-k", "not broken")
    assert result.ret == 0
    own_tests(failing)
    result = failing.run("test_own.py")
    result.assert_outcomes(passed=1, failed=2)
    assert not verdict_lines(result)


MARKING = """
import pytest
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.xfail(strict={strict}))
"""
AS_XFAIL = MAKING.format(order="trylast=True", change="report.outcome, report.wasxfail = 'skipped', 'later'")


@pytest.mark.parametrize(
    ("conftest", "code", "good"),
    [
        (MARKING.format(strict=False), 0, "passed"),
        (MARKING.format(strict=True), 1, "failed"),
        (AS_XFAIL, 0, "passed"),
    ],
    ids=["xfail", "strict", "hook"],
)
def test_an_xfail_of_the_project_is_no_difference(failing: Project, conftest: str, code: int, good: str):
    failing.write("conftest.py", conftest)
    result = failing.run()
    assert not verdict_lines(result)
    assert result.ret == code
    assert failing.outcomes() == {"good": good, "bad": "xfailed", "broken": "xfailed"}


@pytest.mark.parametrize("arguments", [["-x"], ["-x", "-n", "2"], ["--runxfail"]])
def test_failures_that_pytest_counts_are_no_difference(failing: Project, arguments: list[str]):
    result = failing.run(*arguments)
    assert result.ret != 0
    assert not verdict_lines(result)


def test_a_resumed_run_is_held_against_its_own_session_only(failing: Project):
    failing.run("--rageval-run-id", "r", "-k", "bad")
    result = failing.run("--rageval-resume", "r", "-k", "good")
    assert not verdict_lines(result)
    result = failing.run("--rageval-resume", "r")
    assert not verdict_lines(result)
    result.assert_outcomes(passed=1, failed=1, errors=1)


@pytest.mark.parametrize("how", [[], ["-n", "2"]], ids=str)
def test_cases_that_a_hook_takes_away_make_the_run_partial(failing: Project, how: list[str]):
    failing.write("conftest.py", "def pytest_collection_modifyitems(items):\n    items[:] = items[:1]\n")
    result = failing.run("--rageval-update-baseline", *how)
    assert failing.metrics()["partial"]
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert not (failing.path / "reports/baseline.json").exists()
