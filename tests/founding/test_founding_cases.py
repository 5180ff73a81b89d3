"""The founding documents' cases, loaded and scored as they stand there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from project import FOUNDING, Project, copied, lines_with

from pytest_rageval.cases.canonical import content_hash
from pytest_rageval.cases.loading import load_file


def chunk(rel_path: str, heading_path: str, text: str = "") -> dict[str, Any]:
    return {"rel_path": rel_path, "heading_path": heading_path, "text": text}


def answered(project: Project, name: str, answers: dict[str, dict[str, Any]], *options: str) -> dict[str, Any]:
    """The records of a run over one of the files with these answers."""
    copied(project, name, f"evalcases/{name}")
    lines = [json.dumps({"id": id, **answer}) for id, answer in answers.items()]
    project.write("up.jsonl", "\n".join(lines))
    project.run("-q", "--rageval-target", "answers:up.jsonl", *options)
    return project.records()


MAIN = chunk("projects/main.md", "# Overview", "A project about RAG systems.")
CONFIG = chunk("docs/config.md", "# Setup > ## Embeddings", "The model must take 512 tokens.")
DESIGN, MEETING = chunk("notes/api-design.md", "# Decisions"), chunk("notes/meeting-notes.md", "# 2024-01-15")
OLD, NEW = chunk("docs/deployment-v1.md", "# Overview"), chunk("docs/deployment-v2.md", "# Overview")


def cited(*chunks: dict[str, Any]) -> dict[str, Any]:
    references = [{"rel_path": one["rel_path"], "heading_path": one["heading_path"]} for one in chunks]
    return {"retrieved_chunks": [OTHER, *chunks], "references": references}


OTHER = chunk("notes/other.md", "# Other", "Something else.")
HITS = {
    "test_001": {"answer": "RAG systems with llama.cpp over Obsidian vaults.", **cited(MAIN)},
    "test_002": {"answer": "Set EMBEDDING_MODEL env var. Model must support 512 tokens.", **cited(CONFIG)},
    "test_003": {"answer": "To use REST.", **cited(DESIGN, MEETING)},
    "test_004": {"answer": "The notes do not say.", "abstained": True, "retrieved_chunks": []},
    "test_005": {"answer": "The one of version 2.", **cited(NEW, OLD)},
}


def test_answers_that_hit_and_abstain_score_as_by_hand(project: Project):
    records = answered(project, "eval_set.jsonl", HITS)
    assert {id: record["outcome"] for id, record in records.items()} == dict.fromkeys(HITS, "passed")
    for id in ("test_001", "test_002", "test_003", "test_005"):
        assert records[id]["retrieval_metrics"]["recall_at_k"] == 1
        assert records[id]["retrieval_metrics"]["mrr"] == 0.5  # another chunk comes first
        assert records[id]["retrieval_metrics"]["attribution_hit"] is True
    assert records["test_001"]["scores"]["key_fact_recall"] == records["test_002"]["scores"]["key_fact_recall"] == 1
    assert records["test_003"]["scores"]["recall_all@5"] == 1
    assert records["test_004"]["scores"]["abstention_accuracy"] == 1
    assert records["test_005"]["scores"]["recency_conflict_ok"] == 1


def test_answers_that_miss_and_invent_fail_as_by_hand(project: Project):
    answers = {
        "test_001": {"answer": "About cats.", **cited(chunk("projects/main.md", "# Overview", "About cats."))},
        "test_002": {"answer": "I do not know.", "abstained": True, "retrieved_chunks": [OTHER]},
        "test_003": {"answer": "To use REST.", **cited(DESIGN)},
        "test_004": {"answer": "Olympus City.", "retrieved_chunks": [OTHER]},
        "test_005": {"answer": "The first one.", **cited(OLD)},
    }
    records = answered(project, "eval_set.jsonl", answers)
    failed = {id: {gate["metric"] for gate in record["verdict"]["failed_gates"]} for id, record in records.items()}
    assert failed == {
        "test_001": {"recall_any@5", "key_fact_recall"},
        "test_002": {"recall_any@5", "key_fact_recall", "over_abstention"},
        "test_003": {"recall_all@5"},  # one of two golds that are needed together
        "test_004": {"abstention_accuracy"},
        "test_005": {"recency_conflict_ok"},
    }


def test_a_chunk_below_the_golang_heading_that_holds_a_snippet_matches(project: Project):
    heading = "# Golang Tips & Oddities > ## Strings > ### Sorting"
    text = "There is no  built in\nSTRING sort in Go."
    answer = {"answer": "There is none.", "retrieved_chunks": [chunk("Software/LeetCode Tips.md", heading, text)]}
    (record,) = answered(project, "golang.jsonl", {"test_001": answer}).values()
    assert record["retrieval_metrics"]["recall_at_k"] == 1
    without = {**answer, "retrieved_chunks": [chunk("Software/LeetCode Tips.md", heading, "Nothing of the kind.")]}
    (record,) = answered(project, "golang.jsonl", {"test_001": without}).values()
    assert record["retrieval_metrics"]["recall_at_k"] == 0


@pytest.mark.parametrize(("requires_kg", "metric"), [(True, "hits@5"), (False, "context_recall@5")])
def test_requires_kg_decides_which_gate_looks_at_the_case(project: Project, requires_kg: bool, metric: str):
    copied(project, "q001.jsonl", "evalcases/q001.jsonl")
    case = json.loads((FOUNDING / "q001.jsonl").read_text(encoding="utf-8"))
    case["metadata"]["requires_kg"] = requires_kg
    project.write("evalcases/q001.jsonl", json.dumps(case, ensure_ascii=False))
    trace = {"kg_entities": ["other"], "kg_edges": ["laneige -hasProduct-> B08XYZ"]}
    answer = {"answer": "optional gold answer", "retrieved_chunks": [{"chunk_id": "other"}], "trace": trace}
    project.write("up.jsonl", json.dumps({"id": "q001", **answer}))
    project.run("-q", "--rageval-target", "answers:up.jsonl")
    record = project.records()["q001"]
    assert record["scores"]["kg_edge_f1"] == 1
    failed = {gate["metric"] for gate in record["verdict"]["failed_gates"]}
    assert failed & {"hits@5", "context_recall@5"} == {metric}


def test_one_file_and_two_are_the_same_data_set(project: Project):
    for name in ("one.csv", "two/questions.csv", "two/answers.csv"):
        copied(project, name, name)
    one = load_file(project.path / "one.csv", project.path).cases
    two = load_file(project.path / "two" / "questions.csv", project.path).cases
    assert [(case.id, content_hash(case)) for case in one] == [(case.id, content_hash(case)) for case in two]
    assert [case.gold.answers for case in two] == [("4",), ("Paris",)]
    assert two[0].contexts == ("2+2 equals 4",)


@pytest.mark.parametrize("places", [["two/questions.csv", "two/answers.csv"], ["two/answers.csv", "two/questions.csv"]])
def test_questions_and_answers_named_together_are_run_as_one(project: Project, places: list[str]):
    for name in ("two/questions.csv", "two/answers.csv", "uploaded.csv"):
        copied(project, name, name)
    result = project.run("-q", "--rageval-target", "answers:uploaded.csv", *places)
    assert (result.ret, project.outcomes()) == (0, {"q1": "passed", "q2": "passed"})
    checked = project.rageval("cases", "validate", *places)
    assert lines_with(checked, "2 cases, 0 problems")
