"""Runs in a network namespace that has no route, not even to loopback: what needs no server needs no network."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from judge_server import JudgeServer
from project import SOME, Project

pytestmark = [pytest.mark.child_process, pytest.mark.reliability("network", "a namespace without routes", costs="leak")]

UNSHARE = ("unshare", "--net", "--map-root-user")
SHIPPED = Path(__file__).parents[2] / "evalcases" / "notes_anchors.jsonl"


@pytest.fixture
def offline(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The project, whose `run` is cut off from every network; its cases are those that the bot answers right."""
    if (
        shutil.which("unshare") is None
        or subprocess.run([*UNSHARE, "true"], capture_output=True, timeout=60).returncode
    ):
        pytest.skip("no network namespace of one's own here: unshare --net is not there, or not permitted")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p pytest_rageval.plugin.hooks -p xdist")
    project.cases(SOME)
    return project


def run_offline(project: Project, *arguments: str) -> pytest.RunResult:
    return project.process(*UNSHARE, sys.executable, "-m", "pytest", *arguments)


def test_there_is_no_network_in_these_tests(offline: Project):
    with JudgeServer() as server:
        port = server.url.rpartition(":")[2]
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        assert offline.process(sys.executable, "-c", connect).ret == 0
        result = offline.process(*UNSHARE, sys.executable, "-c", connect)
    assert result.ret == 1
    assert "OSError" in result.stderr.str()


def test_a_bot_of_the_project_is_judged_by_its_words(offline: Project):
    run_offline(offline, "--rageval-judge", "lexical").assert_outcomes(passed=len(SOME))


def test_the_demo_answers_shipped_cases(offline: Project):
    first = SHIPPED.read_text(encoding="utf-8").splitlines()[:3]
    offline.write("evalcases/a.jsonl", "\n".join(first) + "\n")
    run_offline(offline, "--rageval-target", "demo").assert_outcomes(passed=len(first))
