"""A run is partial if keys that it should have have no record: no exit code, and nobody's guess, decides that."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from processes import PATIENCE_S, open_files
from project import Project, a_case

pytestmark = pytest.mark.reliability("false greens", "partial runs", costs="false green")

CASES = [a_case(f"q{n}", f"boiling {n}") for n in range(4)]
LAST = """
import pytest
def test_last():
    pytest.exit("enough")
"""
EXITING_BOT = """
import bot, os
def answer(question):
    if "3" in question and not os.path.exists("go_on"):
        os._exit(9)
    return bot.answer(question)
"""


def keys(project: Project) -> list[str]:
    return list(json.loads((project.runs[-1] / "metrics.json").read_text(encoding="utf-8")))


def test_a_partial_run_says_first_that_it_is_one_and_what_was_selected(project: Project):
    project.cases(CASES)
    project.run("-k", "q1 or q2")
    assert keys(project)[:2] == ["partial", "selection"]
    metrics = project.metrics()
    assert metrics["partial"] is True
    assert metrics["selection"] == {"cases": 4, "selected": 2, "recorded": 2, "by": {"-k": "q1 or q2"}}
    assert list(metrics)[:2] == ["partial", "selection"]
    project.run()
    assert keys(project) == sorted(keys(project))
    assert "selection" not in project.metrics()


@pytest.mark.parametrize("command", [["score", "latest"], ["score", "latest", "--aggregate-only"]])
def test_a_partial_run_that_is_decided_again_still_says_so_first(project: Project, command: list[str]):
    project.cases(CASES)
    project.run("-k", "q1 or q2")
    before = (project.runs[-1] / "metrics.json").read_bytes()
    assert project.rageval(*command).ret == 0
    assert (project.runs[-1] / "metrics.json").read_bytes() == before


def test_a_run_with_all_its_records_is_whole_however_the_session_ended(project: Project):
    project.cases(CASES)
    project.write("test_last.py", LAST)
    result = project.run("evalcases", "test_last.py", "--rageval-update-baseline")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert project.metrics()["partial"] is False
    assert not (project.path / "reports/baseline.json").exists()
    result.stdout.fnmatch_lines(["baseline not updated: the session was interrupted; run it to its end"])


@pytest.mark.parametrize("how", [[], pytest.param(["-n", "1"], marks=pytest.mark.child_process)])
def test_tests_of_the_projects_own_that_were_not_reached_make_a_run_partial(project: Project, how: list[str]):
    project.configure('target = "bot:answer"\ncases = ["*.eval.jsonl"]')
    project.cases(CASES)
    test = """
import pytest
@pytest.mark.rageval("evalcases/a.jsonl")
def test_own(rageval, eval_case):
    rageval.evaluate(eval_case).assert_gates()
    if "3" not in eval_case.question: return
    assert not {fails}
def test_beside(): pass
"""
    project.write("test_own.py", test.format(fails=True))
    project.run("-x", *how)
    # Only a test that uses no case was left, which the controller of workers cannot know.
    assert project.metrics()["partial"] is bool(how)
    project.cases(list(reversed(CASES)))
    project.run("-x", *how)
    assert project.metrics()["partial"] is True
    project.write("test_own.py", test.format(fails=False))
    project.run(*how)
    assert project.metrics()["partial"] is False


READERS = {
    "compare": (["compare", "latest", "first"], "was interrupted; finish it first with --rageval-resume"),
    "gate": (["gate", "latest"], "was interrupted; finish it first with --rageval-resume"),
    "score": (["score", "latest"], "was interrupted; finish it first with --rageval-resume"),
    "aggregate": (["score", "latest", "--aggregate-only"], "was interrupted; finish it first with --rageval-resume"),
    "judge": (["judge", "latest", "--judge", "stub:4"], "was interrupted; finish it first with --rageval-resume"),
    "merge": (["merge", "latest"], "was interrupted; finish it first with --rageval-resume"),
    "history": (["history"], "not finished: it has no metrics.json"),
    "runs": (["runs", "list"], "interrupted"),
    "explain": (["explain", "latest", "q1"], "was interrupted: it has results of "),
    "export": (["export", "latest", "--format", "csv", "--output", "-"], "did not finish: no aggregates, and "),
}


@pytest.fixture
def exited(project: Project) -> Project:
    """A whole run `first`, and one that ended without its mark of the end."""
    project.cases(CASES)
    project.write("exiting.py", EXITING_BOT)
    project.configure('target = "exiting:answer"\nconcurrency = 1\nlook_ahead = 1')
    project.write("go_on", "")
    project.run("--rageval-run-id", "first")
    (project.path / "go_on").unlink()
    process = project.start("--rageval-run-id", "second", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert process.wait(PATIENCE_S) == 9
    assert not (project.path / "reports/runs/second/metrics.json").exists()
    return project


@pytest.mark.child_process
def test_a_run_without_its_mark_of_the_end_is_partial_to_every_reader(exited: Project):
    for name, (command, words) in READERS.items():
        result = exited.rageval(*command)
        assert words in "\n".join([*result.outlines, *result.errlines]), name
    assert exited.run("--rageval-target", "run:latest").ret == 0, "the last run that has ended is meant"
    result = exited.run("--rageval-target", "run:second", "--rageval-update-baseline")
    assert result.ret != 0
    assert not (exited.path / "reports/baseline.json").exists()


@pytest.mark.child_process
def test_a_finished_run_that_is_resumed_and_dies_has_lost_its_mark(exited: Project):
    exited.write("go_on", "")
    exited.run("--rageval-resume", "second").assert_outcomes(passed=4)
    path = exited.path / "reports/runs/second/results.jsonl"
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:2]), encoding="utf-8")
    (exited.path / "reports/runs/second/observations.jsonl").unlink()
    (exited.path / "go_on").unlink()
    process = exited.start("--rageval-resume", "second", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert process.wait(PATIENCE_S) == 9
    lines = exited.rageval("runs", "list").outlines
    at = next(number for number, line in enumerate(lines) if line.startswith("second"))
    assert "interrupted" in "".join(lines[at : at + 2])  # below its line, where the terminal is narrow


LATE = """
import pathlib, pytest
def pytest_runtest_setup(item):
    if item.name == "q2" and pathlib.Path("late").exists():
        pytest.exit("enough")
