"""The record and the aggregates of the founding documents: every key that they show has its place in a run's files."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from project import Project, at, copied, document, has, key_paths

from pytest_rageval.runs.flat_aggregates import with_aliases

RECORD, METRICS = document("result.json"), document("metrics.json")
BY_TYPE = METRICS["aggregate_metrics"]["operational_metrics"]["coverage_by_doc_type"]
BOT = f"""
import json
COVERAGE = json.loads({json.dumps(json.dumps(RECORD["indexing_coverage"]))})
BY_TYPE = json.loads({json.dumps(json.dumps(BY_TYPE))})

def answer(question):
    if "Mars" in question:
        return {{"answer": "I do not know.", "abstained": True}}
    chunk = {{"chunk_id": "c1", "rel_path": "projects/main.md", "heading_path": "# Overview", "text": "RAG systems",
             "score_vector": 0.95, "score_lexical": 0.8, "score_final": 0.9, "token_count": 245}}
    return {{
        "answer": "RAG systems over Obsidian vaults with llama.cpp.",
        "references": [{{"chunk_id": "c1"}}],
        "retrieved_chunks": [chunk],
        "folder_selection": {{"folders": ["projects"]}},
        "latency": {{"folder_selection_ms": 50, "retrieval_ms": 200, "generation_ms": 900}},
        "indexing_coverage": COVERAGE | {{"coverage_by_doc_type": BY_TYPE}},
        "versions": {{"llm": "llama3.2", "embedding": "granite-278m", "prompt": "v2.0"}},
    }}
"""
TABLE = 'target = "bot:answer"\njudge = "judge:Judge"\nfolder_mode = "on_with_fallback"\n'
JUDGE = """
from pytest_rageval.model import Judgement

class Judge:
    model, heuristic, rubrics = "qwen2.5-14b", False, frozenset({"groundedness", "correctness"})

    async def judge(self, request):
        scores = {request.rubric: 4.5}
        return Judgement(request.rubric, scores, scale=(0, 5), reasoning="…", supported_claims=("claim 1", "claim 2"),
                         model=self.model, prompt_version="v1.0", tokens_in=400, tokens_out=100, cost_usd=0.001)

    async def aclose(self):
        pass
