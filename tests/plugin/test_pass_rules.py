"""Repeats of a case decide about it by a rule, and end once the rule cannot change any more."""

from __future__ import annotations

import json

import pytest
from project import Project, lines_with
from wavering import answers, asked, outcomes, wavering_project, with_baseline

TURNS = {"a": ["right"], "b": ["wrong", "right", "right"], "c": ["right", "wrong", "wrong"], "d": ["wrong"]}
"""Three, two, one and no right answers of three."""
THRICE = ("--rageval-repeat", "3")


@pytest.fixture
def repeated(project: Project) -> Project:
    wavering_project(project)
    answers(project, TURNS)
    return project


def passed(project: Project) -> str:
    """Return the ids of the cases that passed in the last run."""
    return "".join(sorted({each["test_case_id"] for each in project.results() if each["outcome"] == "passed"}))


@pytest.mark.parametrize(
    ("rule", "passing"),
    [("mean", "a"), ("all", "a"), ("majority", "ab"), ("any", "abc"), ("0.6", "ab"), ("0.3", "abc")],
)
def test_a_rule_says_how_many_trials_must_pass(repeated: Project, rule: str, passing: str):
    repeated.run(*THRICE, "--rageval-pass-rule", rule)
    assert passed(repeated) == passing
    assert outcomes(repeated) == {"passed": len(passing), "failed": 4 - len(passing)}
    assert asked(repeated) == {"a": 3, "b": 3, "c": 3, "d": 3}
    # The means are of all trials, whatever the rule.
    assert repeated.metrics()["metrics"]["recall_any@5"]["mean"] == pytest.approx((1 + 2 / 3 + 1 / 3 + 0) / 4)


def test_a_case_can_have_a_rule_of_its_own(repeated: Project):
    lines = (repeated.path / "evalcases/a.jsonl").read_text().splitlines()
    cases = [json.loads(line) for line in lines]
    cases[1]["pass_rule"] = 0.5
    cases[2]["pass_rule"] = "any"
    repeated.cases(cases)
    result = repeated.run(*THRICE, "--rageval-pass-rule", "all")
    assert passed(repeated) == "abc"
    assert lines_with(result, "0 of 3 trials pass, by the rule all")


def test_a_stored_run_keeps_its_rules_when_it_is_decided_again(repeated: Project):
    repeated.run(*THRICE, "--rageval-pass-rule", "majority", "--rageval-run-id", "one")
    before = repeated.stable_metrics()
    repeated.configure('target = "wavering:answer"\npass_rule = "all"\nallow_regressions = true')
    repeated.rageval("score", "one")
    assert repeated.stable_metrics() == before
    assert lines_with(repeated.rageval("gate", "one"), "4 cases: 2 passed, 2 failed")


@pytest.mark.parametrize(
    ("rule", "requests"),
    [
        ("all", {"a": 3, "b": 1, "c": 2, "d": 1}),
        ("any", {"a": 1, "b": 2, "c": 1, "d": 3}),
        ("majority", {"a": 2, "b": 3, "c": 3, "d": 2}),
        # The gate asks for 1: a single wrong answer makes that mean impossible.
        ("mean", {"a": 3, "b": 1, "c": 2, "d": 1}),
    ],
)
def test_repeats_end_once_the_rule_is_decided(repeated: Project, rule: str, requests: dict[str, int]):
    repeated.run(*THRICE, "--rageval-pass-rule", rule)
    in_full = passed(repeated)
    answers(repeated, TURNS)
    result = repeated.run(*THRICE, "--rageval-pass-rule", rule, "--rageval-repeat-until", "decided")
    assert asked(repeated) == requests
    assert passed(repeated) == in_full
    saved = 12 - sum(requests.values())
    assert repeated.metrics()["repeats"]["saved_requests"] == saved
    assert lines_with(result, f"{saved} requests saved")
    assert not repeated.metrics()["partial"]


