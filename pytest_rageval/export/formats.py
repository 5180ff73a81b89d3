"""The export formats, with the tables: CSV, Parquet (needs the extra `parquet`), SQLite, and the files of trec_eval."""

from __future__ import annotations

import csv
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from importlib import import_module
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_rageval.cases.exchange.retrieval_sets import run_lines, trec_id
from pytest_rageval.errors import SettingsError
from pytest_rageval.export.export_source import FIELDS, ExportSource, as_json, flat
from pytest_rageval.export.report_json import json_lines
from pytest_rageval.model import Chunk, Observation
from pytest_rageval.runs.records.observation_line import observation_of
from pytest_rageval.runs.records.record_files import record_at
from pytest_rageval.text import printable

Cell = str | bool | int | float | None
Record = Mapping[str, Any]
BATCH = 1_000
"""How many records are in memory at a time, as one group of rows."""
KINDS = dict.fromkeys(FIELDS, "string") | {"trial": "int64", "answerable": "bool_", "total_ms": "float64"}
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
    records = source.records()
    while batch := list(islice(records, BATCH)):
        yield batch


# ── CSV ───────────────────────────────────────────────────────────────────────────────────────────────────────

# Spreadsheets ignore leading blanks, and in East Asian locales treat full-width signs like plain ones.
_FORMULA = re.compile(r"[\s\x00-\x20\ufeff\u200b-\u200f\u2060]*[=+\-@＝＋－＠﹦﹢﹣﹫\t\r]")


def csv_lines(source: ExportSource) -> Iterator[str]:
    """Yield a row of names, then a row for each case and trial."""
    yield csv_line(source.columns())
    for record in source.records():
        yield csv_line(source.row(record))


def csv_line(cells: Iterable[Cell]) -> str:
    """Return a row without line end: texts in quotation marks, bare numbers, empty cells for None.

    Texts may hold line breaks, as CSV allows; other control characters in them are escaped.
    """
    buffer, row = StringIO(), list[str | int | float]()
    for cell in cells:
        if isinstance(cell, bool):
            row.append(str(cell).lower())
        elif isinstance(cell, str):
            row.append(printable(as_text(cell)))
        else:
            row.append("" if cell is None else cell)
    csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="").writerow(row)
    return buffer.getvalue()


