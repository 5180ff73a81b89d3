"""A metric that does not return is an error of its case or of the run, and the run goes on and ends."""

from __future__ import annotations

import time

import pytest
from odd_values import assert_ended_in_order
from project import Project, a_case

CASES = [a_case("boil"), a_case("freeze", "What is the freezing point?", gold={}, gold_supports=[])]
STUCK = {
    "loop": "while True: pass",
    "sleep": "time.sleep(3600)",
    "lock": "threading.Event().wait()",
    "pattern": "re.match(r'(a+)+$', 'a' * 60 + 'b')",
    "socket": "with socket.create_server(('127.0.0.1', 0)) as server: server.accept()",
    "retries": "\n".join(
        ["while True:", "        try:", "            time.sleep(3600)", "        except Exception:", "            pass"]
    ),
}
METRIC = """
import re, socket, threading, time
from pytest_rageval import metric
@metric(layer="L5", better="higher", {more})
def own(obs):
    {body}
"""
HOOK = "def pytest_rageval_metrics(config):\n    return [own]\n"
TABLE = 'target = "bot:answer"\nmetric_timeout = 0.3'


def stuck(project: Project, body: str, more: str = "") -> None:
    """Give the project a metric that does not return."""
    project.cases(CASES)
    project.configure(TABLE)
    project.write("conftest.py", METRIC.format(body=body, more=more) + HOOK)


@pytest.mark.parametrize("body", STUCK)
@pytest.mark.parametrize("more", ["", "run_level=True"], ids=["of a case", "of the run"])
def test_a_metric_that_does_not_return_is_an_error_and_the_run_ends(project: Project, body: str, more: str):
    stuck(project, STUCK[body], more)
    result = project.run()
    assert_ended_in_order(project, result, said="metric own did not return within 0.3 s (metric_timeout)")
    metric = project.metrics()["metrics"]["own"]
    assert (metric["mean"], metric["n_error"]) == (None, 2)
    assert project.metrics()["metrics"]["mrr"]["n_scored"] == 1  # the other metrics stand


def test_a_metric_that_misses_deadlines_in_a_row_is_not_called_again(project: Project):
    stuck(project, "time.sleep(3600)")
    project.cases([a_case(f"q{number}") for number in range(30)])
    began = time.monotonic()
    result = project.run()
    assert_ended_in_order(project, result)
    messages = [record["error"]["message"] for record in project.records().values()]
    assert sum("did not return" in message for message in messages) == 30
    assert sum("is not called any more: 3 calls in a row" in message for message in messages) == 27
    assert time.monotonic() - began < 20


def test_a_slow_metric_that_returns_in_time_keeps_its_score(project: Project):
    stuck(project, "time.sleep(0.05)\n    return 1.0")
    result = project.run()
    assert result.ret == 0
    assert project.metrics()["metrics"]["own"]["mean"] == 1.0


@pytest.mark.child_process
@pytest.mark.parametrize("how", [["-n", "2"], ["--timeout", "60"], ["--timeout", "60", "-n", "2"]])
@pytest.mark.parametrize("body", ["loop", "sleep", "pattern"])
def test_a_metric_that_does_not_return_ends_no_session_of_its_own(project: Project, body: str, how: list[str]):
    stuck(project, STUCK[body])
    began = time.monotonic()
    result = project.run_process(*how)
    assert_ended_in_order(project, result, said="metric own did not return within 0.3 s")
    assert time.monotonic() - began < 45


ENTRY = {
    "own_metrics-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: own-metrics\nVersion: 1.0\n",
    "own_metrics-1.0.dist-info/entry_points.txt": "[rageval.metrics]\nown = own_metrics:own\n",
}


def installed(project: Project, monkeypatch: pytest.MonkeyPatch, body: str, more: str = "") -> None:
    """Install a metric as a package: `rageval run` calls no hooks."""
    stuck(project, "pass")
    project.write("conftest.py", "")
    project.write("own_metrics.py", METRIC.format(body=body, more=more))
    for name, text in ENTRY.items():
        project.write(name, text)
    monkeypatch.syspath_prepend(project.path)
    monkeypatch.setenv("PYTHONPATH", str(project.path))


@pytest.mark.parametrize("more", ["", "run_level=True"], ids=["of a case", "of the run"])
@pytest.mark.parametrize("body", ["while True: pass", "time.sleep(3600)", "raise SystemExit(3)", "return 'high'"])
def test_the_command_ends_in_order_too(project: Project, monkeypatch: pytest.MonkeyPatch, body: str, more: str):
    installed(project, monkeypatch, body, more)
    result = project.rageval("run")
    assert_ended_in_order(project, result, said="metric own ")


@pytest.mark.child_process
@pytest.mark.parametrize("more", ["", "run_level=True"], ids=["of a case", "of the run"])
@pytest.mark.parametrize("body", ["while True: pass", "return 'high'"])
def test_workers_of_the_command_end_in_order_too(
    project: Project, monkeypatch: pytest.MonkeyPatch, body: str, more: str
):
    installed(project, monkeypatch, body, more)
    result = project.rageval("run", "--workers", "2")
    assert_ended_in_order(project, result, said="metric own ")


@pytest.mark.parametrize("verb", [["score"], ["gate"], ["score", "--aggregate-only"]])
def test_a_metric_of_the_run_that_failed_fails_the_stored_run_too(
    project: Project, monkeypatch: pytest.MonkeyPatch, verb: list[str]
):
    stuck(project, "raise ValueError('broken on purpose')", "run_level=True")
    assert project.run().ret == 1
    result = project.rageval(verb[0], "latest", *verb[1:])
    assert result.ret == 1
    assert "metric own raised ValueError: broken on purpose" in result.stdout.str()
