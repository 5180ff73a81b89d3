"""The sentence that a run ends with, over the states that a run can be in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from pytest_rageval.comparison.verdict_facts import VerdictFacts
from pytest_rageval.comparison.verdict_sentence import SYMBOLS, run_verdict

OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed")


def metrics(*, partial: bool = False, **outcomes: int) -> dict[str, Any]:
    """The content of metrics.json, as much of it as a verdict reads."""
    return {
        "partial": partial,
        "total_tests": sum(outcomes.values()),
        "outcomes": {name: outcomes.get(name, 0) for name in OUTCOMES},
    }


def comparison(
    worse: int = 0, fixed: int = 0, new_gate: int = 0, paired: tuple[int, int, int] = (0, 0, 0), **verdicts: str
) -> dict[str, Any]:
    """A comparison in which so many cases flipped, with the verdicts of some metrics.

    `paired`: the number of compared cases, and how many of them passed before and pass now.
    """
    return {
        "flipped_to_fail": [f"q{number}" for number in range(worse)],
        "flipped_to_pass": [f"q{number}" for number in range(fixed)],
        "fails_new_gate": [f"k{number}" for number in range(new_gate)],
        "paired": {"cases": paired[0], "passed_before": paired[1], "passed_after": paired[2]},
        "metrics": {name: {"verdict": verdict} for name, verdict in verdicts.items()},
    }


def a_gate(
    passed: bool | None, op: str = "drop", *, metric: str = "mrr", value: float | None = -0.2, limit: float = 0.1
) -> dict[str, Any]:
    return {"metric": metric, "op": op, "passed": passed, "value": value, "limit": limit}


class State(NamedTuple):
    """A state of a run, with its tone and its sentence."""

    facts: VerdictFacts
    tone: str
    sentence: str


def a_state(tone: str, sentence: str, metrics: Mapping[str, Any], comparison: Any = None, **facts: Any) -> State:
    return State(VerdictFacts(metrics, comparison, **facts), tone, sentence)


KNOWN = {"known_failures": "ratchet"}
STATES = {
    "green": a_state(
        "green", "Passes: nothing got worse. 116 of 135 pass.",
        metrics(passed=116, xfailed=19), comparison(), gates=[a_gate(True)],
    ),
    "better": a_state(
        "green", "Passes: nothing got worse. 118 of 135 pass, was 116; 2 fixed.",
        metrics(passed=118, xfailed=17), comparison(fixed=2, paired=(135, 116, 118)), gates=[a_gate(True)],
    ),
    "worse": a_state(
        "red", "Fails the build: 12 cases newly fail. 104 of 135 pass, was 116.",
        metrics(passed=104, failed=12, xfailed=19), comparison(12, paired=(135, 116, 104)), gates=[a_gate(True)],
    ),
    "a known failure fails a new gate": a_state(
        "red", "Fails the build: 1 known failure fails a new gate. 116 of 135 pass, was 116.",
        metrics(passed=116, failed=1, xfailed=18), comparison(new_gate=1, paired=(135, 116, 116)), **KNOWN,
    ),
    "cases fail as before": a_state(
        "red", "Fails the build: 2 cases still fail. 8 of 10 pass, was 8.",
        metrics(passed=8, failed=2), comparison(paired=(10, 8, 8)),
    ),
    "everything at once": a_state(
        "red",
        "Fails the build: 1 case ends in an error, 5 cases newly fail, 1 known failure fails a new gate, "
        "run gate mrr 0.81 < 0.85, hits fell by 0.2, tolerated 0.1. 112 of 130 pass (of the 100 compared 90, was 97).",
        metrics(passed=112, failed=6, error=1, xfailed=11), comparison(5, new_gate=1, paired=(100, 97, 90)),
        gates=[
            a_gate(False, ">=", value=0.81, limit=0.85), a_gate(False, metric="hits", value=-0.2, limit=0.1)
        ], **KNOWN,
    ),
    "a metric without a gate regressed": a_state(
        "amber", "Passes: 1 metric without a gate got worse (mrr). 135 of 135 pass.",
        metrics(passed=135), comparison(mrr="regressed", hits="unchanged"),
    ),
    "metrics fell, with their values": a_state(
        "amber", "Passes: 1 metric without a gate got worse (mrr 0.8 → 0.5). 9 of 9 pass.",
        metrics(passed=9), {**comparison(), "metrics": {"mrr": {"verdict": "regressed", "before": 0.8, "after": 0.5}}},
    ),
    "more metrics fell than are named": a_state(
        "amber", "Passes: 4 metrics without a gate got worse (a, b, c and 1 more). 9 of 9 pass.",
        metrics(passed=9), comparison(a="regressed", b="regressed", c="regressed", d="regressed"),
    ),
    "a gate was removed": a_state(
        "amber",
        "Passes: a gate was removed (mrr >= 0.5). 9 of 9 pass, was 4 under the earlier gates; "
        "3 cases have gold answers that no gate compares.",
        {**metrics(passed=9), "answers_without_gate": 3},
        {**comparison(), "gate_changes": ["- mrr >= 0.5"],
         "paired": {"cases": 9, "passed_before": 9, "passed_after": 9, "passed_then": 4}},
    ),
    "a gate was removed, and a case fails": a_state(
        "red", "Fails the build: 1 case newly fails. 8 of 9 pass; a gate was removed (mrr >= 0.5).",
        metrics(passed=8, failed=1), {**comparison(1), "gate_changes": ["- mrr >= 0.5"]},
    ),
    "a gate alone": a_state(
        "red", "Fails the build: mrr fell by 0.3, tolerated 0.1. 10 of 10 pass.",
        metrics(passed=10), comparison(), gates=[a_gate(False, value=-0.3, limit=0.1)],
    ),
    "more gates than a sentence holds": a_state(
        "red", "Fails the build: run gate mrr 0.5 >= 0.4, run gate mrr 0.5 >= 0.4, run gate mrr 0.5 >= 0.4, "
        "2 more gates fail. 10 of 10 pass.",
        metrics(passed=10), gates=[a_gate(False, "<", value=0.5, limit=0.4)] * 5,
    ),
    "a gate that nothing measured": a_state(
        "red", "Fails the build: run gate mrr was not measured. 1 of 1 case passes.",
        metrics(passed=1), gates=[a_gate(False, ">=", value=None, limit=0.4)],
    ),
    "no baseline": a_state(
        "grey", "Passes: nothing fails, and there is no baseline yet. 10 of 10 pass.", metrics(passed=10),
    ),
    "no baseline, and cases fail": a_state(
        "red", "Fails the build: 2 cases fail. 8 of 10 pass.", metrics(passed=8, failed=2),
    ),
    "failures are reported alone": a_state(
        "amber", "Passes: 3 cases newly fail, which fails no build here. 7 of 10 pass.",
        metrics(passed=7, xfailed=3), comparison(3), known_failures="report",
    ),
    "partial": a_state(
        "amber", "Passes: nothing got worse. 3 of 3 pass; only a part of the cases ran.",
        metrics(passed=3, partial=True), comparison(), gates=[a_gate(False)],
    ),
    "partial by a selection": a_state(
        "amber", "Passes: nothing got worse. 3 of 3 pass; only 3 of 135 cases ran.",
        metrics(passed=3, partial=True) | {"selection": {"cases": 135, "selected": 3, "recorded": 3}}, comparison(),
    ),
    "all errors": a_state(
        "red", "Fails the build: all 7 cases end in errors. 0 of 7 pass.", metrics(error=7), comparison(),
    ),
    "the only case is an error": a_state(
        "red", "Fails the build: the only case ends in an error. 0 of 1 case passes.", metrics(error=1), comparison(),
    ),
    "0 cases": a_state(
        "amber", "Passes: nothing fails, and there is no baseline yet. 0 of 0 pass.", metrics(),
    ),
    "not comparable": a_state(
        "red", "Fails the build: not comparable with the baseline. 2 of 2 pass.",
        metrics(passed=2), {"compared": False},
    ),
    "a problem beside gates": a_state(
        "red", "Fails the build: 2 cases have no result. 2 of 2 pass.",
        metrics(passed=2), problems={"completeness": "2 cases have no result: a, b; run them again"},
    ),
    "a metric of the run raised, and quotes what it read": a_state(
        "red", "Fails the build: metric own_rate failed. 2 of 2 pass.",
        metrics(passed=2), problems={"metric own_rate": "ValueError: <meta http-equiv=refresh>"},
    ),
    "a gate that looked at no case": a_state(
        "red", "Fails the build: gate mrr >= 0.9 was not measured. 2 of 2 pass.",
        metrics(passed=2), problems={"mrr >= 0.9": "unmeasured: no case has a value of mrr; each case says why"},
    ),
    "another test of the session": a_state(
        "red", "Fails the build: other tests of the session fail. 2 of 2 pass.", metrics(passed=2), exit_status=1,
    ),
    "interrupted": a_state(
        "red", "Fails the build: the session was interrupted. 2 of 2 pass; only a part of the cases ran.",
        metrics(passed=2, partial=True), exit_status=2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("state", STATES.values(), ids=STATES.keys())
def test_a_run_ends_with_a_sentence(state: State):
    verdict = run_verdict(state.facts)
    assert (verdict.tone, verdict.sentence) == (state.tone, state.sentence)
    assert verdict.symbol == SYMBOLS[verdict.tone]
    assert verdict.fails_build is (verdict.tone == "red")


@pytest.mark.parametrize("name", STATES)
def test_what_fails_pytest_fails_the_build(name: str):
    assert run_verdict(replace(STATES[name].facts, exit_status=1)).fails_build


def test_a_regression_that_is_let_pass_fails_no_build():
    facts = VerdictFacts(metrics(passed=1), comparison(mrr="regressed"), [a_gate(False)], is_waived=True)
    verdict = run_verdict(facts)
    assert (verdict.tone, verdict.headline) == ("amber", "Passes: 1 gate is let pass")


@pytest.mark.parametrize("gates", [[a_gate(False, ">=")], [a_gate(False), a_gate(False, ">=")]])
def test_an_absolute_gate_is_not_let_pass_with_regressions(gates: list[dict[str, Any]]):
    assert run_verdict(VerdictFacts(metrics(passed=1), gates=gates, is_waived=True)).tone == "red"
