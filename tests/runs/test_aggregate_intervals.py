"""metrics.json: which mean has which interval."""

from __future__ import annotations

from typing import Any

import pytest
from two_runs import a_plan, a_row

from pytest_rageval.runs.aggregate import RunInfo, aggregate
from pytest_rageval.runs.row import Row
from pytest_rageval.stats.intervals import bootstrap, wilson


def aggregated(*rows: Row, coverage: dict[str, Any] | None = None) -> dict[str, Any]:
    return aggregate(rows, a_plan(), RunInfo("hash", None, len(rows), False, coverage, {}))


def test_a_share_of_cases_has_wilsons_interval():
    rows = [a_row(f"q{n}", recall_any_at_5=float(n < 7)) for n in range(10)]
    assert aggregated(*rows)["metrics"]["recall_any@5"]["ci"] == wilson(0.7, 10)


def test_another_mean_has_the_bootstraps():
    rows = [a_row(f"q{n}", mrr=1 / (n + 1)) for n in range(10)]
    metric = aggregated(*rows)["metrics"]["mrr"]
    low, high = metric["ci"]
    assert low < metric["mean"] < high
    assert aggregated(*reversed(rows))["metrics"]["mrr"]["ci"] == (low, high)


def test_what_has_no_mean_or_only_one_value_has_no_interval():
    metrics = aggregated(a_row("q", mrr=0.5, recall_any_at_5=1.0))["metrics"]
    assert metrics["mrr"]["ci"] is None
    assert metrics["ndcg@5"]["ci"] is None
    assert metrics["recall_any@5"]["ci"] == wilson(1, 1)


def test_trials_of_one_case_count_as_one():
    rows = [a_row("a", trial, mrr=value) for trial, value in enumerate((0.0, 0.5, 1.0))]
    assert aggregated(*rows)["metrics"]["mrr"]["ci"] is None
    twice = [a_row("b", trial, recall_any_at_5=float(trial)) for trial in range(2)] + [a_row("c", recall_any_at_5=1.0)]
    low, high = aggregated(*twice)["metrics"]["recall_any@5"]["ci"]
    assert 0.5 <= low <= high <= 1


def test_rates_of_a_run_have_wilsons_and_facts_of_the_index_none():
    rows = [a_row(f"q{n}", mrr=1.0) for n in range(20)]
    metrics = aggregated(*rows, coverage={"docs_processed": 50, "docs_with_0_chunks": 5})["metrics"]
    assert metrics["error_rate"]["ci"] == wilson(0, 20)
    assert metrics["no_chunks_generated_rate"]["mean"] == 0.1
    assert metrics["no_chunks_generated_rate"]["ci"] is None


def test_other_cases_draw_other_samples():
    values = [0.0, 0.1, 0.4, 0.9, 1.0]
    first = aggregated(*(a_row(f"a{n}", mrr=value) for n, value in enumerate(values)))
    second = aggregated(*(a_row(f"b{n}", mrr=value) for n, value in enumerate(values)))
    assert first["metrics"]["mrr"]["mean"] == second["metrics"]["mrr"]["mean"]
    assert first["metrics"]["mrr"]["ci"] != second["metrics"]["mrr"]["ci"]
    assert bootstrap(values, "") is not None


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
