"""Every face of a run names its flaky cases: those that were confirmed to pass, and those that a plugin ran again."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from project import ASSERT_GATES, Project, as_result, lines_with, run_pytest_with_neighbours
from wavering import answers, outcomes, wavering_project, with_baseline

TABLE = 'target = "wavering:answer"\nallow_regressions = true'
SENTENCE = "1 case is flaky (b)"


@pytest.fixture(scope="module")
def flaky(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run in which `b` failed first and then passed twice."""
    project = wavering_project(Project(tmp_path_factory.mktemp("flaky")))
    project.configure(TABLE)
    with_baseline(project)
    answers(project, {"b": ["wrong", "right", "right"]})
    project.run("--rageval-run-id", "one", "--junitxml", "junit.xml")
    return project


def read(project: Project, name: str) -> str:
    return (project.path / "reports" / "runs" / "one" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["summary.md", "report.html", "report.json", "metrics.json"])
def test_the_reports_of_a_run_name_it(flaky: Project, name: str):
    assert SENTENCE in read(flaky, name)


def test_junit_says_why(flaky: Project):
    junit = (flaky.path / "junit.xml").read_text(encoding="utf-8")
    assert junit.count('name="rageval.flaky"') == 1
    assert "failed in 1 of 3 attempts: recall_any@5 is 0" in junit


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["explain", "one", "b"], "flaky: failed in 1 of 3 attempts: recall_any@5 is 0"),
        (["history"], "1 flaky (b)"),
        (["compare", "baseline", "one"], SENTENCE),
        (["gate", "one"], SENTENCE),
        (["export", "one", "--format", "csv", "-o", "-"], "flaky: failed in 1 of 3 attempts"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_the_commands_name_it(flaky: Project, command: list[str], words: str):
    result = flaky.rageval(*command)
    assert words in " ".join("\n".join([*result.outlines, *result.errlines]).split())


def test_a_filter_finds_it(flaky: Project):
    from pytest_rageval.comparison.baseline import side_of_run
    from pytest_rageval.comparison.case_list import list_cases
    from pytest_rageval.runs.reader import StoredRun

    listed = list_cases(side_of_run(StoredRun(flaky.path / "reports" / "runs" / "one")))
    assert [(case.id, case.flaky) for case in listed.cases if case.flaky == "yes"] == [("b", "yes")]
    assert next(case for case in listed.cases if case.id == "b").why.startswith("flaky: failed in 1 of 3 attempts")


def test_how_many_are_flaky_is_a_metric_that_can_be_gated(flaky: Project, tmp_path: Path):
    result = flaky.rageval(
        "run", "--gate", "run flaky_rate <= 0.1", "--reports", str(tmp_path), "--baseline", "reports/baseline.json"
    )
    metrics = json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["metrics"]["flaky_rate"]["mean"] == 0.25
    assert result.ret == 1


def test_a_case_that_a_plugin_ran_again_is_flaky(project: Project):
    wavering_project(project)
    project.configure(TABLE)
    project.own_test("evalcases/a.jsonl", ASSERT_GATES)
    answers(project, {"b": ["error", "right"]})
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        arguments = ["-p", "no:hypothesispytest", "-p", "no:randomly", "--reruns", "2", "--junitxml", "junit.xml"]
        result = as_result(run_pytest_with_neighbours(project.path, *arguments))
    assert result.ret == 0
    assert outcomes(project) == {"passed": 8}
    metrics = project.metrics()
    why = [(case["case_key"].rpartition("::")[2], case["why"]) for case in metrics["flaky"]]
    again = "passed only when run again, at attempt 2"
    assert why == [("b", again), ("test_own[b]", again)]
    assert metrics["flaky_rate"] == 0.25
    assert lines_with(result, "2 cases are flaky (b, b::test_own.py::test_own[b])")
    assert (project.path / "junit.xml").read_text(encoding="utf-8").count('name="rageval.flaky"') == 2


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run of three trials a case, in which one trial of three fails in each attempt at `b`."""
    project = wavering_project(Project(tmp_path_factory.mktemp("repeated")))
    project.configure('target = "wavering:answer"\nconcurrency = 1\nallow_regressions = true')
    with_baseline(project)
    answers(project, {"b": ["right", "wrong", "right"]})
    project.run("--rageval-run-id", "one", "--rageval-repeat", "3", "-p", "no:randomly")
    return project


DECIDED = "2 of 3 trials pass, and the mean of their scores decides"


def test_a_failure_of_which_most_trials_pass_says_how_it_was_decided(repeated: Project):
    [record, *_] = [record for record in repeated.results("one") if record["test_case_id"] == "b"]
    assert DECIDED in record["reason"]
    explained = repeated.rageval("explain", "one", "b", COLUMNS="200").outlines
    assert f"trials: {DECIDED}; confirmed: failed in 3 of 3 attempts, each of 3 trials" in explained
    assert DECIDED in repeated.rageval("explain", "one", "b", "--format", "markdown").stdout.str()


def test_the_answer_that_is_shown_is_of_a_trial_that_fails(repeated: Project):
    answer = [line for line in repeated.rageval("explain", "one", "b").outlines if line.startswith("answer ")]
    assert answer == ["answer     No idea at all."]


def test_confirmations_are_no_trials(flaky: Project):
    from pytest_rageval.comparison.baseline import side_of_run
    from pytest_rageval.config.settings_sources import load_settings
    from pytest_rageval.render.html.page_run import read_page
    from pytest_rageval.render.html.report_page import fragments
    from pytest_rageval.runs.reader import StoredRun

    page = read_page(side_of_run(StoredRun(flaky.path / "reports" / "runs" / "one")), None, load_settings(flaky.path))
    [case] = [case for case in page.cases if case.id == "b"]
    [html] = fragments(page, [case])
    assert "Attempts" in html
    assert "flaky: failed in 1 of 3 attempts" in html
    for name in ("✘ first attempt", "✔ confirmation 1", "✔ confirmation 2"):
        assert name in html
    assert "trial 2" not in html


def test_trials_of_an_attempt_that_ended_early_are_numbered_from_one(project: Project):
    from pytest_rageval.views.case_trials import trials_view

    wavering_project(project).configure('target = "wavering:answer"\nconcurrency = 1\nallow_regressions = true')
    with_baseline(project)
    answers(project, {"b": ["wrong"] * 5 + ["right", "wrong"] * 5})
    options = ("--rageval-repeat", "5", "--rageval-pass-rule", "majority", "--rageval-repeat-until", "decided")
    project.run("--rageval-run-id", "one", "-p", "no:randomly", *options)
    results = [record for record in project.results("one") if record["test_case_id"] == "b"]
    records = {record["trial"]: record for record in results}
    view = trials_view(records, {}, records[0])
    assert view is not None
    names = [trial.name for trial in view.each]
    assert names[:3] == ["trial 1", "trial 2", "trial 3"]
    assert names[3:6] == ["confirmation 1, trial 1", "confirmation 1, trial 2", "confirmation 1, trial 3"]
    assert "each of" not in view.words