"""


@pytest.fixture
def judged(project: Project) -> Project:
    """A run of the founding cases with a bot and a judge that report what the founding documents show."""
    copied(project, "eval_set.jsonl", "evalcases/eval_set.jsonl")
    project.write("bot.py", BOT)
    project.write("judge.py", JUDGE)
    project.configure(TABLE)
    project.run("-q", "--rageval-run-id", "one")
    return project


def test_every_key_of_the_record_document_has_its_place(judged: Project):
    record = judged.records()["test_001"]
    config = json.loads((judged.runs[-1] / "config.json").read_text())
    for path in key_paths(RECORD):
        found = at({**record, "config": config}, path)
        if path[0] in ("retrieval_metrics", "abstention", "indexing_coverage"):
            shown = at(RECORD, path)
            assert type(found) is type(shown), path
        assert found is not None or path[-1] in ("judge_temperature",), path


def test_what_is_a_yes_or_a_no_is_one_in_the_record_and_a_number_among_the_scores(judged: Project):
    record = judged.records()["test_001"]
    assert record["retrieval_metrics"] == {
        "recall_at_k": 1.0, "recall_all_at_k": None, "precision_at_k": 1.0, "mrr": 1.0, "scope_miss": False,
        "attribution_hit": True,
    }  # fmt: skip
    assert (record["scores"]["scope_miss"], record["scores"]["attribution_hit"]) == (0.0, 1.0)


def test_every_key_of_the_metrics_document_has_its_place(judged: Project):
    judged.rageval("judge", "one", "--spot-check", "--spot-check-n", "2", "--second-judge", "stub:0.5")
    metrics = with_aliases(judged.metrics())  # as report.json holds them
    places = {**metrics, **{name: metrics["volatile"][name] for name in ("run_id", "timestamp")}}
    for path in key_paths(METRICS):
        path = ("by_tag", "config", *path[2:]) if path[:2] == ("by_tag", "personal") else path
        assert has(places, path), path


def test_the_means_of_each_tag_stand_under_their_flat_names(judged: Project):
    metrics = judged.metrics()
    for shown in (metrics["by_tag"]["code"], metrics["aggregate_metrics"]["by_tag"]["code"]):
        assert (shown["recall_at_k_avg"], shown["groundedness_avg"], shown["correctness_avg"]) == (1.0, 4.5, 4.5)


def test_latency_and_cost_stand_among_the_aggregates_of_report_json(judged: Project):
    report = json.loads((judged.runs[-1] / "report.json").read_text(encoding="utf-8"))
    shown, volatile = report["aggregates"]["aggregate_metrics"], judged.metrics()["volatile"]
    assert shown["latency"]["p95_ms"] == volatile["latency"]["p95_ms"] > 0
    assert shown["cost"] == {"judge_total_tokens": 4000, "judge_total_usd": pytest.approx(0.008)}


@pytest.fixture
def uploaded(project: Project) -> Project:
    """The founding answers, judged by a lenient judge."""
    copied(project, "one.csv", "evalcases/one.csv")
    copied(project, "uploaded.csv", "uploaded.csv")
    project.configure(
        'target = "answers:uploaded.csv"\njudge = "stub:0.9"\n[tool.rageval.metrics]\n'
        'enabled = ["exact_match", "reference_match", "relevance", "faithfulness"]'
    )
    project.run("-q", "--rageval-run-id", "one")
    return project


def test_uploaded_answers_keep_whose_they_are_beside_reference_and_explanations(uploaded: Project):
    first, second = uploaded.records().values()
    assert (first["model_name"], first["timestamp"], first["meta"]) == (
        "qwen2.5-14b", "2025-01-01T00:00:00Z", {"a": 1},
    )  # fmt: skip
    assert (second["model_name"], second["timestamp"], second["meta"]) == ("qwen2.5-14b", None, None)
    assert (first["reference_answers"], second["reference_answers"]) == (["4"], ["Paris"])
    judgements = first["judgements"]
    assert {"reference_match", "relevance", "faithfulness"} <= judgements.keys()
    assert all(judgement["reasoning"] for judgement in judgements.values())
    assert all(judgements[name]["score"] == first["scores"][name] for name in ("reference_match", "relevance"))


def test_exports_hold_explanations_reference_and_whose_answer_it_is(uploaded: Project):
    for form in ("csv", "json", "sqlite"):
        uploaded.rageval("export", "one", "--format", form, "--output", f"out.{form}")
    (first, _) = csv.DictReader((uploaded.path / "out.csv").read_text().splitlines())
    shown = (first["reference_answers"], first["model_name"], first["timestamp"], first["meta"])
    assert shown == ("4", "qwen2.5-14b", "2025-01-01T00:00:00Z", '{"a": 1}')
    assert first["reference_match.explanation"]
    case = json.loads((uploaded.path / "out.json").read_text())["cases"][0]
    assert case["judgements"]["reference_match"]["reasoning"] == first["reference_match.explanation"]
    with closing(sqlite3.connect(uploaded.path / "out.sqlite")) as base:
        rows = base.execute("SELECT model_name, meta, explanation FROM cases JOIN judgements USING (case_key, trial)")
        assert ("qwen2.5-14b", '{"a": 1}', first["reference_match.explanation"]) in rows.fetchall()


def test_a_full_text_export_holds_uncut_explanations_references_and_meta(project: Project):
    long = "word " * 100
    project.cases([{"id": "q", "question": "Why?", "gold": {"answer": [long, "short"]}}])
    project.write("up.jsonl", json.dumps({"id": "q", "answer": "4", "meta": {"note": long}}))
    project.run("-q", "--rageval-target", "answers:up.jsonl", "--rageval-run-id", "one")
    record = project.records()["q"]
    assert len(record["reference_answers"][0]) < len(long)
    project.rageval("export", "one", "--format", "json", "--full-text", "--output", "out.json")
    case: dict[str, Any] = json.loads((project.path / "out.json").read_text())["cases"][0]
    assert (case["reference_answers"], case["meta"]) == ([long, "short"], {"note": long})


def test_where_no_text_may_be_written_neither_references_nor_explanations_are(project: Project):
    project.cases([{"id": "q", "question": "Why?", "gold": {"answer": "SECRETWORD"}}])
    project.write("up.jsonl", json.dumps({"id": "q", "answer": "4", "meta": {"note": "SECRETWORD"}}))
    project.run("-q", "--rageval-target", "answers:up.jsonl", "--rageval-redact")
    assert "SECRETWORD" not in (project.runs[-1] / "results.jsonl").read_text()
