"""A case that newly fails is asked again before it turns a build red."""

from __future__ import annotations

import json

import pytest
from fault_server import FaultServer, status
from project import ASSERT_GATES, Project, lines_with
from wavering import NAMES, answers, asked, outcomes, wavering_project, with_baseline

KEY = "evalcases/a.jsonl::"


@pytest.fixture
def wavering(project: Project) -> Project:
    return with_baseline(wavering_project(project))


def test_a_case_that_fails_once_and_passes_twice_is_flaky_and_passes(wavering: Project):
    answers(wavering, {"b": ["wrong", "right", "right"]})
    result = wavering.run()
    assert result.ret == 0
    assert outcomes(wavering) == {"passed": 4}
    assert asked(wavering) == {"a": 1, "b": 3, "c": 1, "d": 1}
    metrics = wavering.metrics()
    assert [case["case_key"] for case in metrics["flaky"]] == [KEY + "b"]
    assert metrics["flaky_rate"] == 0.25
    assert "1 case is flaky (b)" in metrics["verdict"]["sentence"]
    assert lines_with(result, "failed in 1 of 3 attempts")


def test_a_case_that_fails_every_time_stays_red(wavering: Project):
    answers(wavering, {"b": ["wrong"]})
    result = wavering.run()
    assert result.ret == 1
    assert outcomes(wavering) == {"passed": 3, "failed": 1}
    assert asked(wavering)["b"] == 3
    assert "flaky" not in wavering.metrics()["verdict"]["sentence"]
    assert wavering.metrics()["volatile"]["new_failures"] == {"confirmed": 1}
    assert lines_with(result, "confirmed: 1 new failure failed again when asked again")


def test_a_case_that_fails_in_two_of_three_attempts_stays_red(wavering: Project):
    answers(wavering, {"b": ["wrong", "right", "wrong"]})
    assert wavering.run().ret == 1
    assert outcomes(wavering) == {"passed": 3, "failed": 1}
    assert wavering.metrics()["flaky"] == []
    assert wavering.metrics()["flaky_rate"] == 0


def test_an_error_is_not_confirmed_away_and_counts_as_a_failed_attempt(wavering: Project):
    answers(wavering, {"a": ["error", "right"], "b": ["wrong", "error", "error"]})
    result = wavering.run()
    assert outcomes(wavering) == {"passed": 2, "failed": 1, "error": 1}
    assert asked(wavering) == {"a": 1, "b": 3, "c": 1, "d": 1}
    assert lines_with(result, "failed in 3 of 3 attempts, 2 of them by an error")


def test_only_a_case_that_newly_fails_is_asked_again(project: Project):
    wavering = wavering_project(project)
    answers(wavering, {"b": ["wrong"]})
    assert wavering.run("--rageval-update-baseline").ret == 1
    wavering_project(wavering, [*NAMES, "e"])
    answers(wavering, {"b": ["wrong"], "c": ["wrong"], "e": ["wrong"]})
    for mode in ("fail", "ratchet", "report"):
        wavering.run("--rageval-known-failures", mode)
    # The known failure and the case that the baseline does not have are asked once a run, the other one thrice; no
    # failure fails a run that reports them alone.
    assert asked(wavering) == {"a": 3, "b": 3, "c": 3 + 3 + 1, "d": 3, "e": 3}


def test_each_attempt_is_a_trial_in_the_record_and_moves_no_mean(wavering: Project):
    answers(wavering, {"b": ["wrong", "right", "right"], "c": ["wrong"]})
    wavering.run()
    records = wavering.results()
    kept = sorted((each["test_case_id"], each["trial"], each.get("confirms", 0)) for each in records)
    assert kept == [
        ("a", 0, 0), ("b", 0, 0), ("b", 1, 1), ("b", 2, 2), ("c", 0, 0), ("c", 1, 1), ("c", 2, 2), ("d", 0, 0),
    ]  # fmt: skip
    assert {each["outcome"] for each in records if each["test_case_id"] == "b"} == {"passed"}
    passed = [each["verdict"]["trial_passed"] for each in records if each["test_case_id"] == "b"]
    assert sorted(passed) == [False, True, True]
    metrics = wavering.metrics()
    assert metrics["total_tests"] == 4
    recall = metrics["metrics"]["recall_any@5"]
    assert (recall["mean"], recall["n_scored"]) == (0.5, 4)
    assert metrics["comparison"]["flipped_to_fail"] == [KEY + "c"]


