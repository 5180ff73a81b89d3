"""A run as an SQLite database: runs, cases, scores and chunks, for queries over all of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_rageval.export.export_source import FIELDS, ExportSource, as_json, flat

TABLES = """
CREATE TABLE runs (run_id TEXT PRIMARY KEY, timestamp TEXT, dataset_version TEXT, partial INTEGER, overall_score REAL,
    description TEXT, configuration TEXT, aggregates TEXT);
CREATE TABLE cases (case_key TEXT, test_case_id TEXT, trial INTEGER, category TEXT, difficulty TEXT, domain TEXT,
    tags TEXT, answerable INTEGER, outcome TEXT, reason TEXT, question TEXT, answer TEXT, reference_answers TEXT,
    model_name TEXT, timestamp TEXT, meta TEXT, failed_gates TEXT, total_ms REAL, error TEXT, trace TEXT,
    PRIMARY KEY (case_key, trial)) WITHOUT ROWID;
CREATE TABLE scores (case_key TEXT, trial INTEGER, metric TEXT, value REAL,
    PRIMARY KEY (case_key, trial, metric)) WITHOUT ROWID;
CREATE TABLE judgements (case_key TEXT, trial INTEGER, metric TEXT, score REAL, explanation TEXT,
    supported_claims TEXT, unsupported_claims TEXT, model TEXT, heuristic INTEGER,
    PRIMARY KEY (case_key, trial, metric)) WITHOUT ROWID;
CREATE TABLE chunks (case_key TEXT, trial INTEGER, rank INTEGER, chunk_id TEXT, rel_path TEXT, heading_path TEXT,
    score_vector REAL, score_lexical REAL, score_final REAL, token_count INTEGER, text TEXT, matches TEXT,
    PRIMARY KEY (case_key, trial, rank)) WITHOUT ROWID;
"""
CHUNK = ("rank", "chunk_id", "rel_path", "heading_path", "score_vector", "score_lexical", "score_final",
         "token_count", "text")  # fmt: skip
BATCH = 500
"""Records between two inserts."""


def write_sqlite(source: ExportSource, path: Path) -> None:
    """Fill a new database file; sqlite3.Error and OSError as they come."""
    with closing(sqlite3.connect(path)) as connection:
        # The file is new and replaces another only when it is whole: a journal would guard nothing.
        connection.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {TABLES}")
        _insert(connection, "runs", [_run(source)])
        records = source.records()
        while batch := list(islice(records, BATCH)):
            _insert(connection, "cases", [_case(record) for record in batch])
            _insert(connection, "scores", [row for record in batch for row in _scores(record)])
            _insert(connection, "judgements", [row for record in batch for row in _judgements(record)])
            _insert(connection, "chunks", [row for record in batch for row in _chunks(record)])
        connection.commit()


def _insert(connection: sqlite3.Connection, table: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        values = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO {table} VALUES ({values})", rows)  # noqa: S608 because the names are ours


def _run(source: ExportSource) -> tuple[Any, ...]:
    config, metrics = source.run.config, source.metrics or {}
    return (
        source.run.run_id,
        metrics.get("volatile", {}).get("timestamp"),
        config.get("dataset_version"),
        metrics.get("partial"),
        metrics.get("overall_score"),
        metrics.get("description"),
        as_json(config),
        as_json(source.metrics),
    )


def _case(record: Mapping[str, Any]) -> tuple[Any, ...]:
    values = flat(record)
    return (*(values[name] for name in FIELDS), as_json(record["trace"]))


def _scores(record: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    for metric, value in record["scores"].items():
        yield record["case_key"], record["trial"], metric, value


def _judgements(record: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    for metric, judgement in (record.get("judgements") or {}).items():
        claims = (as_json(judgement[name]) for name in ("supported_claims", "unsupported_claims"))
        explained = (judgement["score"], judgement["reasoning"], *claims, judgement["model"], judgement["heuristic"])
        yield record["case_key"], record["trial"], metric, *explained


def _chunks(record: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    for chunk in record["retrieved_chunks"]:
        values = (chunk[name] for name in CHUNK)
        yield record["case_key"], record["trial"], *values, as_json(chunk["matches"])