def test_an_error_decides_about_its_case(repeated: Project):
    answers(repeated, {"a": ["right", "error"], "b": ["error"]})
    repeated.run("--rageval-repeat", "4", "--rageval-pass-rule", "all", "--rageval-repeat-until", "decided")
    assert asked(repeated) == {"a": 2, "b": 1, "c": 4, "d": 4}
    assert outcomes(repeated)["error"] == 2


@pytest.mark.child_process
def test_workers_and_resuming_make_no_difference_to_decided_repeats(repeated: Project):
    options = (*THRICE, "--rageval-pass-rule", "majority", "--rageval-repeat-until", "decided")
    repeated.run(*options, "--rageval-run-id", "one")
    alone = repeated.stable_metrics()
    answers(repeated, TURNS)
    repeated.run(*options, "-n", "2")
    assert repeated.stable_metrics() == alone
    folder = repeated.path / "reports" / "runs" / "one"
    (folder / "metrics.json").unlink()
    lines = (folder / "results.jsonl").read_text().splitlines(keepends=True)
    (folder / "results.jsonl").write_text("".join(lines[:-1]))
    answers(repeated, TURNS)
    repeated.run(*options, "--rageval-resume", "one")
    assert asked(repeated) == {}
    assert repeated.stable_metrics() == alone


def test_how_often_cases_pass_once_and_always_can_be_gated(repeated: Project):
    gates = ["--rageval-gate", "run pass@k >= 0.7", "--rageval-gate", "run pass^k >= 0.5"]
    result = repeated.run(*THRICE, "--rageval-pass-rule", "any", *gates)
    metrics = repeated.metrics()["metrics"]
    assert (metrics["pass_at_k"]["mean"], metrics["pass_hat_k"]["mean"]) == (0.75, 0.25)
    gated = {gate["metric"]: gate["passed"] for gate in repeated.metrics()["gates"]}
    assert gated == {"pass_at_k": True, "pass_hat_k": False}
    assert lines_with(result, "pass_hat_k")


def test_an_attempt_that_confirms_is_repeated_and_decided_by_the_same_rule(project: Project):
    wavering_project(project)
    with_baseline(project, *THRICE)
    # Two of three are right each time but the first: by the rule `all` that is no pass.
    answers(project, {"b": ["wrong", "right", "right"], "c": ["wrong", *["right"] * 8]})
    assert project.run(*THRICE, "--rageval-pass-rule", "all").ret == 1
    assert asked(project) == {"a": 3, "b": 9, "c": 9, "d": 3}
    assert outcomes(project) == {"passed": 3, "failed": 1}
    assert [case["case_key"] for case in project.metrics()["flaky"]] == ["evalcases/a.jsonl::c"]


@pytest.mark.parametrize(
    ("table", "options", "line"),
    [
        ('pass_rule = "most"', [], "pass_rule is 'most'"),
        ("pass_rule = 1.2", [], "pass_rule is 1.2"),
        ("confirm = -1", [], "confirm is -1 (a number), expected a whole number from 0 to 100"),
        ("", ["--rageval-pass-rule", "none"], "--rageval-pass-rule is 'none'"),
        ("", ["--rageval-confirm", "two"], "--rageval-confirm is 'two'"),
        ('repeat_until = "soon"', [], "repeat_until is 'soon'"),
    ],
)
def test_what_is_no_rule_ends_the_session_before_anything_is_asked(
    project: Project, table: str, options: list[str], line: str
):
    wavering_project(project)
    project.configure(f'target = "wavering:answer"\n{table}')
    result = project.run(*options)
    assert result.ret == 4
    assert lines_with(result, line)
    assert asked(project) == {}


def test_a_case_with_what_is_no_rule_is_a_problem_of_its_file(project: Project):
    wavering_project(project, ["a"], pass_rule="mostly")
    result = project.run()
    assert result.ret != 0
    assert lines_with(result, "evalcases/a.jsonl:1")
    assert lines_with(result, 'expected "mean", "all", "majority", "any", or a share of the trials such as 0.8')
    assert asked(project) == {}