@pytest.mark.parametrize(
    ("options", "times"),
    [(["--rageval-confirm", "0"], 1), (["--rageval-confirm", "1"], 2), (["--rageval-baseline", "none"], 1)],
)
def test_how_often_is_an_option(wavering: Project, options: list[str], times: int):
    answers(wavering, {"b": ["wrong", "right"]})
    result = wavering.run(*options)
    assert asked(wavering)["b"] == times
    # One failure of two attempts is no majority.
    assert result.ret == (0 if times == 2 else 1)


def test_recorded_answers_are_not_asked_again(wavering: Project):
    answers(wavering, {"b": ["wrong", "right", "right"]})
    wavering.run("--rageval-confirm", "0", "--rageval-run-id", "red")
    answers(wavering)
    assert wavering.run("--rageval-target", "run:red", "--rageval-confirm", "5").ret == 1
    assert outcomes(wavering) == {"passed": 3, "failed": 1}
    assert asked(wavering) == {}


def test_a_flaky_case_in_the_baseline_is_no_known_failure(wavering: Project):
    answers(wavering, {"b": ["wrong", "right", "right"]})
    assert wavering.run("--rageval-update-baseline").ret == 0
    answers(wavering, {"b": ["wrong"]})
    assert wavering.run("--rageval-known-failures", "ratchet").ret == 1
    assert asked(wavering)["b"] == 3
    answers(wavering, {"b": ["wrong", "right", "right"]})
    assert wavering.run("--rageval-known-failures", "ratchet").ret == 0


def test_a_test_of_the_projects_own_confirms_too(project: Project):
    wavering_project(project)
    project.own_test("evalcases/a.jsonl", ASSERT_GATES)
    with_baseline(project)
    answers(project, {"b": ["wrong", "right", "right"], "c": ["wrong"]})
    assert project.run().ret == 1
    assert outcomes(project) == {"passed": 6, "failed": 2}
    flaky = [case["case_key"] for case in project.metrics()["flaky"]]
    assert flaky == [KEY + "b", KEY + "b::test_own.py::test_own[b]"]
    assert asked(project) == {"a": 2, "b": 6, "c": 6, "d": 2}


def test_the_command_confirms_too(wavering: Project):
    answers(wavering, {"b": ["wrong", "right", "right"], "c": ["wrong"]})
    assert wavering.rageval("run").ret == 1
    assert outcomes(wavering) == {"passed": 3, "failed": 1}
    assert asked(wavering) == {"a": 1, "b": 3, "c": 3, "d": 1}
    answers(wavering, {"b": ["wrong", "right", "right"]})
    result = wavering.rageval("run", "--confirm", "2")
    assert result.ret == 0
    assert lines_with(result, "1 case is flaky (b)")


@pytest.mark.child_process
@pytest.mark.parametrize("how", [["-n", "2"], ["-n", "2", "--dist", "loadfile"]], ids=" ".join)
def test_workers_confirm_too(wavering: Project, how: list[str]):
    answers(wavering, {"b": ["wrong", "right", "right"], "c": ["wrong"]})
    assert wavering.run(*how).ret == 1
    assert outcomes(wavering) == {"passed": 3, "failed": 1}
    assert [case["case_key"] for case in wavering.metrics()["flaky"]] == [KEY + "b"]
    assert asked(wavering) == {"a": 1, "b": 3, "c": 3, "d": 1}


@pytest.mark.child_process
def test_worker_processes_of_the_command_confirm_too(wavering: Project):
    answers(wavering, {"b": ["wrong", "right", "right"], "c": ["wrong"]})
    assert wavering.rageval("run", "--workers", "2").ret == 1
    assert outcomes(wavering) == {"passed": 3, "failed": 1}
    assert asked(wavering) == {"a": 1, "b": 3, "c": 3, "d": 1}


