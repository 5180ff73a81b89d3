"""Aggregates: exact in any order, never over a silently smaller denominator, each mean with its interval."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from stored_runs import a_plan as stored_plan
from stored_runs import a_row

from pytest_rageval.config.settings import Settings
from pytest_rageval.config.tables import Gates
from pytest_rageval.matching.places import observe
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import Anchor, Answer, CaseResult, Chunk, EvalCase, Gold, Problem, Source
from pytest_rageval.run.plan import Plan, make_plan
from pytest_rageval.run.scoring import AskFailure, score_case
from pytest_rageval.runs.aggregate import RunInfo, aggregate, normalised
from pytest_rageval.runs.records.result_line import result_record, to_line
from pytest_rageval.runs.row import Row
from pytest_rageval.stats.intervals import mean_interval, wilson

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
    return score_case(case, AskFailure(Problem(kind, "it took too long")), plan)


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


def aggregated(*rows: Row, coverage: dict[str, Any] | None = None) -> dict[str, Any]:
    return aggregate(rows, stored_plan(), RunInfo("hash", None, len(rows), False, coverage, {}))


def test_a_share_of_cases_has_wilsons_interval():
    rows = [a_row(f"q{n}", recall_any_at_5=float(n < 7)) for n in range(10)]
    assert aggregated(*rows)["metrics"]["recall_any@5"]["ci"] == wilson(0.7, 10)


def test_another_mean_has_gaffkes_on_the_scale_of_its_metric():
    rows = [a_row(f"q{n}", mrr=1 / (n + 1), groundedness=5.0) for n in range(10)]
    metrics = aggregated(*rows)["metrics"]
    assert metrics["mrr"]["ci"] == mean_interval([1 / (n + 1) for n in range(10)], (0, 1))
    assert aggregated(*reversed(rows))["metrics"]["mrr"]["ci"] == metrics["mrr"]["ci"]
    assert metrics["groundedness"]["ci"] == mean_interval([5.0] * 10, (0, 5))


def test_means_of_nothing_or_of_fewer_than_five_cases_have_no_interval():
    metrics = aggregated(*(a_row(f"q{n}", mrr=n / 4, recall_any_at_5=1.0) for n in range(4)))["metrics"]
    assert metrics["mrr"]["mean"] == 0.375
    assert [metrics[name]["ci"] for name in ("mrr", "ndcg@5", "recall_any@5", "error_rate")] == [None] * 4


def test_trials_of_one_case_count_as_one():
    rows = [a_row("a", trial, mrr=value) for trial, value in enumerate((0.0, 0.1, 0.2, 0.5, 1.0))]
    assert aggregated(*rows)["metrics"]["mrr"]["ci"] is None
    torn = [a_row("b", trial, recall_any_at_5=float(trial)) for trial in range(2)]
    sure = [a_row(f"c{n}", recall_any_at_5=1.0) for n in range(4)]
    assert aggregated(*torn, *sure)["metrics"]["recall_any@5"]["ci"] == mean_interval([0.5, 1, 1, 1, 1], (0, 1))


def test_rates_of_a_run_have_wilsons_and_facts_of_the_index_none():
    rows = [a_row(f"q{n}", mrr=1.0) for n in range(20)]
    metrics = aggregated(*rows, coverage={"docs_processed": 50, "docs_with_0_chunks": 5})["metrics"]
    assert metrics["error_rate"]["ci"] == wilson(0, 20)
    assert metrics["no_chunks_generated_rate"]["mean"] == 0.1
    assert metrics["no_chunks_generated_rate"]["ci"] is None


def test_coverage_by_type_of_document_stands_among_the_operational_metrics():
    coverage = {"coverage_by_doc_type": {"pdf": {"docs_processed": 4, "docs_with_0_chunks": 1}}}
    told = aggregated(a_row("q"), coverage=coverage)["aggregate_metrics"]["operational_metrics"]
    assert told["coverage_by_doc_type"]["pdf"]["no_chunks_generated_rate"] == 0.25


def test_tokens_and_costs_that_the_system_reports_are_added_up_by_its_own_names():
    usage = [{"tokens": 10, "cost": 0.1}, {"tokens": 5, "model": "m", "cost": 0.2}, None]
    cost = {"judge_tokens": None, "judge_cost_usd": None, "judgements": 0, "judgements_cached": 0}
    rows = [a_row(f"q{n}", cost=cost | {"target_usage": one}) for n, one in enumerate(usage)]
    assert aggregated(*rows)["volatile"]["cost"]["target_usage"] == {"cost": pytest.approx(0.3), "tokens": 15}
    assert aggregated(a_row("q"))["volatile"]["cost"]["target_usage"] is None