def pytest_terminal_summary():
    late = pathlib.Path("late")
    if late.exists():  # as a worker that ends after the run was aggregated
        run, = pathlib.Path("reports/runs").glob("second")
        (run / "results-gw0.jsonl").write_text(late.read_text())
"""


def test_a_result_that_comes_after_the_metrics_were_written_is_in_them(project: Project):
    project.cases(CASES)
    project.write("conftest.py", LATE)
    project.run("--rageval-run-id", "first")
    lines = (project.runs[-1] / "results.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    project.write("late", lines[2])
    project.run("--rageval-run-id", "second")
    assert set(project.outcomes()) == {"q0", "q1", "q2"}
    assert project.metrics()["total_tests"] == 3
    assert project.metrics()["partial"] is True
    assert not list(project.runs[-1].glob("*-gw*"))
    assert "3 cases" in (project.runs[-1] / "summary.md").read_text(encoding="utf-8")


DYING_WORKER = """
import os, pytest
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    if os.environ.get("PYTEST_XDIST_WORKER") and report.nodeid.endswith("q2") and report.when == "call":
        os._exit(1)
"""


@pytest.mark.child_process
def test_a_result_that_a_worker_kept_before_it_died_counts_and_not_its_death(project: Project):
    project.cases(CASES)
    project.write("conftest.py", DYING_WORKER)
    project.run("-n", "1")
    assert project.outcomes() == dict.fromkeys(["q0", "q1", "q2", "q3"], "passed")
    assert project.metrics()["outcomes"]["passed"] == 4


@pytest.mark.parametrize(
    ("place", "how"),
    [("reports/metrics.json", ["-n", "1"]), ("reports/runs/x/scores.jsonl", []), ("reports/runs/x/summary.md", [])],
)
@pytest.mark.reliability("disk", "missing folders, and files in the place of folders")
def test_what_stands_in_the_way_of_the_last_files_is_one_line(project: Project, place: str, how: list[str]):
    project.cases(CASES)
    project.write(
        "conftest.py", f"import os\ndef pytest_runtest_teardown():\n    os.makedirs({place!r}, exist_ok=True)\n"
    )
    result = project.run("--rageval-run-id", "x", *how)
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    output = "\n".join([*result.outlines, *result.errlines])
    assert "Traceback" not in output
    assert "INTERNALERROR" not in output
    (line,) = [line for line in result.outlines if "cannot be written" in line]
    assert line.startswith("rageval: ")
    assert f"{project.path / place} cannot be written: Is a directory; mend that, and finish the run with" in line
    (project.path / "conftest.py").unlink()
    (project.path / place).rmdir()
    project.run("--rageval-resume", "x").assert_outcomes(passed=4)


FULL = """
import errno, os
import pytest_rageval.io.atomic as atomic
def fsync(descriptor):
    raise OSError(errno.ENOSPC, "No space left on device")
atomic.os = type("os", (), {**vars(os), "fsync": staticmethod(fsync)})
def pytest_unconfigure():
    atomic.os = os
"""


@pytest.mark.reliability("disk", "full before, during and after the cases")
def test_a_disk_that_is_full_before_the_first_question_is_one_line(project: Project):
    project.cases(CASES)
    project.write("conftest.py", FULL)
    result = project.run("--rageval-run-id", "x")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = filter(None, result.errlines)
    assert "cannot be written: No space left on device; make room, or set another folder with reports" in line
    assert not (project.path / "reports/runs/x").exists()
    (project.path / "conftest.py").unlink()
    project.run("--rageval-run-id", "x").assert_outcomes(passed=4)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc")
def test_nothing_is_left_open_whatever_raises_at_the_end(project: Project):
    client = """
import bot, pytest
class Client:
    def __call__(self, question): return bot.answer(question)
    async def aclose(self): raise RuntimeError("the client does not close")
@pytest.fixture(scope="session")
def rag_client(): return Client()
"""
    project.cases(CASES)
    for conftest, arguments in ((client, []), ("", ["--rageval-run-id", "x"]), (LATE, ["-k", "q2"])):
        project.write("conftest.py", conftest)
        project.run(*arguments)
        assert open_files(project.path) == []
    (project.path / "reports/runs/x/config.json").write_text("{")
    project.run("--rageval-resume", "x")
    assert open_files(project.path) == []