def test_last_failed_and_the_first_failure_know_the_confirmed_outcome(wavering: Project):
    answers(wavering, {"b": ["wrong", "right", "right"], "c": ["wrong"]})
    result = wavering.run("-x", "-p", "no:randomly")
    result.assert_outcomes(passed=2, failed=1)
    answers(wavering, {"c": ["wrong"]})
    wavering.run("--lf").assert_outcomes(failed=1)
    assert asked(wavering) == {"c": 3}


def test_shards_confirm_and_merge(wavering: Project):
    answers(wavering, {"b": ["wrong", "right", "right"], "c": ["wrong"]})
    for number in (1, 2):
        wavering.run("--rageval-shard", f"{number}/2", "--rageval-run-id", f"part{number}")
    assert wavering.rageval("merge", "part1", "part2").ret == 1
    assert outcomes(wavering) == {"passed": 3, "failed": 1}
    assert [case["case_key"] for case in wavering.metrics()["flaky"]] == [KEY + "b"]
    assert not wavering.metrics()["partial"]


def test_a_resumed_run_asks_only_the_attempts_that_are_missing(wavering: Project):
    answers(wavering, {"b": ["wrong", "right", "right"], "c": ["wrong"]})
    wavering.run("--rageval-run-id", "whole")
    folder = wavering.path / "reports" / "runs" / "whole"
    whole = wavering.stable_metrics()
    (folder / "metrics.json").unlink()
    results = (folder / "results.jsonl").read_text().splitlines(keepends=True)
    seen = (folder / "observations.jsonl").read_text().splitlines(keepends=True)
    others = [line for line in seen if f'"case_key":"{KEY}b","trial":2' not in line]
    assert len(others) == len(seen) - 1
    # As if killed while the third answer was written: neither its observation nor the whole verdict is there.
    (folder / "results.jsonl").write_text("".join(line for line in results if json.loads(line)["trial"] != 2))
    (folder / "observations.jsonl").write_text("".join(others))
    answers(wavering, {"c": ["wrong"]})
    wavering.run("--rageval-resume", "whole")
    assert asked(wavering) == {"b": 1}
    assert wavering.stable_metrics() == whole


def test_a_stored_run_stays_flaky_when_it_is_decided_again(wavering: Project):
    answers(wavering, {"b": ["wrong", "right", "right"], "c": ["wrong"], "d": ["wrong", "error", "right"]})
    wavering.run("--rageval-run-id", "one")
    before = wavering.stable_metrics()
    assert wavering.rageval("gate", "one").ret == 1
    assert wavering.rageval("gate", "one", "--json").stdout.lines
    assert wavering.rageval("score", "one").ret == 1
    assert wavering.stable_metrics() == before
    # A looser gate lets the first attempt pass: then no other one counts.
    assert wavering.rageval("gate", "one", "--gate", "recall_any@5 off", "--gate", "gold_in_answer off").ret == 0


def test_a_system_that_refuses_every_call_still_ends_the_run_early(project: Project):
    names = [f"q{number}" for number in range(40)]
    with_baseline(wavering_project(project, names))
    with FaultServer(status(403)) as server:
        result = project.run("--rageval-target", server.url, "-p", "no:randomly")
    assert lines_with(result, "the first 16 calls all failed alike")
    assert project.metrics()["partial"] is True
    assert {record["trial"] for record in project.results()} == {0}


MEETING = """
import threading, time
import wavering

MEETING = threading.Barrier(4, timeout=20)
ASKED = set()

def answer(question):
    if question.startswith("a:"):
        time.sleep(0.3)  # until the first answers of all others are there
    if question in ASKED:
        MEETING.wait()
    ASKED.add(question)
    return wavering.answer(question)
"""


def test_attempts_at_several_cases_are_asked_at_the_same_time(wavering: Project):
    wavering.write("meeting.py", MEETING)
    answers(wavering, {"c": ["wrong", "right", "right"], "d": ["wrong", "right", "right"]})
    # Each further question waits until all four are there.
    assert wavering.run("--rageval-target", "meeting:answer").ret == 0
    assert asked(wavering) == {"a": 1, "b": 1, "c": 3, "d": 3}
