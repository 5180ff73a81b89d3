"""Checks at the end of a run, gates that look at nothing or at some cases alone, and gates that have changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from project import ASSERT_GATES, SOME, Project, a_case, a_missed_case, lines_with

pytestmark = pytest.mark.reliability("false greens", "checks at the end of a run", costs="false green")

CASES = [a_case("one"), a_case("two", "boiling two")]
UNFINISHED = """
import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    return True if item.name == "two" else None
"""
SKIPPING = "import pytest\n@pytest.fixture(autouse=True)\ndef never():\n    pytest.skip('not today')\n"


def failing_checks(result: pytest.RunResult) -> list[str]:
    """The checks and gates of the run that failed, in their order."""
    lines = lines_with(result, "FAILED rageval-gates::")
    return [line.partition("::")[2].partition(" - ")[0] for line in lines]


@pytest.mark.parametrize(
    ("conftest", "arguments", "check", "said"),
    [
        (UNFINISHED, [], "completeness", "1 case collected without a result: evalcases/a.jsonl::two"),
        (SKIPPING, [], "examined", "no case was examined, all 2 were skipped"),
        ("", ["--rageval-gate", "key_fact_recall >= 0.5"], "key_fact_recall >= 0.5",
         "unmeasured: no case that the gate is for has a value of key_fact_recall"),
    ],
)  # fmt: skip
def test_what_could_not_be_looked_at_fails_a_check_of_the_run(
    project: Project, conftest: str, arguments: list[str], check: str, said: str
):
    project.cases(CASES)
    project.write("conftest.py", conftest)
    result = project.run(*arguments)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert failing_checks(result) == [check]
    assert lines_with(result, said)


def test_a_part_of_the_cases_is_partial_and_fails_no_gate_of_the_run(project: Project):
    project.cases(CASES)
    result = project.run("-k", "one", "--rageval-gate", "run key_fact_recall >= 0.5")
    assert result.ret == 0
    assert project.metrics()["partial"] is True
    result = project.run("--rageval-gate", "run key_fact_recall >= 0.5")
    assert failing_checks(result) == ["key_fact_recall"]
    assert lines_with(result, "key_fact_recall has no value in this run")


@pytest.mark.parametrize("how", [[], ["-n", "2"], ["--rageval-dry-run"]])
def test_a_condition_that_no_case_meets_is_a_usage_error_with_a_suggestion(project: Project, how: list[str]):
    project.cases(SOME)
    result = project.run("--rageval-gate", "token_f1 >= 0.5 when category=multihop", *how)
    assert result.ret == 4
    wanted = (
        "gate 'token_f1 >= 0.5 when category=multihop': no case has the category 'multihop'; did you mean 'multi_hop'?"
    )
    assert lines_with(result, wanted)
    assert not project.runs


def test_conditions_are_held_against_all_cases_and_not_those_selected(project: Project):
    project.cases(SOME)
    assert project.run("--rageval-gate", "token_f1 >= 0.1 when category=multi_hop", "-k", "boil").ret == 0


def test_cases_of_a_marked_test_are_known_too(project: Project):
    project.cases([a_case("own", category="odd")], "own_cases.jsonl")
    project.cases(SOME)
    project.own_test("own_cases.jsonl", ASSERT_GATES)
    assert project.run("--rageval-gate", "token_f1 >= 0.1 when category=odd").ret == 0
    assert project.run("--rageval-gate", "token_f1 >= 0.1 when category=typo").ret == 4


@pytest.mark.parametrize("gate", ["recall_any@5 >= 0", "recall_any off"])
def test_a_gate_for_some_cases_leaves_the_default_gate_to_the_others(project: Project, gate: str):
    project.cases([a_missed_case("strict"), a_missed_case("lenient", difficulty="hard")])
    project.run("--rageval-gate", f"{gate} when difficulty=hard").assert_outcomes(passed=1, failed=1)
    assert project.outcomes() == {"strict": "failed", "lenient": "passed"}


A_SHARE = (
    "gate 'groundedness >= 0.7': groundedness has a scale of 0 to 5, and the limit is on it; if a share is meant, "
)


def test_a_limit_that_reads_like_a_share_is_warned_of_with_the_scale_wherever_gates_are_read(project: Project):
    project.cases(SOME)
    warning = A_SHARE + "write 'groundedness >= 70%', which is >= 3.5"
    assert lines_with(project.run("--rageval-gate", "groundedness >= 0.7"), warning)
    assert lines_with(project.rageval("run", "--gate", "groundedness >= 0.7"), warning)
    assert lines_with(project.rageval("gate", "latest", "--gate", "groundedness >= 0.7"), warning)
    project.configure('target = "bot:answer"', '[tool.rageval.gates]\ncase = ["groundedness >= 0.7"]')
    assert lines_with(project.rageval("doctor"), A_SHARE)


@pytest.mark.parametrize(
    "gate", ["groundedness >= 70%", "groundedness >= 3.5", "token_f1 >= 0.1", "run groundedness >= 4"]
)
def test_a_limit_that_is_meant_as_it_stands_draws_no_warning(project: Project, gate: str):
    project.cases(SOME)
    result = project.run("--rageval-gate", gate)
    assert project.metrics()["total_tests"] == len(SOME)
    assert not lines_with(result, "has a scale of")


def test_another_gate_on_a_stored_run_for_cases_that_it_does_not_have_is_a_usage_error(project: Project):
    project.cases(SOME)
    project.run()
    assert project.rageval("gate", "latest", "--gate", "token_f1 >= 0.1 when category=multi_hop").ret == 0
    result = project.rageval("gate", "latest", "--gate", "token_f1 >= 0.1 when category=factul")
    assert result.ret == 2
    assert lines_with(result, "no case has the category 'factul'; did you mean 'factual'?")


UNLABELLED = {"id": "odd", "question": "What is the boiling point of water?"}


def test_a_gate_is_measured_where_one_case_has_a_value_and_meets_its_condition(project: Project):
    project.cases([a_case("boil", tags=["warm"]), {**UNLABELLED, "tags": ["cold"]}])
    assert project.run("--rageval-gate", "recall_any@5 >= 0.5 when tag=warm").ret == 0
    result = project.run("--rageval-gate", "recall_any@5 >= 0.5 when tag=cold")
    assert (result.ret, project.outcomes()["odd"]) == (1, "passed")


def test_what_a_retrieval_only_run_leaves_out_is_not_missed(project: Project):
    project.cases(SOME)
    assert project.run("--rageval-retrieval-only", "--rageval-gate", "token_f1 >= 0.1").ret == 0


def test_with_a_file_that_cannot_be_read_a_run_is_a_part_and_no_condition_is_said_to_look_at_nothing(project: Project):
    project.cases(SOME)
    project.write("evalcases/broken.jsonl", "{")
    assert project.run("evalcases/a.jsonl", "--rageval-gate", "token_f1 >= 0.1 when category=typo").ret == 0
    result = project.run("evalcases/a.jsonl", "--rageval-update-baseline")
    assert (result.ret, project.metrics()["partial"]) == (1, True)
    assert lines_with(result, "baseline not updated: the run is partial")


BOT = """
import bot
def answer(question):
    found = bot.answer(question)
    if "unsure" in question:
        found["answer"] = "Water boils at 100 degrees at sea level, or so people say who live near the sea and cook."
    return found
