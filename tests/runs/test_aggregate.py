"""Aggregates: exact in any order, never over a silently smaller denominator."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_rageval.config.settings import Settings
from pytest_rageval.config.tables import Gates
from pytest_rageval.engine import Unobserved, score_case
from pytest_rageval.matching.places import observe
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import Anchor, Answer, CaseResult, Chunk, EvalCase, Gold, Problem, Source, Trial
from pytest_rageval.plan import Plan, make_plan
from pytest_rageval.runs.aggregate import RunInfo, aggregate, normalised
from pytest_rageval.runs.records import observation_record, result_record, to_line
from pytest_rageval.runs.row import Row

INFO = RunInfo("hash", None, 4, False, None, {})


def a_plan(**settings) -> Plan:
    return make_plan(Settings(**settings), load_registry())


def a_result(plan: Plan, id: str, *, found: bool = True, **case) -> CaseResult:
    gold = Gold(supports=(Anchor("a.md"),)) if case.get("answerable", True) else Gold()
    chunk = Chunk(chunk_id="c", rel_path="a.md" if found else "b.md", heading_path="", text="text")
    eval_case = EvalCase(id, "Why?", gold=gold, source=Source("cases.jsonl", 1), **case)
    return score_case(eval_case, observe(eval_case, Answer("Because.", chunks=(chunk,))), plan)


def a_failure(plan: Plan, id: str, kind: str = "timeout") -> CaseResult:
    case = EvalCase(id, "Why?", gold=Gold(supports=(Anchor("a.md"),)), source=Source("cases.jsonl", 1))
    return score_case(case, Unobserved(Problem(kind, "it took too long")), plan)


def rows_of(plan: Plan, *results: CaseResult) -> list[Row]:
    lines = [to_line(result_record(result, plan, "hash")) for result in results]
    return [Row.of(json.loads(line)) for line in lines]


def test_a_mean_says_what_it_was_taken_over():
    plan = a_plan()
    rows = rows_of(
        plan, a_result(plan, "hit"), a_result(plan, "miss", found=False), a_result(plan, "none", answerable=False),
        a_failure(plan, "slow"),
    )  # fmt: skip
    recall = aggregate(rows, plan, INFO)["metrics"]["recall_any@5"]
    assert recall["mean"] == 0.5
    counts = {name: recall[name] for name in ("n_scored", "n_not_applicable", "n_error", "n_expected")}
    assert counts == {"n_scored": 2, "n_not_applicable": 1, "n_error": 1, "n_expected": 4}


def test_what_does_not_apply_to_a_case_is_no_error_of_it_though_asking_failed():
    plan = a_plan()
    (slow,) = rows_of(plan, a_failure(plan, "slow"))
    recall = aggregate([replace(slow, not_applicable=frozenset({"recall_any@5"}))], plan, INFO)["metrics"][
        "recall_any@5"
    ]
    assert (recall["n_not_applicable"], recall["n_error"]) == (1, 0)


def test_a_case_without_a_gate_is_one_that_was_observed():
    plan = a_plan()
    rows = rows_of(plan, a_result(plan, "hit"), a_failure(plan, "slow"))
    ungated = [replace(row, gates_examined=0) for row in rows]
    assert [aggregate(some, plan, INFO)["without_gate"] for some in (rows, ungated)] == [0, 1]


def test_a_skipped_case_was_not_asked_unless_nothing_in_it_could_be_scored():
    plan = a_plan()
    slow, skipped = rows_of(plan, a_failure(plan, "slow"), a_result(plan, "skipped"))
    skipped = replace(skipped, outcome="skipped", scores={}, not_applicable=frozenset())
    unscored = replace(skipped, not_applicable=frozenset({"mrr"}))
    rates = [aggregate([slow, other], plan, INFO)["metrics"]["error_rate"] for other in (skipped, unscored)]
    assert [(rate["mean"], rate["n_scored"]) for rate in rates] == [(1.0, 1), (0.5, 2)]


def test_a_gate_of_the_run_holds_only_with_a_value():
    plan = a_plan(gates=Gates(run=("recall_any@5 >= 0.5", "groundedness >= 0")))
    gates = aggregate(rows_of(plan, a_result(plan, "hit")), plan, INFO)["gates"]
    assert {gate["metric"]: (gate["value"], gate["passed"]) for gate in gates} == {
        "recall_any@5": (1.0, True),
        "groundedness": (None, False),
    }


def test_where_lower_is_better_a_layer_counts_what_is_missing_to_the_worst():
    plan = a_plan(enabled=("scope_miss",))
    result = a_result(plan, "q")
    (row,) = rows_of(plan, result)
    metrics = aggregate([replace(row, scores={"scope_miss": 0.25})], plan, INFO)
    assert [layer["score"] for layer in metrics["by_layer"].values()] == [0.75]
    assert normalised(2, (1, 5), "higher") == 0.25
    assert normalised(2, (1, 5), "lower") == 0.75


def test_what_was_never_scored_has_no_mean():
    plan = a_plan()
    metrics = aggregate(rows_of(plan, a_failure(plan, "slow")), plan, INFO)
    assert metrics["metrics"]["recall_any@5"]["mean"] is None
    assert metrics["overall_score"] is None
    assert metrics["metrics"]["error_rate"]["mean"] == 1
    assert metrics["metrics"]["timeout_rate"]["mean"] == 1


def test_no_run_at_all_has_no_rates():
    plan = a_plan()
    metrics = aggregate([], plan, INFO)
    assert metrics["metrics"]["error_rate"]["mean"] is None
    assert metrics["total_tests"] == 0


def test_the_order_of_rows_changes_no_byte():
    plan = a_plan()
    results = [
        a_result(plan, f"q{n}", found=n % 3 != 0, category="abc"[n % 3], tags=("x", "y")[: n % 3]) for n in range(50)
    ]
    rows = rows_of(plan, *results)
    texts = set()
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        texts.add(json.dumps(aggregate(rows, plan, INFO), sort_keys=True))
    assert len(texts) == 1


def test_overall_is_the_weighted_mean_of_layers():
    plan = a_plan(weights={"answer": 3.0}, enabled=("recall_any", "token_f1"))
    result = a_result(plan, "hit")
    rows = rows_of(plan, result)
    metrics = aggregate(rows, plan, INFO)
    assert metrics["by_layer"]["L2"]["score"] == 1
    assert metrics["overall_score"] == 1.0  # token_f1 has no reference: the answer layer has no score and no weight


def test_breakdowns_count_every_case_where_it_belongs():
    plan = a_plan()
    rows = rows_of(plan, a_result(plan, "one", category="a", tags=("t", "u")), a_result(plan, "two", difficulty="hard"))
    metrics = aggregate(rows, plan, INFO)
    assert {name: group["tests"] for name, group in metrics["by_category"].items()} == {"a": 1, "uncategorised": 1}
    assert {name: group["tests"] for name, group in metrics["by_tag"].items()} == {"t": 1, "u": 1}
    assert {name: group["tests"] for name, group in metrics["by_difficulty"].items()} == {"hard": 1}


def test_a_case_recorded_twice_counts_once():
    plan = a_plan()
    rows = rows_of(plan, a_failure(plan, "q"), a_result(plan, "q"))
    assert aggregate(rows, plan, INFO)["outcomes"]["passed"] == 1
    assert aggregate(rows, plan, INFO)["total_tests"] == 1


def test_nothing_that_is_not_json_gets_into_a_line():
    plan = a_plan()
    trial = Trial(EvalCase("odd", "Why?", source=Source("cases.jsonl", 1)))
    observed = observe(trial.case, Answer("Because."))
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match=r"not JSON compliant|out of range"):
            to_line({"score": value})
    with pytest.raises(UnicodeEncodeError):
        to_line({"text": "\ud800"})
    assert json.loads(to_line(observation_record(trial, observed, plan.settings)))["case_key"] == "cases.jsonl::odd"


def test_redacted_records_hold_no_texts(tmp_path: Path):
    plan = a_plan(redact=True)
    record = result_record(a_result(plan, "q"), plan, "hash")
    line = to_line(record)
    assert "Why?" not in line
    assert "Because." not in line


def test_long_texts_are_cut_and_say_so():
    plan = a_plan()
    case = EvalCase("q", "w" * 500, source=Source("cases.jsonl", 1))
    record = result_record(score_case(case, observe(case, Answer("x")), plan), plan, "hash")
    assert record["question"] == "w" * 200 + "…"
