"""Columns of scores that a tool measured: never ids, gold, passages or places."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_rageval.cli.cases import cases as cases_command


def converted(path: Path, rows: Sequence[Mapping[str, object]]):
    output = path / "cases.jsonl"
    source = path / "set.csv"
    with source.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    ended = CliRunner().invoke(cases_command, ["convert", str(source), "-o", str(output), "--force"])
    assert ended.exit_code == 0, ended.exception
    return ended.output, [json.loads(line) for line in output.read_text("utf-8").splitlines()]


NAMES = (
    "context_precision", "context_recall", "faithfulness", "answer_relevancy", "answer_correctness",
    "Context Entity Recall", "answer_similarity", "llm_context_precision_with_reference", "non_llm_context_recall",
    "nv_accuracy", "response_groundedness", "factual_correctness(mode=f1)", "semantic_similarity",
    "ContextualRelevancyMetric",
    "source_coverage", "reference_bleu", "rouge_score(mode=fmeasure)", "chunk_hit_rate", "retrieval_ndcg@5",
    "document_mrr", "gold_f1", "output_toxicity", "qa_relevance",
)  # fmt: skip


@pytest.mark.parametrize("values", [("1.0", "0.5"), ("1", "0"), ("0.99999", ""), ("4", "5")])
@pytest.mark.parametrize("name", NAMES)
def test_a_column_named_after_a_metric_is_metadata_and_not_proposed_as_gold(tmp_path: Path, name: str, values):
    rows = [
        {"user_input": "What is the fee?", "reference": "5 EUR", name: values[0]},
        {"user_input": "How long is the trial?", "reference": "14 days", name: values[1]},
    ]
    output, cases = converted(tmp_path, rows)
    for case in cases:
        assert case.keys() <= {"id", "question", "reference", "metadata"}
    assert "looks like gold" not in output


@pytest.mark.parametrize(
    "name", ["contexts", "source", "expected_chunks", "relevant_docs", "keywords", "golden passage"]
)
def test_a_column_of_scores_is_no_gold_whatever_its_name(tmp_path: Path, name: str):
    rows = [
        {"question": "What is the fee?", "expected_answer": "5 EUR", name: "1.0"},
        {"question": "How long is the trial?", "expected_answer": "14 days", name: "0.5"},
    ]
    output, cases = converted(tmp_path, rows)
    for case in cases:
        assert case.keys() <= {"id", "question", "reference", "metadata"}
    assert "looks like gold" not in output


@pytest.mark.parametrize(
    ("name", "values", "key"),
    [
        ("doc_id", ("1", "0"), "gold"),
        ("relevant_docs", ("d1", "d2"), "gold"),
        ("expected_chunks", ("1", "7"), "gold"),
        ("source", ("precision.md", "recall.md"), "gold_supports"),
        ("context", ("Precision is high.", "Recall is low."), "contexts"),
    ],
)
def test_ids_and_places_stay_what_they_are(tmp_path: Path, name: str, values, key: str):
    rows = [
        {"question": "What is the fee?", "expected_answer": "5 EUR", name: values[0]},
        {"question": "How long is the trial?", "expected_answer": "14 days", name: values[1]},
    ]
    _, cases = converted(tmp_path, rows)
    assert all(key in case for case in cases)


def test_right_answers_that_are_numbers_stay_answers(tmp_path: Path):
    rows = [
        {"question": "Which share is that?", "expected_answer": "0.5"},
        {"question": "And this?", "expected_answer": "1.0"},
    ]
    _, cases = converted(tmp_path, rows)
    assert [case["reference"] for case in cases] == ["0.5", "1.0"]
