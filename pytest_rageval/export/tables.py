"""A run as typed tables: Parquet (needs the extra `parquet`) and SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_rageval.errors import SettingsError
from pytest_rageval.export.export_source import FIELDS, FLAT, ExportSource, as_json
from pytest_rageval.metrics.calls import OPERATION_UNITS

Record = Mapping[str, Any]
BATCH = 1_000
"""How many records are in memory at a time, as one group of rows."""
KINDS = dict.fromkeys(FIELDS, "string") | {
    "trial": "int64",
    "turn": "int64",
    "answerable": "bool_",
    **dict.fromkeys(OPERATION_UNITS, "float64"),
    "tool_call_count": "int64",
}
CHUNK = {
    "rank": "int64",
    "chunk_id": "string",
    "rel_path": "string",
    "heading_path": "string",
    "score_vector": "float64",
    "score_lexical": "float64",
    "score_final": "float64",
    "token_count": "int64",
    "text": "string",
}
"""The Arrow types of the columns."""


def _batches(source: ExportSource) -> Iterator[list[dict[str, Any]]]:
    records = source.flat_records()
    batch = list(islice(records, BATCH))
    while batch:
        yield batch
        batch = list(islice(records, BATCH))


# ── Parquet ───────────────────────────────────────────────────────────────────────────────────────────────────


def write_parquet(source: ExportSource, path: Path) -> None:
    """Write a new file: the columns of CSV, then `trace` as JSON and `retrieved_chunks` as a list of structures."""
    arrow, parquet = _pyarrow()
    columns = (*source.columns(), "trace", "retrieved_chunks")
    kinds = [*KINDS.values()]
    kinds += ["float64" for _ in source.measured]
    kinds += ["string" for _ in source.judged]
    for value in source.origin.values():
        kinds.append("int64" if isinstance(value, int) else "string")
    kinds.append("string")
    types = [getattr(arrow, kind)() for kind in kinds]
    chunk = [(name, getattr(arrow, kind)()) for name, kind in CHUNK.items()]
    types.append(arrow.list_(arrow.struct(chunk)))
    fields = list(zip(columns, types, strict=True))
    schema = arrow.schema(fields, metadata={"rageval_run_id": source.run.run_id})
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in _batches(source):
            rows = [_parquet_row(source, record) for record in batch]
            values_by_column = zip(*rows, strict=True)
            arrays = [arrow.array(values, type=kind) for values, kind in zip(values_by_column, types, strict=True)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


def _parquet_row(source: ExportSource, record: Record) -> tuple[Any, ...]:
    chunks = [{name: chunk[name] for name in CHUNK} for chunk in record["retrieved_chunks"]]
    return (*source.row(record), as_json(record["trace"]), chunks)


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise SettingsError(
            "--format parquet: pyarrow is not installed; pip install 'pytest-rageval[parquet]', or take csv or sqlite"
        ) from None


# ── SQLite ────────────────────────────────────────────────────────────────────────────────────────────────────


def _declared(kinds: Mapping[str, str]) -> str:
    affinities = {"string": "TEXT", "float64": "REAL", "int64": "INTEGER", "bool_": "INTEGER"}
    return ", ".join(f"{name} {affinities[kind]}" for name, kind in kinds.items())


TABLES = f"""
CREATE TABLE runs (run_id TEXT PRIMARY KEY, timestamp TEXT, dataset_version TEXT, partial INTEGER, overall_score REAL,
    description TEXT, configuration TEXT, aggregates TEXT);
CREATE TABLE cases ({_declared(KINDS)}, trace TEXT, PRIMARY KEY (case_key, trial)) WITHOUT ROWID;
CREATE TABLE scores (case_key TEXT, trial INTEGER, metric TEXT, value REAL,
    PRIMARY KEY (case_key, trial, metric)) WITHOUT ROWID;
CREATE TABLE judgements (case_key TEXT, trial INTEGER, metric TEXT, score REAL, explanation TEXT,
    supported_claims TEXT, unsupported_claims TEXT, model TEXT, heuristic INTEGER,
    PRIMARY KEY (case_key, trial, metric)) WITHOUT ROWID;
CREATE TABLE chunks (case_key TEXT, trial INTEGER, {_declared(CHUNK)}, matches TEXT,
    PRIMARY KEY (case_key, trial, rank)) WITHOUT ROWID;
"""


def write_sqlite(source: ExportSource, path: Path) -> None:
    """Write a new database with the tables runs, cases, scores, judgements and chunks; sqlite3.Error passes through."""
    with closing(sqlite3.connect(path)) as connection:
        # A journal would protect nothing: the file is new, and replaces another only when complete.
        connection.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {TABLES}")
        _insert(connection, {"runs": [_run_row(source)]})
        for batch in _batches(source):
            tables: dict[str, list[tuple[Any, ...]]] = {}
            for record in batch:
                for table, row in _rows(record):
                    tables.setdefault(table, []).append(row)
            _insert(connection, tables)
        connection.commit()


def _insert(connection: sqlite3.Connection, tables: Mapping[str, list[tuple[Any, ...]]]) -> None:
    for table, rows in tables.items():
        values = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO {table} VALUES ({values})", rows)  # noqa: S608 because the names are ours


def _run_row(source: ExportSource) -> tuple[Any, ...]:
    config = source.run.config
    metrics = source.metrics or {}
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


def _rows(record: Record) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the rows of a record, each with its table."""
    of_trial = (record["case_key"], record["trial"])
    yield "cases", (*record[FLAT].values(), as_json(record["trace"]))
    for metric, value in record["scores"].items():
        yield "scores", (*of_trial, metric, value)
    for metric, judgement in (record.get("judgements") or {}).items():
        supported = as_json(judgement["supported_claims"])
        unsupported = as_json(judgement["unsupported_claims"])
        explained = (judgement["score"], judgement["reasoning"], supported, unsupported)
        yield "judgements", (*of_trial, metric, *explained, judgement["model"], judgement["heuristic"])
    for chunk in record["retrieved_chunks"]:
        values = [chunk[name] for name in CHUNK]
        yield "chunks", (*of_trial, *values, as_json(chunk["matches"]))
