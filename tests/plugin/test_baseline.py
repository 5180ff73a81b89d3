"""A run becomes a verdict: compared with the committed baseline, gated, and known failures told from new ones."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from project import Project, a_case, a_missed_case, lines_with

import pytest_rageval
from pytest_rageval.errors import SettingsError

WORSE = """
import bot
def answer(question):
    found = bot.answer(question)
    if "worse" in question:
        found["debug"]["retrieved_chunks"] = []
    return found
"""


def some_cases(*, worse: int) -> list[dict[str, Any]]:
    """Ten cases; the questions do not change between runs, the bot does."""
    return [a_case(f"q{n}", f"boiling {'worse' if n < worse else 'fine'} {n}") for n in range(10)]


@pytest.fixture
def settled(project: Project) -> Project:
    """A project with a baseline in which all ten cases pass."""
    project.cases(some_cases(worse=3))
    result = project.run("--rageval-update-baseline")
    result.assert_outcomes(passed=10)
    assert lines_with(result, "baseline updated: baseline.json with 10 cases, 0 failing")
    project.write("worse.py", WORSE)
    return project


def test_a_regression_fails_the_run_as_a_test_of_its_own(settled: Project):
    result = settled.run("--rageval-target", "worse:answer", "--rageval-known-failures", "report")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=7, xfailed=3, failed=1)
    assert lines_with(
        result, "recall_any@5 1.0 → 0.7, tolerated drop 0.05: fails, may be noise (significant = false) · "
    )
    comparison = settled.metrics()["comparison"]
    found = comparison["metrics"]["recall_any@5"]
    assert found["verdict"] == "beyond tolerance, may be noise"
    assert (found["delta"], found["p"], found["n_paired"]) == (pytest.approx(-0.3), 2 / 2**4, 10)
    assert len(comparison["flipped_to_fail"]) == 3


@pytest.mark.parametrize("waived", [["--rageval-allow-regressions"], ["--rageval-regression", "recall_any@5 drop 0.4"]])
def test_a_regression_can_be_allowed(settled: Project, waived: list[str]):
    result = settled.run("--rageval-target", "worse:answer", "--rageval-known-failures", "report", *waived)
    assert result.ret == 0


def test_a_partial_run_shows_gates_and_does_not_fail_by_them(settled: Project):
    result = settled.run("--rageval-target", "worse:answer", "--rageval-known-failures", "report", "-k", "q0 or q5")
    assert result.ret == 0
    assert settled.metrics()["partial"] is True
    assert lines_with(result, "tolerated drop 0.05")


def test_a_ratchet_lets_known_failures_be_and_fails_new_ones(project: Project):
    project.configure('target = "bot:answer"\nknown_failures = "ratchet"')
    project.cases([a_case("good"), a_missed_case("known")])
    project.run("--rageval-update-baseline").assert_outcomes(passed=1, failed=1)
    project.run("--rageval-update-baseline").assert_outcomes(passed=2, xfailed=1)
    project.cases([a_case("good"), a_missed_case("known"), a_missed_case("new")])
    result = project.run()
    result.assert_outcomes(passed=2, xfailed=1, failed=1)
    assert project.outcomes() == {"good": "passed", "known": "xfailed", "new": "failed"}


def test_a_known_failure_that_passes_now_is_announced(settled: Project):
    settled.run("--rageval-target", "worse:answer", "--rageval-update-baseline")
    result = settled.run("--rageval-known-failures", "ratchet")
    assert lines_with(result, "passes now, failed in the baseline")


def test_a_run_without_a_shared_case_is_not_comparable(settled: Project):
    settled.cases([a_case(f"other{n}", f"boiling {n}") for n in range(10)])
    result = settled.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert lines_with(result, "FAILED rageval-gates::baseline")
    assert lines_with(result, "no case is on both sides")
    gates = settled.metrics()["gates"]
    assert {(gate["verdict"], gate["passed"]) for gate in gates} == {("incomparable", None)}
    assert settled.run("--rageval-ignore-invariants").ret == 0


def test_added_and_removed_cases_do_not_redden_a_run(settled: Project):
    settled.cases([*some_cases(worse=3)[1:], a_case("added")])
    result = settled.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["stands in the baseline, and is no case any more:", "  q0"])
    comparison = settled.metrics()["comparison"]
    assert comparison["only_before"] == ["evalcases/a.jsonl::q0"]
    assert comparison["only_after"] == ["evalcases/a.jsonl::added"]


def test_a_baseline_is_not_made_of_a_run_with_errors_or_a_part(project: Project):
    project.cases([a_case("boil"), a_case("odd")])
    project.write("odd.py", "import bot\ndef answer(q):\n    raise RuntimeError('down')\n")
    result = project.run("--rageval-target", "odd:answer", "--rageval-update-baseline")
    assert lines_with(result, "baseline not updated: 2 cases ended in errors")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result = project.run("-k", "boil", "--rageval-update-baseline")
    assert lines_with(result, "the run is partial")
    assert not (project.path / "reports/baseline.json").exists()
    project.run("-k", "boil", "--rageval-update-baseline", "--rageval-force")
    assert not (project.path / "reports/baseline.json").exists()
    project.run("--rageval-target", "odd:answer", "--rageval-update-baseline", "--rageval-force")
    assert (project.path / "reports/baseline.json").exists()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"schema": None}, "baseline.json: schema is null, this version reads 1; make a new one with --rageval-update"),
        ({"partial": True}, "baseline.json is of a partial run, which shows nothing; make a new one with --rageval-up"),
        ({"cases": 1}, "baseline.json is not a baseline; make a new one with --rageval-update-baseline"),
        ({"cases": {"evalcases/a.jsonl::q0": {"content_hash": "x", "outcome": "passed", "scores": {}}}},
         "is not a baseline; make a new one with --rageval-update-baseline"),
    ],
    ids=["schema", "partial", "cases", "what decides a case again"],
)  # fmt: skip
def test_a_baseline_of_another_form_is_one_line_and_can_be_made_anew(
    settled: Project, change: dict[str, Any], problem: str
):
    file = settled.path / "reports" / "baseline.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | change), encoding="utf-8")
    result = settled.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len(lines_with(result, problem)) == 1
    assert settled.run("--rageval-update-baseline").ret == 0
    assert settled.run().ret == 0


def test_a_baseline_holds_no_texts(settled: Project):
    text = (settled.path / "reports/baseline.json").read_text(encoding="utf-8")
    assert "boiling" not in text
    assert "Water boils" not in text
    assert set(json.loads(text)["cases"]["evalcases/a.jsonl::q0"]) == {
        "content_hash", "decision_hash", "outcome", "scores",
    }  # fmt: skip


@pytest.mark.child_process
def test_git_keeps_the_baseline_alone_of_what_runs_leave(settled: Project):
    settled.cases([a_missed_case("missed")], "evalcases/missed.jsonl")
    settled.run("--rageval-update-baseline", "--rageval-baseline", "reports/nightly.json")
    assert settled.rageval("sweep", "--grid", "k=1,2").ret == 0
    assert (settled.path / "reports" / "sweeps").is_dir()
    git = ("git", "-c", "safe.directory=*")
    assert settled.process(*git, "init", "--quiet").ret == 0
    listed = settled.process(*git, "ls-files", "--others", "--exclude-standard", "reports").outlines
    assert sorted(listed) == [
        "reports/.gitignore", "reports/baseline.json", "reports/baseline.texts.json.gz", "reports/nightly.json",
        "reports/nightly.texts.json.gz",
    ]  # fmt: skip
    assert sorted(path.name for path in settled.runs[-1].iterdir()) == [
        "config.json", "metrics.json", "observations.jsonl", "report.html", "report.json", "results.jsonl", "run.log",
        "scores.jsonl", "summary.md",
    ]  # fmt: skip


def test_a_known_failure_is_known_under_another_cut_off_and_new_by_another_gate(project: Project):
    project.configure('target = "bot:answer"\nknown_failures = "ratchet"')
    project.cases([a_missed_case("known")])
    project.run("--rageval-update-baseline")
    project.run("--rageval-k", "3", "--rageval-ignore-invariants")
    assert project.outcomes() == {"known": "xfailed"}
    project.write("odd.py", "import bot\ndef answer(question):\n    return bot.answer(question) | {'answer': 'No.'}\n")
    result = project.run("--rageval-target", "odd:answer")
    assert project.outcomes() == {"known": "failed"}
    assert lines_with(result, "gold_in_answer is 0, gate >= 0.5")


@pytest.mark.parametrize("force", [[], ["--rageval-force"]])
def test_a_run_that_was_cut_short_by_an_exit_never_becomes_the_baseline(project: Project, force: list[str]):
    project.cases([a_case("first"), a_case("second")])
    project.write(
        "conftest.py",
        "import pytest\ndef pytest_runtest_logreport(report):\n"
        "    if report.when == 'teardown':\n        pytest.exit('stop', returncode=7)\n",
    )
    assert project.run("--rageval-update-baseline", *force).ret == 7
    assert not (project.path / "reports" / "baseline.json").exists()
    assert project.metrics()["partial"] is True


def test_another_k_is_no_escape_from_a_default_gate(project: Project):
    project.cases([a_case(f"boil-{number}", f"Boiling, {number}?") for number in range(4)])
    project.configure('target = "bot:answer"\nknown_failures = "report"')
    assert project.run("--rageval-update-baseline").ret == 0
    project.write("bot.py", "def answer(question):\n    return {'answer': 'x', 'retrieved_chunks': []}\n")
    result = project.run("--rageval-k", "10", "--rageval-ignore-invariants")
    assert result.ret == 1
    assert lines_with(result, "recall_any@5 → @10 1 → 0, tolerated drop 0.05")
    assert lines_with(result, "FAILED rageval-gates::recall_any@10 drop")
    # A cut-off that both have comes first, and is not renamed.
    both = ["--rageval-metrics", "recall_any@5,recall_any@10"]
    result = project.run("--rageval-k", "10", "--rageval-ignore-invariants", *both)
    assert lines_with(result, "FAILED rageval-gates::recall_any@5 drop - recall_any@5 1 → 0")


def accepted(project: Project, *arguments: str, **fields: Any) -> None:
    """A baseline of two cases, one of them with these fields."""
    project.cases([a_case("boil"), a_case("other", **fields)])
    assert project.run("--rageval-update-baseline", *arguments).ret == 0


@pytest.mark.parametrize(
    "labels", [{"category": "reasoning"}, {"tags": ["new"]}, {"difficulty": "hard"}, {"metadata": {"owner": "x"}}]
)
def test_another_label_alone_is_shown_and_no_obstacle(project: Project, labels: dict[str, Any]):
    accepted(project)
    project.cases([a_case("boil"), a_case("other", **labels)])
    result = project.run()
    assert result.ret == 0
    note = "1 case is labelled otherwise than before (category, tags, metadata, …): evalcases/a.jsonl::other"
    assert lines_with(result, note)
    assert project.metrics()["comparison"]["relabelled"] == ["evalcases/a.jsonl::other"]
    compared = project.rageval("compare", "baseline", "latest")
    assert (compared.ret, bool(lines_with(compared, "labelled otherwise than before"))) == (0, True)


@pytest.mark.parametrize(
    "asked",
    [
        {"question": "What is the boiling point, please?"},
        {"history": [{"role": "user", "text": "Hello"}]},
        {"folders": ["notes"]},
        {"contexts": ["Water."]},
        {"gold": {"answer": "At 100 degrees, water boils at sea level."}},
        {"requires_kg": True},
    ],
)
def test_a_case_of_which_what_is_asked_or_right_changed_is_left_out(project: Project, asked: dict[str, Any]):
    accepted(project)
    project.cases([a_case("boil"), a_case("other", **asked)])
    project.run()
    comparison = project.metrics()["comparison"]
    assert (comparison["compared"], comparison["changed_cases"]) == (True, ["evalcases/a.jsonl::other"])
    assert comparison["paired"]["cases"] == 1


def test_added_cases_redden_no_metric_of_the_whole_run_and_are_counted_where_they_fail(settled: Project):
    table = '[[tool.rageval.regression]]\nmetric = "overall_score"\nmax_drop = 0.01'
    settled.configure('target = "bot:answer"\nknown_failures = "report"', table)
    settled.cases([a_missed_case("added", gold={"answer": "Something else."})], "evalcases/added.jsonl")
    result = settled.run()
    assert result.ret == 0, result.outlines
    assert settled.metrics()["comparison"]["metrics"]["overall_score"]["verdict"] == "incomparable"
    assert settled.metrics()["comparison"]["added_failing"] == ["evalcases/added.jsonl::added"]
    settled.configure('target = "bot:answer"\nknown_failures = "ratchet"')
    settled.run()
    sentence = settled.metrics()["verdict"]["sentence"]
    assert sentence.startswith("Fails the build: 1 added case fails. 10 of 11 pass (of the 10 compared 10, was 10).")


def without_cases(path: Path) -> None:
    """A baseline that was one, without its cases."""
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"cases": {}}), encoding="utf-8")


def replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.unlink()
        make(path)

    return change


PLACES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a dangling link": (replaced(lambda path: path.symlink_to("gone.json")), "is a link that leads to no file; remove"),
    "a link to itself": (replaced(lambda path: path.symlink_to(path.name)), "is a link that leads to no file; remove"),
    "a folder": (replaced(lambda path: path.mkdir()), "is a folder; remove it, name a file, or say none"),
    "a link to a folder": (replaced(lambda path: path.symlink_to(".")), "is a folder; remove it, name a file"),
    "a pipe": (replaced(os.mkfifo), "is no regular file; remove it, name a file, or say none"),
    "no cases": (without_cases, "holds no case; make a new one with --"),
    "nothing": (lambda path: path.write_text(""), "make a new one with --"),
    "another file": (lambda path: path.write_text("{}"), "make a new one with --"),
    "a binary file": (lambda path: path.write_bytes(b"\x00\xff"), "make a new one with --"),
}


@pytest.fixture
def noting(project: Project) -> Project:
    """A project with a baseline, whose bot notes that it is asked."""
    project.cases([a_case("boil")])
    project.run("--rageval-update-baseline")
    project.write(
        "noting.py",
        "import bot, pathlib\ndef answer(question):\n"
        "    pathlib.Path('asked').touch()\n    return bot.answer(question)\n",
    )
    project.configure('target = "noting:answer"')
    return project


@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_baseline_is_a_usage_error_before_anything_is_asked(noting: Project, place: str):
    file = noting.path / "reports/baseline.json"
    change, message = PLACES[place]
    change(file)
    result = noting.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in lines_with(result, "baseline.json") if message in line]
    assert not lines_with(result, "no baseline")
    for arguments, code in ((["run"], 4), (["compare", "baseline", "latest"], 2)):
        result = noting.rageval(*arguments)
        assert result.ret == code
        assert len([line for line in lines_with(result, "baseline.json") if message in line]) == 1
    with contextlib.chdir(noting.path), pytest.raises(SettingsError, match=message.removesuffix("--")):
        pytest_rageval.evaluate("evalcases/a.jsonl", lambda question: Path("asked").write_text(question))
    assert not (noting.path / "asked").exists()


@pytest.mark.parametrize("place", ["a dangling link", "a folder", "no cases"])
def test_a_baseline_is_made_anew_in_place_of_a_file_and_of_nothing_else(noting: Project, place: str):
    PLACES[place][0](noting.path / "reports/baseline.json")
    result = noting.run("--rageval-update-baseline")
    assert result.ret == (0 if place == "no cases" else pytest.ExitCode.USAGE_ERROR)
    assert (noting.path / "asked").exists() == (place == "no cases")


def test_without_anything_in_its_place_there_is_no_baseline_yet(noting: Project):
    (noting.path / "reports/baseline.json").unlink()
    result = noting.run()
    assert result.ret == 0
    assert lines_with(result, "no baseline to compare with yet")