"""
UNSURE_CASES = [
    a_case("sure", "boiling?"),
    a_case("unsure", "boiling, unsure?", category="multi_hop"),
    a_case("lost", "boiling, lost?", gold_supports=[{"rel_path": "notes/elsewhere.md"}]),
]
"""Of the token F1 1, about .6 and 1; the gold of the last is not retrieved."""
STRICT = "token_f1 >= 0.9"


@pytest.fixture
def settled(project: Project) -> Project:
    project.write("doubtful.py", BOT)
    project.cases(UNSURE_CASES)
    return project


def run(project: Project, mode: str, *gates: str, update: bool = False) -> tuple[pytest.RunResult, dict[str, Any]]:
    """Run with these gates: what came of it, and its comparison."""
    project.configure(f'target = "doubtful:answer"\nknown_failures = "{mode}"')
    options = [word for gate in gates for word in ("--rageval-gate", gate)]
    result = project.run(*options, *["--rageval-update-baseline"] * update)
    return result, project.metrics()["comparison"]


CHANGES = {
    "added": ([], [STRICT], [f"+ {STRICT}"]),
    "removed": ([STRICT], ["token_f1 off"], [f"- {STRICT}"]),
    "changed": (["token_f1 >= 0.2"], [STRICT], [f"+ {STRICT}", "- token_f1 >= 0.2"]),
    "condition changed": (
        [f"{STRICT} when category=factual"], [f"{STRICT} when category=multi_hop"],
        [f"+ {STRICT} when category=multi_hop", f"- {STRICT} when category=factual"],
    ),
    "of the run, changed": (
        ["run recall_any@5 >= 0.5"], ["run recall_any@5 >= 0.6"],
        ["+ run recall_any@5 >= 0.6", "- run recall_any@5 >= 0.5"],
    ),
}  # fmt: skip
WEAKER = ("removed", "condition changed")
"""Some cases have a gate less."""


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_gate_flips_no_case_of_an_unchanged_system(settled: Project, change: str):
    before, after, named = CHANGES[change]
    run(settled, "ratchet", *before, update=True)
    result, comparison = run(settled, "ratchet", *after)
    # The same system: whatever fails by the gates of now would have failed then, and is known.
    assert result.ret == 0, result.outlines
    assert (comparison["compared"], comparison["flipped_to_fail"], comparison["flipped_to_pass"]) == (True, [], [])
    assert {*settled.outcomes().values()} == {"passed", "xfailed"}
    paired = comparison["paired"]
    assert paired["passed_before"] == paired["passed_after"]
    assert [gate for gate in named if gate not in comparison["gate_changes"]] == []
    assert len(lines_with(result, "the gates changed; the present ones decide about both runs: ")) == 1
    verdict = settled.metrics()["verdict"]
    assert verdict["word"] == ("Fewer gates" if change in WEAKER else "Not worse")
    compared = settled.rageval("compare", "baseline", "latest")
    assert (compared.ret, verdict["sentence"] in " ".join(compared.stdout.str().split())) == (0, True)


def test_without_a_ratchet_a_new_gate_fails_its_case_and_is_no_fall(settled: Project):
    run(settled, "fail", "recall_any off", update=True)
    result, comparison = run(settled, "fail", "recall_any off", STRICT)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert (settled.outcomes()["unsure"], comparison["flipped_to_fail"]) == ("failed", [])
    assert settled.metrics()["verdict"]["word"] == "Failing"


def test_a_real_fall_under_a_new_gate_is_one(settled: Project):
    run(settled, "ratchet", update=True)
    settled.write("doubtful.py", BOT.replace("unsure", "boiling"))
    result, comparison = run(settled, "ratchet", STRICT)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert comparison["flipped_to_fail"] == ["evalcases/a.jsonl::lost", "evalcases/a.jsonl::sure"][1:]
    assert settled.outcomes()["sure"] == "failed"


def test_a_gate_on_what_the_baseline_did_not_measure_says_so(settled: Project):
    run(settled, "fail", "recall_any off", update=True)
    baseline = settled.path / "reports" / "baseline.json"
    content = json.loads(baseline.read_text(encoding="utf-8"))
    for case in content["cases"].values():
        case["scores"].pop("mrr")
    content["metrics"].pop("mrr")
    baseline.write_text(json.dumps(content), encoding="utf-8")
    _, comparison = run(settled, "fail", "recall_any off", "mrr >= 1")
    assert comparison["flipped_to_fail"] == []
    assert comparison["newly_gated"] == ["evalcases/a.jsonl::lost"]
    assert "1 case fails a gate not measured before" in settled.metrics()["verdict"]["sentence"]


def test_a_test_of_the_projects_own_that_failed_is_not_decided_again_by_gates(settled: Project):
    settled.own_test("own/b.jsonl", ASSERT_GATES + "\nassert 'unsure' not in eval_case.question")
    settled.cases(UNSURE_CASES[:2], "own/b.jsonl")
    run(settled, "fail", "recall_any off", update=True)
    assert settled.metrics()["outcomes"]["failed"] == 1
    _, comparison = run(settled, "fail", "recall_any off", "token_f1 >= 0.1")
    assert settled.metrics()["outcomes"]["failed"] == 1
    assert (comparison["flipped_to_fail"], comparison["flipped_to_pass"]) == ([], [])