def as_text(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run as a formula.

    Such a text begins, after blanks, with one of `=`, `+`, `-`, `@` or their full-width forms, or with a tab or a
    carriage return.
    """
    return f"'{text}" if _FORMULA.match(text) else text


# ── Parquet ───────────────────────────────────────────────────────────────────────────────────────────────────


def write_parquet(source: ExportSource, path: Path) -> None:
    """Write a new file: the columns of CSV, then `trace` as JSON and `retrieved_chunks` as a list of structures."""
    arrow, parquet = _pyarrow()
    columns = (*source.columns(), "trace", "retrieved_chunks")
    types = [getattr(arrow, kind)() for kind in KINDS.values()]
    types += [arrow.float64() for _ in source.measured]
    types += [arrow.string() for _ in source.judged]
    types += [arrow.int64() if isinstance(value, int) else arrow.string() for value in source.origin.values()]
    types += [arrow.string(), arrow.list_(arrow.struct([(name, getattr(arrow, of)()) for name, of in CHUNK.items()]))]
    schema = arrow.schema(list(zip(columns, types, strict=True)), metadata={"rageval_run_id": source.run.run_id})
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in _batches(source):
            rows = [
                (
                    *source.row(record),
                    as_json(record["trace"]),
                    [{name: chunk[name] for name in CHUNK} for chunk in record["retrieved_chunks"]],
                )
                for record in batch
            ]
            arrays = [arrow.array(column, type=of) for column, of in zip(zip(*rows, strict=True), types, strict=True)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


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
            for table, row in (each for record in batch for each in _rows(record)):
                tables.setdefault(table, []).append(row)
            _insert(connection, tables)
        connection.commit()


def _insert(connection: sqlite3.Connection, tables: Mapping[str, list[tuple[Any, ...]]]) -> None:
    for table, rows in tables.items():
        values = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO {table} VALUES ({values})", rows)  # noqa: S608 because the names are ours


def _run_row(source: ExportSource) -> tuple[Any, ...]:
    config, metrics = source.run.config, source.metrics or {}
    timestamp = metrics.get("volatile", {}).get("timestamp")
    aggregates = (metrics.get(name) for name in ("partial", "overall_score", "description"))
    version = config.get("dataset_version")
    return (source.run.run_id, timestamp, version, *aggregates, as_json(config), as_json(source.metrics))


def _rows(record: Record) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the rows of a record, each with its table."""
    of_trial = record["case_key"], record["trial"]
    yield "cases", (*flat(record).values(), as_json(record["trace"]))
    for metric, value in record["scores"].items():
        yield "scores", (*of_trial, metric, value)
    for metric, judgement in (record.get("judgements") or {}).items():
        claims = (as_json(judgement[name]) for name in ("supported_claims", "unsupported_claims"))
        explained = (judgement["score"], judgement["reasoning"], *claims, judgement["model"], judgement["heuristic"])
        yield "judgements", (*of_trial, metric, *explained)
    for chunk in record["retrieved_chunks"]:
        yield "chunks", (*of_trial, *(chunk[name] for name in CHUNK), as_json(chunk["matches"]))


# ── files of trec_eval and ir_measures ──────────────────────────────────────────────────────────────────────────


def trec_run_lines(source: ExportSource) -> Iterator[str]:
    """Yield `case Q0 chunk rank score run`, a line for each chunk of each case.

    A chunk is named by its id, else its document's id, else path and heading.
    """
    for obs in _observations(source):
        chunks = obs.answer.chunks or ()
        names = dict.fromkeys(_name(chunk, rank) for rank, chunk in enumerate(chunks, start=1))
        yield from run_lines(obs.case.key, [*names], trec_id(source.run.run_id))


def trec_qrels_lines(source: ExportSource) -> Iterator[str]:
    """Yield `case 0 chunk grade`: 1 for relevant, 0 for retrieved but irrelevant; nothing for cases without gold.

    Relevant are chunks that match a gold, and each unmatched gold under its own name: so recall is over the golds, if
    each chunk matches at most one.
    """
    for obs in _observations(source):
        for name, grade in _judged(obs).items():
            yield f"{trec_id(obs.case.key)} 0 {trec_id(name)} {grade}"


def _judged(obs: Observation) -> dict[str, int]:
    matching, chunks = obs.matching, obs.answer.chunks or ()
    hits = matching.hits or ()
    judged: dict[str, int] = {}
    for rank, chunk in enumerate(chunks, start=1):
        if hits and hits[rank - 1]:
            judged[_name(chunk, rank)] = 1
        elif matching.irrelevant is not None and matching.irrelevant[rank - 1]:
            judged.setdefault(_name(chunk, rank), 0)
    matched = frozenset[int]().union(*hits)
    for gold, name in enumerate(_gold_names(obs)):
        if gold not in matched:
            judged.setdefault(name, 1)
    return judged


def _gold_names(obs: Observation) -> list[str]:
    gold = obs.case.gold
    if obs.matching.kind == "anchors":
        return [str(anchor) for anchor in gold.supports or ()]
    return list(gold.chunk_ids or ()) if obs.matching.kind == "ids" else []


def _name(chunk: Chunk, rank: int) -> str:
    place = " > ".join(filter(None, (chunk.rel_path, chunk.heading_path)))
    return chunk.chunk_id or chunk.doc_id or place or f"chunk-{rank}"


def _observations(source: ExportSource) -> Iterator[Observation]:
    """Yield the observation of the first trial of each case, in key order."""
    places = source.run.observation_places()
    if not places:
        raise SettingsError(f"run {source.run.run_id} keeps no observations.jsonl, and so not what was retrieved")
    for key in source.watch(sorted(key for key in source.places if key in places and key[1] == 0)):
        record = record_at(places[key])
        obs = observation_of(record, source.run.config) if record["answer"] is not None else None
        if obs is not None:
            yield obs


TEXTS: Mapping[str, Callable[[ExportSource], Iterator[str]]] = {
    "csv": csv_lines,
    "json": json_lines,
    "trec-run": trec_run_lines,
    "trec-qrels": trec_qrels_lines,
}
"""Formats written line by line; the file of a format is `report.FORMAT`."""
FILES: Mapping[str, Callable[[ExportSource, Path], None]] = {"parquet": write_parquet, "sqlite": write_sqlite}
