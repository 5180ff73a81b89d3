"""Stored runs, written as a run writes them: rows become metrics, scores and records in a folder below reports."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from two_runs import a_plan, metrics_of

from pytest_rageval.comparison.baseline import write_baseline
from pytest_rageval.comparison.pairing import Paired, pair
from pytest_rageval.comparison.side import open_side
from pytest_rageval.config.settings import Settings
from pytest_rageval.io.atomic import write_json
from pytest_rageval.plan import Plan
from pytest_rageval.runs.columns import write_scores
from pytest_rageval.runs.config import dataset_hash_of
from pytest_rageval.runs.records import to_line
from pytest_rageval.runs.row import SCHEMA, Row, cases_of

PLAN = a_plan("recall_any", "mrr")


def a_chunk(rank: int, place: str = "a.md", golds: Sequence[int] = (), **fields: Any) -> dict[str, Any]:
    """A retrieved chunk as records hold it."""
    known = {"chunk_id": None, "rel_path": place, "heading_path": None, "rank": rank, "score_vector": None,
             "score_lexical": None, "score_final": None, "text": None, "token_count": None}  # fmt: skip
    return known | {"matches": list(golds)} | fields


def a_record(row: Row, **fields: Any) -> dict[str, Any]:
    """A line of results.jsonl, as much of it as a comparison and a report read."""
    failed = [{"metric": metric, "value": 0.0, "threshold": ">= 1", "tag": tag} for metric, tag in row.failed]
    return {
        "schema": SCHEMA, "case_key": row.key, "test_case_id": row.key.partition("::")[2], "trial": row.trial,
        "question": f"What is {row.key}?", "answer": "An answer.",
        "retrieved_chunks": [], "abstention": {"abstained": False}, "error": None,
        "verdict": {"passed": not failed, "failed_gates": failed, "trial_passed": not failed, "gates_held": 1},
        "outcome": row.outcome, "content_hash": row.content_hash, "category": row.groups["category"][0], "reason": None,
        "tags": list(row.groups["tag"]), "difficulty": None, "domain": None, "answerable": True, "judge": row.judge,
        "scores": dict(row.scores), "skipped_metrics": {}, "latency": dict(row.latency), "cost": dict(row.cost),
        "requires_kg": False, "gold": "anchors", "references": [], "indexing_coverage": None, "versions": None,
        "groundedness": None, "correctness": None, "judge_input": None, "score_details": {}, "attempts": 1,
        "source": {"file": row.key.partition("::")[0], "line": 1},
    } | fields  # fmt: skip


def a_config(rows: Sequence[Row], **fields: Any) -> dict[str, Any]:
    """The config.json of a run, as much of it as a comparison reads."""
    settings = {"judge_temperature": 0.0} | fields.pop("settings", {})
    dataset = dataset_hash_of((row.key, row.content_hash) for row in cases_of(rows))
    return {"k": 5, "dataset_hash": dataset, "dataset_version": f"content:{dataset}", "index_build_version": "i1",
            "retriever_version": "r1", "answerer_version": "a1", "settings": settings} | fields  # fmt: skip


def store(
    reports: Path,
    run_id: str,
    rows: Sequence[Row],
    *,
    plan: Plan = PLAN,
    config: Mapping[str, Any] | None = None,
    records: Mapping[str, Mapping[str, Any]] | None = None,
    **metrics: Any,
) -> Path:
    """Write a run. `config` and `metrics` override what follows from the rows; `records`: lines by key."""
    folder = reports / "runs" / run_id
    folder.mkdir(parents=True)
    content = metrics_of(rows, plan, **metrics)
    content["volatile"] = content["volatile"] | {"run_id": run_id}
    write_json(folder / "metrics.json", content)
    write_json(folder / "config.json", a_config(rows, **(config or {})))
    write_scores(folder, cases_of(rows))
    if records is not None:
        lines = (to_line(a_record(row, **records.get(row.key, {}))) + "\n" for row in rows)
        (folder / "results.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def accept(reports: Path, folder: Path, rows: Sequence[Row]) -> Path:
    """Make a stored run the baseline."""
    path = reports / "baseline.json"
    metrics, config = (
        json.loads((folder / name).read_text(encoding="utf-8")) for name in ("metrics.json", "config.json")
    )
    write_baseline(path, metrics, rows, config)
    return path


def compared(reports: Path, before: str, after: str, *, ignore: bool = False, **settings: Any) -> Paired:
    """Two of them side by side."""
    sides = [open_side(reports, reports / "baseline.json", one) for one in (before, after)]
    return pair(sides[0], sides[1], Settings(**settings), ignore_invariants=ignore)
