"""Operations: rates of a whole run, and what its index covers."""

from __future__ import annotations

import pytest
from observations import REGISTRY

from pytest_rageval.metrics.index_coverage import coverage_by_doc_type, indexing_rates
from pytest_rageval.metrics.operations import percentile
from pytest_rageval.model import NotApplicable, RunFacts, Score

COVERAGE = {
    "docs_processed": 50,
    "docs_with_0_chunks": 5,
    "chunks_attempted": 200,
    "chunks_skipped_reasons": {"context_limit_exceeded": 20, "empty": 3},
}


def scored(name: str, **facts):
    return REGISTRY.measure(name, 5)(RunFacts(**({"asked": 8, "failed": 2, "timed_out": 1, "blank": 4} | facts)))


@pytest.mark.parametrize(
    ("name", "value"), [("error_rate", 0.25), ("timeout_rate", 0.125), ("empty_response_rate", 0.5)]
)
def test_rates_are_over_the_cases_asked(name, value):
    assert scored(name) == Score(value)
    assert scored(name, asked=0, failed=0, timed_out=0, blank=0) == NotApplicable("no case was asked")


def test_coverage_that_is_not_reported_is_no_perfect_coverage():
    for name in ("no_chunks_generated_rate", "chunks_skipped_due_to_context_rate"):
        assert isinstance(scored(name), NotApplicable)


SKIPPED = "chunks_skipped_due_to_context_rate"


@pytest.mark.parametrize(
    ("reported", "empty", "skipped"),
    [
        ({}, 0.1, 0.1),
        ({"docs_processed": 0}, None, 0.1),
        ({"docs_processed": 4}, None, 0.1),
        ({"docs_processed": "50"}, None, 0.1),
        ({"docs_processed": True}, None, 0.1),
        ({"docs_with_0_chunks": -1}, None, 0.1),
        ({"docs_with_0_chunks": None}, None, 0.1),
        ({"chunks_skipped_reasons": {"empty": 3}}, 0.1, 0.0),
    ],
)
def test_counts_that_cannot_be_are_not_divided_and_a_reason_that_is_not_listed_skipped_nothing(
    reported, empty, skipped
):
    assert indexing_rates(COVERAGE | reported) == {"no_chunks_generated_rate": empty, SKIPPED: skipped}


def test_coverage_is_told_by_type_of_document():
    by_type = {
        "pdf": {"docs_processed": 4, "docs_with_0_chunks": 1, "note": "scans"},
        "code": {"chunks_attempted": 10, "chunks_skipped_reasons": {"context_limit_exceeded": 5}},
        "odd": 3,
    }
    assert coverage_by_doc_type({"coverage_by_doc_type": by_type}) == {
        "code": {
            "chunks_attempted": 10,
            "no_chunks_generated_rate": None,
            "chunks_skipped_due_to_context_rate": 0.5,
        },
        "pdf": {
            "processed": 4,
            "with_0_chunks": 1,
            "no_chunks_generated_rate": 0.25,
            "chunks_skipped_due_to_context_rate": None,
        },
    }


@pytest.mark.parametrize("reported", [{}, {"coverage_by_doc_type": None}, {"coverage_by_doc_type": ["pdf"]}])
def test_coverage_by_type_that_is_not_reported_is_none(reported):
    assert coverage_by_doc_type(reported) is None


def test_the_overall_score_is_what_the_run_came_to():
    assert scored("overall_score", overall=0.75) == Score(0.75)
    assert isinstance(scored("overall_score"), NotApplicable)


def test_a_percentile_is_a_value_that_was_measured():
    values = [30.0, 10.0, 20.0, 40.0]
    assert [percentile(values, q) for q in (0, 0.25, 0.5, 0.95, 1)] == [10, 10, 20, 40, 40]
    assert percentile([], 0.5) is None
