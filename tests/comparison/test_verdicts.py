"""Verdicts of metrics between two runs, of cases and of whole runs, and the lines that say what a gate decided."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from stored_runs import REGISTRY, a_baseline, a_plan, a_row, compared, metrics_of, some_rows

from pytest_rageval.comparison.compared_sides import compare_with_baseline
from pytest_rageval.comparison.gate_lines import evidence, gate_line, is_warning
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.tables import Regression
from pytest_rageval.errors import SettingsError
from pytest_rageval.metrics.registry import Registry, metric
from pytest_rageval.model import RunFacts
from pytest_rageval.render.text.view_text import view_lines
from pytest_rageval.run.plan import Plan, make_plan
from pytest_rageval.views.compared_metrics import fallen_lines
from pytest_rageval.views.run import run_view

NOISE = "beyond tolerance, may be noise"


def shares(found: int, of: int) -> list[float]:
    return [1.0] * found + [0.0] * (of - found)


def tolerating(drop: float, *, significant: bool = False, **settings: Any):
    regression = [Regression(metric="recall_any@5", max_drop=drop, significant=significant)]
    return a_plan("recall_any@5", regression=regression, **settings)


@pytest.mark.parametrize(
    ("found", "of", "drop", "verdict", "holds", "holds_if_significant"),
    [
        (30, 30, 0.05, "unchanged", True, True),
        (29, 30, 0.05, "unchanged", True, True),
        (27, 30, 0.05, NOISE, False, True),
        (20, 30, 0.05, "regressed", False, False),
        (20, 30, 0.4, "significant, within tolerance", True, True),
        (19, 20, 0.05, "unchanged", True, True),  # exactly the tolerance
        (20, 30, 0.0, "regressed", False, False),
        (29, 30, 0.0, NOISE, False, True),
    ],
)
def test_a_drop_gets_its_verdict_by_size_and_by_chance(found, of, drop, verdict, holds, holds_if_significant):
    before, after = (some_rows("recall_any_at_5", shares(n, of)) for n in (of, found))
    for significant, expected in ((False, holds), (True, holds_if_significant)):
        comparison = compared(before, after, tolerating(drop, significant=significant))
        (gate,) = comparison.gates
        assert gate["verdict"] == comparison.content["metrics"]["recall_any@5"]["verdict"] == verdict
        assert gate["passed"] is expected
        assert gate["significant"] is significant


@pytest.mark.parametrize(("found", "verdict"), [(30, "improved"), (22, NOISE), (21, "unchanged")])
def test_a_gain_gets_the_same_verdicts_and_fails_nothing(found: int, verdict: str):
    before, after = (some_rows("recall_any_at_5", shares(n, 30)) for n in (20, found))
    (gate,) = compared(before, after, tolerating(0.05)).gates
    assert (gate["verdict"], gate["passed"]) == (verdict, True)


def test_the_direction_comes_from_the_metric():
    plan = a_plan("scope_miss", regression=[Regression(metric="scope_miss", max_rise=0.1)])
    better, worse = (some_rows("scope_miss", shares(n, 30)) for n in (2, 25))
    assert [gate["passed"] for gate in compared(better, worse, plan).gates] == [False]
    assert [gate["verdict"] for gate in compared(worse, better, plan).gates] == ["improved"]
    (metric,) = (m for name, m in compared(better, worse, plan).content["metrics"].items() if name == "scope_miss")
    assert metric["p"] == metric["p_adjusted"]
    assert metric["ci"][0] < metric["delta"] < metric["ci"][1]
    assert 0.2 < metric["detectable"] < 0.5


def test_one_of_many_metrics_needs_more_to_be_significant():
    def scores(n: int, mrr: float, others: float):
        return a_row(f"q{n:02}", mrr=mrr, recall_any_at_5=others, ndcg_at_5=others, precision_at_5=others)

    # One metric drops in five cases, which alone would do; three others go up in one case and down in another.
    before = [scores(n, 0.5, 0.5) for n in range(30)]
    after = [scores(n, 0.1 if n < 5 else 0.5, {7: 0.6, 8: 0.4}.get(n, 0.5)) for n in range(30)]
    found = compared(before, after, a_plan("mrr", "recall_any", "ndcg", "precision")).content["metrics"]
    assert found["mrr"]["p"] == 2 / 2**6
    assert found["mrr"]["p_adjusted"] == 4 * 2 / 2**6
    assert found["mrr"]["verdict"] == NOISE
    assert found["mrr"]["ci"][0] < 0 < found["mrr"]["ci"][1]
    alone = compared(before, after, a_plan("mrr")).content["metrics"]["mrr"]
    assert alone["verdict"] == "regressed"
    assert alone["ci"][1] < 0


CALLED = ("regressed", "improved", "significant, within tolerance")


@pytest.mark.parametrize("seed", range(30))
def test_a_change_is_called_significant_exactly_if_the_interval_beside_it_excludes_0(seed: int):
    random = Random(seed)
    n, names = random.choice((3, 5, 8, 20, 60)), ("mrr", "recall_any@5", "ndcg@5", "precision@5", "groundedness")
    gates = [Regression(metric=name, max_drop=random.choice((0.0, 0.05)), significant=True) for name in names[:2]]
    plan = a_plan(*names, regression=gates)
    drops = {name: random.choice((0.0, 0.0, 0.05, 0.15, -0.1)) for name in names}

    def scores(is_after: bool) -> dict[str, float]:
        found = {name: random.uniform(0.2, 0.8) - is_after * drops[name] for name in names}
        return found | {"recall_any@5": float(random.random() < 0.7 - 3 * is_after * drops["recall_any@5"])}

    def rows(*, is_after: bool):
        return [replace(a_row(f"q{number:02}", judge=MODEL), scores=scores(is_after)) for number in range(n)]

    comparison = compared(rows(is_after=False), rows(is_after=True), plan)
    for change in (*comparison.content["metrics"].values(), *comparison.gates):
        if change["ci"] is not None:
            low, high = change["ci"]
            is_one_sided = change.get("decided_by") == "one-sided p"
            deciding = {"one-sided p": "p_one_sided", "own p": "p"}.get(change.get("decided_by"), "p_adjusted")
            is_significant = change[deciding] <= 0.05
            assert (not low <= 0 <= high) == is_significant, change
            assert is_significant or change["verdict"] not in CALLED, change
            assert is_one_sided or (change["verdict"] in CALLED) == is_significant, change
        elif change["n_paired"]:
            assert change["verdict"] not in CALLED


def test_cases_are_paired_by_key_in_whatever_order_they_come():
    random = Random(3)
    before = [a_row(f"q{n}", mrr=random.random()) for n in range(40)]
    after = [a_row(row.key, mrr=row.scores["mrr"] - 0.1) for row in before]
    plan, texts = a_plan("mrr"), set()
    for _ in range(3):
        random.shuffle(before)
        random.shuffle(after)
        comparison = compared(before, after, plan)
        texts.add(json.dumps([comparison.content, comparison.gates]))
    assert len(texts) == 1
    found = comparison.content["metrics"]["mrr"]
    assert found["delta"] == pytest.approx(-0.1)
    assert found["p"] == pytest.approx(2 / 2**40)


def test_only_cases_scored_on_both_sides_count_and_those_that_were_lost_are_counted():
    before = [a_row("a", mrr=1.0), a_row("b", mrr=1.0), a_row("c", mrr=0.0), a_row("gone", mrr=0.0)]
    # Trials of a case are one case.
    trials = [a_row("a", trial, mrr=value) for trial, value in enumerate((0.0, 0.5, 1.0))]
    after = [*trials, a_row("b"), a_row("c", mrr=0.0), a_row("added", mrr=0.0)]
    content = compared(before, after, a_plan("mrr")).content
    found = content["metrics"]["mrr"]
    assert (found["before"], found["after"], found["n_paired"], found["n_unmeasured"]) == (0.5, 0.25, 2, 1)
    assert (content["only_before"], content["only_after"]) == (["gone"], ["added"])


def test_cases_that_fail_newly_pass_newly_or_cannot_be_measured_are_listed():
    def run(**outcomes: str):
        scores: dict[str, Any] = {"mrr": 1.0}
        return [
            a_row(key, outcome=outcome, error_kind="timeout" if outcome == "error" else None,
                  **({} if outcome in ("error", "skipped") else scores))
            for key, outcome in outcomes.items()
        ]  # fmt: skip

    before = run(breaks="passed", fixed="failed", known="xfailed", hangs="passed", dropped="passed", recovers="error")
    after = run(breaks="failed", fixed="passed", known="failed", hangs="error", dropped="skipped", recovers="failed")
    content = compared(before, after, a_plan("mrr")).content
    assert content["flipped_to_fail"] == ["breaks", "recovers"]
    assert content["flipped_to_pass"] == ["fixed"]
    assert content["unmeasured"] == [
        {"case_key": "dropped", "outcome": "skipped", "reason": "skipped"},
        {"case_key": "hangs", "outcome": "error", "reason": "timeout"},
    ]


def test_metrics_that_got_worse_in_the_same_cases_are_named_together():
    def rows(*, worse: frozenset[int] = frozenset()):
        return [
            a_row(f"q{n}", mrr=1.0 - (n in worse) / 2, ndcg_at_5=1.0 - (n in worse), scope_miss=float(n in worse),
                  token_f1=1.0 - (n == 0))
            for n in range(6)
        ]  # fmt: skip

    plan = a_plan("mrr", "ndcg", "scope_miss", "token_f1")
    content = compared(rows(), rows(worse=frozenset({1, 4})), plan).content
    assert content["fallen"] == [{"metrics": ["mrr", "ndcg@5", "scope_miss"], "cases": 2, "first": ["q1", "q4"]}]
    assert fallen_lines(content) == ["the same 2 cases got worse in 3 metrics: mrr, ndcg@5, scope_miss"]
    assert compared(rows(), rows(worse=frozenset({1})), plan).content["fallen"] == []


def test_what_was_not_measured_fails_a_gate_of_the_users_and_not_a_default_one():
    scored, unscored = some_rows("recall_any_at_5", shares(5, 5)), some_rows("mrr", shares(5, 5))
    (default,) = compared(scored, unscored, a_plan("recall_any", "mrr")).gates
    assert (default["verdict"], default["passed"], default["value"]) == ("unmeasured", None, None)
    (written,) = compared(scored, unscored, tolerating(0.5)).gates
    assert (written["verdict"], written["passed"]) == ("unmeasured", False)
    assert compared(unscored, scored, a_plan("recall_any", "mrr")).gates == (), "the baseline never had it"
    (written,) = compared(unscored, scored, tolerating(0.5)).gates
    assert (written["verdict"], written["passed"]) == ("new", False)


def test_metrics_of_the_run_are_compared_as_a_whole_and_without_a_p():
    plan = a_plan("error_rate", "mrr", regression=[Regression(metric="error_rate", max_rise=0.1)])
    before = some_rows("mrr", shares(10, 10))
    after = [*before[:7], *(a_row(row.key, outcome="error", error_kind="timeout") for row in before[7:])]
    gate = next(gate for gate in compared(before, after, plan).gates if gate["metric"] == "error_rate")
    assert (gate["before"], gate["after"], gate["p"], gate["n_paired"]) == (0, 0.3, None, 0)
    assert (gate["verdict"], gate["passed"]) == ("regressed", False)


def test_significance_of_a_metric_of_the_run_cannot_be_asked_for():
    with pytest.raises(SettingsError, match=r"regression\[0\]\.significant is true, but error_rate is of a whole run"):
        a_plan("mrr", regression=[Regression(metric="error_rate", max_rise=0.1, significant=True)])


def test_a_shared_case_that_changed_stops_the_gates():
    before = some_rows("recall_any_at_5", shares(30, 30))
    after = some_rows("recall_any_at_5", shares(10, 30), content_hash="another")
    comparison = compared(before, after, tolerating(0.05))
    (problem,) = comparison.problems
    assert problem.more == "30 changed (q0000, q0001, q0002, q0003, q0004 and 25 more)"
    assert [(gate["verdict"], gate["passed"]) for gate in comparison.gates] == [("incomparable", None)]
    ignoring = tolerating(0.05, ignore_invariants=True)
    assert [gate["passed"] for gate in compared(before, after, ignoring).gates] == [False]
    assert compared(before, after, ignoring).content["problems"] == [str(problem)]


MODEL = {"model": "m", "heuristic": False, "prompt_versions": {"groundedness": "1", "correctness": "1"}}


def judged_gate(metric: str, losses: list[float], cases: int = 10, **plan: Any) -> Any:
    """The regression gate of a judged metric, after these losses in as many cases; None where it is not listed."""
    before = some_rows(metric, [5.0] * cases, judge=MODEL | plan.pop("judge", {}))
    after = [
        replace(row, scores={metric: 5.0 - loss})
        for row, loss in zip(before, losses + [0.0] * (cases - len(losses)), strict=True)
    ]
    gates = compared(before, after, a_plan(metric, **plan)).gates
    return next((gate for gate in gates if gate["metric"] == metric), None)


@pytest.mark.parametrize("metric", ["groundedness", "correctness"])
@pytest.mark.parametrize(
    ("losses", "passed", "decided_by"),
    [
        ([2.0, 1.0, 3.0, 2.0, 2.0, 1.0], False, "one-sided p"),  # six of ten cases, all for the worse
        ([5.0, 4.0, 3.0, -3.0, -2.0, -1.0], True, "one-sided p"),  # beyond tolerance, up and down: noise
        ([2.0, 2.0, 2.0], False, "tolerance"),  # three differing cases could not be significant
        ([1.0] * 5, True, "tolerance"),  # exactly the tolerance
        ([2.0] * 5, False, "one-sided p"),
        ([2.0, 2.0, 1.0, 1.0], False, "one-sided p"),  # one-sided 0.03, two-sided 0.06
    ],
)
def test_a_default_gate_of_judged_text_asks_for_significance_where_it_can_be_had(
    metric: str, losses: list[float], passed: bool, decided_by: str
):
    gate = judged_gate(metric, losses)
    assert (gate["passed"], gate["decided_by"]) == (passed, decided_by)
    if metric == "correctness":
        assert judged_gate(metric, losses, judge={"heuristic": True}) is None


def test_a_written_gate_of_judged_text_does_what_it_says_and_one_of_retrieval_is_decided_by_its_tolerance():
    losses = [5.0, 4.0, 3.0, -3.0, -2.0, -1.0]
    written = [Regression(metric="groundedness", max_drop=0.5)]
    gate = judged_gate("groundedness", losses, regression=written)
    assert (gate["passed"], gate["decided_by"]) == (False, "tolerance")
    written = [Regression(metric="groundedness", max_drop=0.5, significant=True)]
    gate = judged_gate("groundedness", losses, regression=written)
    assert (gate["passed"], gate["decided_by"]) == (True, "own p")
    before, after = (some_rows("recall_any_at_5", shares(n, 30)) for n in (30, 27))
    (gate,) = compared(before, after, a_plan("recall_any@5")).gates
    assert (gate["passed"], gate["decided_by"], gate["verdict"]) == (False, "tolerance", NOISE)


@pytest.mark.parametrize(
    ("losses", "line"),
    [
        (
            [5.0, 4.0, 3.0, -3.0, -2.0, -1.0],
            "holds, may be noise · 95 % at most 0.902, one-sided p 0.24 by itself",
        ),
        ([2.0] * 4, "regressed · 95 % at most -0.0745, one-sided p 0.031 by itself"),
        ([2.0, 2.0, 2.0], "fails, may be noise (significant = false) · 95 % "),
    ],
)
def test_the_line_of_such_a_gate_says_what_decided(losses: list[float], line: str):
    assert line in gate_line(judged_gate("groundedness", losses))


def a_gate(before: int, after: int, *, drop: float = 0.05, significant: bool = False):
    """The gate on a share of 30 cases."""
    first, second = (some_rows("recall_any_at_5", shares(found, 30)) for found in (before, after))
    return compared(first, second, tolerating(drop, significant=significant)).gates[0]


def test_a_regression_in_one_line():
    line = gate_line(a_gate(30, 20))
    assert line.startswith("recall_any@5 1.000 → 0.667, tolerated drop 0.05: regressed · 95 % -0.495 to -0.130")
    assert line.endswith(", p 0.00098, n 30, detectable 0.27")
    assert len(line) <= 120


@pytest.mark.parametrize(
    ("significant", "said"),
    [
        (False, "fails, may be noise (significant = false)"),
        (True, "holds, may be noise (significant = true)"),
    ],
)
def test_what_may_be_noise_says_which_switch_decided(significant: bool, said: str):
    gate = a_gate(30, 27, significant=significant)
    assert f"tolerated drop 0.05: {said} · " in gate_line(gate)
    assert len(gate_line(gate)) <= 140
    gain = gate_line(a_gate(20, 23, significant=significant))
    assert ": beyond tolerance, may be noise · " in gain, "a gain names no switch"


def test_a_gate_that_holds_warns_of_what_is_worse_only():
    assert is_warning(a_gate(30, 20, drop=0.5))
    assert is_warning(a_gate(30, 27, significant=True))
    assert not is_warning(a_gate(20, 30, drop=0.5))
    assert not is_warning(a_gate(30, 30))


def test_what_cannot_be_said_is_a_dash_and_what_is_tiny_is_no_zero():
    change = {"n_paired": 1, "n_unmeasured": 2, "ci": None, "p_adjusted": 1.0, "detectable": None}
    assert evidence(change) == "95 % –, p 1, n 1 (2 more unmeasured now), detectable –"
    assert "p < 0.0001" in evidence(change | {"p_adjusted": 1e-9})
    assert evidence(change | {"n_paired": 0}) == ""


NOT_MEASURED = {"metric": "mrr", "op": "drop", "limit": 0.1, "value": None, "verdict": "unmeasured", "passed": False}
ABSOLUTE = {"metric": "recall_any@5", "op": ">=", "limit": 0.85, "value": 0.61, "passed": False}


@pytest.mark.parametrize(
    ("gate", "line"),
    [
        (
            NOT_MEASURED,
            "mrr was not measured on both sides: no case has it in the baseline and in this run; tolerated drop 0.1",
        ),
        (ABSOLUTE, "recall_any@5 is 0.61, gate >= 0.85"),
        (ABSOLUTE | {"value": None}, "recall_any@5 has no value in this run, gate >= 0.85"),
    ],
)
def test_a_gate_without_a_change_shows_none(gate: dict[str, Any], line: str):
    assert gate_line(gate) == line
    assert not is_warning(gate)


ROWS = [a_row(f"a.jsonl::q{number}", mrr=1.0) for number in range(3)]


def plan_with(freshness: float, **settings: Any) -> Plan:
    """A plan with a metric of the project's own: of layer L2, and scored once a run."""

    @metric(layer="L2", better="higher", run_level=True)
    def index_freshness(facts: RunFacts) -> float:
        """How fresh the index is."""
        return freshness

    return make_plan(Settings(enabled=("mrr", "index_freshness"), **settings), Registry([*REGISTRY, index_freshness]))


def test_a_metric_of_the_run_that_falls_is_seen_whatever_its_layer():
    before = metrics_of(ROWS, plan_with(1.0))
    after = plan_with(0.0, tolerated=("index_freshness drop 0.1",))
    comparison = compare_with_baseline(metrics_of(ROWS, after), ROWS, a_baseline(ROWS, before), after, None)
    change = comparison.content["metrics"]["index_freshness"]
    assert (change["before"], change["after"], change["delta"]) == (1.0, 0.0, -1.0)
    assert change["verdict"] == "regressed"
    assert [(gate["metric"], gate["passed"]) for gate in comparison.gates if gate["passed"] is not None] == [
        ("index_freshness", False)
    ]


def test_the_summary_shows_it_with_the_metrics_of_the_run():
    lines = [line.text for line in view_lines(run_view(metrics_of(ROWS, plan_with(0.25)), ROWS, is_verbose=True), 100)]
    assert any(line.split()[:2] == ["index_freshness", "0.250"] for line in lines)
