"""metrics.json: which mean has which interval."""

from __future__ import annotations

from typing import Any

import pytest
from stored_runs import a_plan, a_row

from pytest_rageval.runs.aggregate import RunInfo, aggregate
from pytest_rageval.runs.row import Row
from pytest_rageval.stats.intervals import mean_interval, wilson


def aggregated(*rows: Row, coverage: dict[str, Any] | None = None) -> dict[str, Any]:
    return aggregate(rows, a_plan(), RunInfo("hash", None, len(rows), False, coverage, {}))


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
