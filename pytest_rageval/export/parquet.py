"""A run as a Parquet file, for data frames: a row a case and trial, chunks nested. Needs the extra `parquet`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_rageval.errors import SettingsError
from pytest_rageval.export.export_source import FIELDS, ExportSource, as_json

BATCH = 1_000
"""Records in one group of rows: what is in memory at a time."""
NOT_TEXT = {"trial": "int64", "answerable": "bool_", "total_ms": "float64"}
CHUNK = {"rank": "int64", "chunk_id": "string", "rel_path": "string", "heading_path": "string",
         "score_vector": "float64", "score_lexical": "float64", "score_final": "float64", "token_count": "int64",
         "text": "string"}  # fmt: skip


def write_parquet(source: ExportSource, path: Path) -> None:
    """Fill a new file: the columns of CSV, then `trace` as JSON and `retrieved_chunks` as a list of structures."""
    arrow, parquet = _pyarrow()
    columns = (*source.columns(), "trace", "retrieved_chunks")
    types = [getattr(arrow, NOT_TEXT.get(name, "string"))() for name in FIELDS]
    types += [arrow.float64() for _ in source.measured]
    types += [arrow.string() for _ in source.judged]
    types += [arrow.int64() if isinstance(value, int) else arrow.string() for value in source.origin.values()]
    types += [arrow.string(), arrow.list_(arrow.struct([(name, getattr(arrow, of)()) for name, of in CHUNK.items()]))]
    schema = arrow.schema(list(zip(columns, types, strict=True)), metadata={"rageval_run_id": source.run.run_id})
    records = source.records()
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while batch := list(islice(records, BATCH)):
            rows = [(*source.row(record), as_json(record["trace"]), _chunks(record)) for record in batch]
            arrays = [arrow.array(column, type=of) for column, of in zip(zip(*rows, strict=True), types, strict=True)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


def _pyarrow() -> tuple[Any, Any]:
    """pyarrow and its Parquet part; SettingsError where it is not installed."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise SettingsError(
            "--format parquet: pyarrow is not installed; pip install 'pytest-rageval[parquet]', or take csv or sqlite"
        ) from None


def _chunks(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{name: chunk[name] for name in CHUNK} for chunk in record["retrieved_chunks"]]
