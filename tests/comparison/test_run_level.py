"""A metric of the run is compared as such: the metric declares it, metrics.json says it, everybody reads it there."""

from __future__ import annotations

from typing import Any

from stored_runs import REGISTRY, a_baseline, a_row, metrics_of

from pytest_rageval.comparison.verdicts import compare_with_baseline
from pytest_rageval.config.settings import Settings
from pytest_rageval.metrics.registry import Registry, metric
from pytest_rageval.model import RunFacts
from pytest_rageval.plan import Plan, make_plan
from pytest_rageval.render.text.view_text import view_lines
from pytest_rageval.views.run import run_view

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
