"""Where cases changed in between, the others are compared: said so, and never good."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stored_runs import a_plan, a_row, accept, compared_runs, store

from pytest_rageval.comparison.baseline import read_baseline
from pytest_rageval.comparison.compared_sides import Comparison, compare_with_baseline
from pytest_rageval.comparison.verdict_facts import VerdictFacts
from pytest_rageval.comparison.verdict_sentence import run_verdict
from pytest_rageval.runs.row import Row

PLAN = a_plan("mrr", "error_rate")


def a_case_of(name: str, asked: str = "as before-gates", mrr: float = 1.0, **fields: Any) -> Row:
    """A case; `asked` stands for what it asks, and after a hyphen for its gates."""
    return replace(a_row(f"a.jsonl::{name}", mrr=mrr, content_hash=asked, **fields), decision_hash=asked)


BEFORE = [a_case_of(name) for name in "abcd"]
ALIKE = [a_case_of(name) for name in "abc"]


def of_gate(reports: Path, before: list[Row], after: list[Row]) -> Comparison:
    """The comparison at the end of a run."""
    accept(reports, store(reports, "one", before, plan=PLAN), before)
    run = store(reports, "two", after, plan=PLAN)
    baseline = read_baseline(reports / "baseline.json", is_required=True)
    assert baseline is not None
    metrics, config = (json.loads((run / name).read_text(encoding="utf-8")) for name in ("metrics.json", "config.json"))
    return compare_with_baseline(metrics, after, baseline, PLAN, config)


def verdict_of(comparison: dict[str, Any], after: list[Row]) -> tuple[str, str, str]:
    outcomes = {name: sum(row.outcome == name for row in after) for name in ("passed", "failed", "error")}
    facts = VerdictFacts({"total_tests": len(after), "outcomes": outcomes, "partial": False}, comparison)
    verdict = run_verdict(facts)
    return verdict.tone, verdict.word, verdict.sentence


FAILED: dict[str, Any] = {"outcome": "failed", "failed": (("mrr", "x"),)}


@pytest.mark.parametrize(
    ("after", "tone", "word", "alike"),
    [
        ([*ALIKE, a_case_of("d", "other")], "amber", "Partly comparable", 3),
        ([*ALIKE, a_case_of("d", "as before-others")], "green", "Not worse", None),
        ([*ALIKE, a_case_of("d", "other", **FAILED)], "red", "Failing", 3),
        ([*ALIKE[:2], a_case_of("c", mrr=0.0, **FAILED), a_case_of("d", "other")], "red", "Worse", 3),
        ([a_case_of(name, "other") for name in "abcd"], "red", "Not comparable", None),
        ([*BEFORE, a_case_of("e")], "green", "Not worse", None),
        (BEFORE[:3], "amber", "Partly comparable", None),
    ],
)
def test_the_end_of_a_run_and_a_comparison_afterwards_say_the_same(
    tmp_path: Path, after: list[Row], tone: str, word: str, alike: int | None
):
    decided = of_gate(tmp_path, BEFORE, after)
    beside = compared_runs(tmp_path, "one", "two").content
    for comparison in (dict(decided.content), dict(beside)):
        shown_tone, shown_word, sentence = verdict_of(comparison, after)
        assert (shown_tone, shown_word) == (tone, word)
        assert ("1 changed case is not compared" in sentence) == (alike is not None)
        if alike is not None:
            assert comparison["changed_cases"] == ["a.jsonl::d"]


def test_a_changed_case_moves_no_metric_flips_nothing_and_stands_in_no_category(tmp_path: Path):
    after = [*ALIKE, a_case_of("d", "other", mrr=0.0, **FAILED)]
    decided = of_gate(tmp_path, BEFORE, after).content
    beside = compared_runs(tmp_path, "one", "two").content
    for content in (decided, beside):
        assert content["metrics"]["mrr"]["n_paired"] == 3
        assert content["metrics"]["mrr"]["delta"] == 0
        assert not content["flipped_to_fail"]
        assert content["paired"] == {"cases": 3, "passed_before": 3, "passed_after": 3}
        assert content["changed_failing"] == ["a.jsonl::d"]
    assert beside["by_category"]["a"]["cases"] == 3
    assert decided["metrics"]["error_rate"]["verdict"] == "incomparable", "a metric of the whole run"
