"""The sentence that a run ends with, over the states that a run can be in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from pytest_rageval.comparison.verdict_sentence import SYMBOLS, VerdictFacts, run_verdict

OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed")


def metrics(*, partial: bool = False, **outcomes: int) -> dict[str, Any]:
    """The content of metrics.json, as much of it as a verdict reads."""
    return {
        "partial": partial,
        "total_tests": sum(outcomes.values()),
        "outcomes": {name: outcomes.get(name, 0) for name in OUTCOMES},
    }


def comparison(worse: int = 0, fixed: int = 0, **verdicts: str) -> dict[str, Any]:
    """A comparison in which so many cases flipped, with the verdicts of some metrics."""
    return {
        "flipped_to_fail": [f"q{number}" for number in range(worse)],
        "flipped_to_pass": [f"q{number}" for number in range(fixed)],
        "metrics": {name: {"verdict": verdict} for name, verdict in verdicts.items()},
    }


def a_gate(passed: bool | None, op: str = "drop") -> dict[str, Any]:
    return {"metric": "mrr", "op": op, "passed": passed}


class State(NamedTuple):
    """A state of a run, with its tone and its sentence."""

    facts: VerdictFacts
    tone: str
    sentence: str


def a_state(tone: str, sentence: str, metrics: Mapping[str, Any], comparison: Any = None, **facts: Any) -> State:
    return State(VerdictFacts(metrics, comparison, **facts), tone, sentence)


STATES = {
    "green": a_state(
        "green", "Not worse: 0 cases newly fail, 0 fixed, 116 of 135 pass. No gate of the run fails.",
        metrics(passed=116, xfailed=19), comparison(), gates=[a_gate(True)],
    ),
    "better": a_state(
        "green", "Better: 0 cases newly fail, 2 fixed, 118 of 135 pass. No gate of the run fails.",
        metrics(passed=118, xfailed=17), comparison(fixed=2), gates=[a_gate(True)],
    ),
    "worse": a_state(
        "amber", "Worse: 12 cases newly fail, 0 fixed, 104 of 135 pass. No gate of the run fails.",
        metrics(passed=104, failed=12, xfailed=19), comparison(12), gates=[a_gate(True)],
    ),
    "a metric regressed": a_state(
        "amber", "Worse: 0 cases newly fail, 0 fixed, 135 of 135 pass; 1 metric has regressed. "
        "No gate of the run is set.",
        metrics(passed=135), comparison(mrr="regressed", hits="unchanged"),
    ),
    "gate failed": a_state(
        "red", "Gate failed: 1 case newly fails, 0 fixed, 9 of 10 pass. The gate of the run fails: mrr drop.",
        metrics(passed=9, failed=1), comparison(1), gates=[a_gate(False)],
    ),
    "two gates of three failed": a_state(
        "red", "Gate failed: 0 cases newly fail, 0 fixed, 10 of 10 pass. 2 of 3 gates fail: mrr drop, mrr.",
        metrics(passed=10), comparison(), gates=[a_gate(False), a_gate(False, ">="), a_gate(True)],
    ),
    "no baseline": a_state(
        "grey", "No baseline: 0 cases fail, 0 errors, 10 of 10 pass. No gate of the run is set.", metrics(passed=10),
    ),
    "no baseline, and cases fail": a_state(
        "amber", "Failing: 2 cases fail, 0 errors, 8 of 10 pass. No gate of the run is set.",
        metrics(passed=8, failed=2),
    ),
    "partial": a_state(
        "amber", "Partial: 0 cases newly fail, 0 fixed, 3 of 3 pass; only a part of the cases ran. "
        "No gate fails the run, 1 of 1 would.",
        metrics(passed=3, partial=True), comparison(), gates=[a_gate(False)],
    ),
    "all errors": a_state(
        "red", "Errors: all 7 cases end in errors, 0 fixed, 0 of 7 pass. No gate of the run fails.",
        metrics(error=7), comparison(), gates=[a_gate(None)],
    ),
    "all errors, no baseline": a_state(
        "red", "Errors: all 7 cases end in errors, 0 cases fail, 0 of 7 pass. No gate of the run is set.",
        metrics(error=7),
    ),
    "the only case is an error": a_state(
        "red", "Errors: the 1 case ends in an error, 0 fixed, 0 of 1 passes. No gate of the run is set.",
        metrics(error=1), comparison(),
    ),
    "0 cases": a_state(
        "amber", "Nothing examined: 0 cases fail, 0 errors, 0 of 0 pass. No gate of the run is set.", metrics(),
    ),
    "1 case": a_state(
        "amber", "Worse: 1 case newly fails, 0 fixed, 0 of 1 passes. No gate of the run is set.",
        metrics(failed=1), comparison(1),
    ),
    "not comparable": a_state(
        "red", "Not comparable: 0 cases fail, 0 errors, 2 of 2 pass. No gate of the run is set.",
        metrics(passed=2), {"compared": False},
    ),
    "a problem beside gates": a_state(
        "red", "Failed: 0 cases fail, 0 errors, 2 of 2 pass. Fails: completeness.",
        metrics(passed=2), problems={"completeness": "2 cases have no result"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("state", STATES.values(), ids=STATES.keys())
def test_a_run_ends_with_a_sentence(state: State):
    verdict = run_verdict(state.facts)
    assert (verdict.tone, verdict.sentence) == (state.tone, state.sentence)
    assert verdict.symbol == SYMBOLS[verdict.word]


@pytest.mark.parametrize("name", ["green", "better", "no baseline"])
def test_what_fails_pytest_is_never_green_or_grey(name: str):
    state = STATES[name]
    facts = VerdictFacts(state.facts.metrics, state.facts.comparison, state.facts.gates, exit_status=1)
    assert run_verdict(facts).tone == "amber"


def test_a_regression_that_is_let_pass_is_no_failed_gate():
    facts = VerdictFacts(metrics(passed=1), comparison(mrr="regressed"), [a_gate(False)], is_waived=True)
    verdict = run_verdict(facts)
    assert (verdict.tone, verdict.gates) == ("amber", "No gate fails the run, 1 of 1 would.")


def test_a_known_failure_that_fails_its_item_is_not_green():
    facts = VerdictFacts(metrics(passed=1, failed=1), comparison())
    assert run_verdict(facts).sentence.startswith("Still failing: 0 cases newly fail")


@pytest.mark.parametrize("gates", [[a_gate(False, ">=")], [a_gate(False), a_gate(False, ">=")]])
def test_an_absolute_gate_is_not_let_pass_with_regressions(gates: list[dict[str, Any]]):
    assert run_verdict(VerdictFacts(metrics(passed=1), gates=gates, is_waived=True)).tone == "red"
