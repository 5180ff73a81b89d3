"""Rows of a Parquet file, as data sets are published; needs the extra `parquet`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from pytest_rageval.io.messages import Report
from pytest_rageval.model import Json

BATCH = 1_000
"""Rows in memory at a time."""


def parquet_rows(path: Path, report: Report) -> Iterator[tuple[int, dict[str, Json]]]:
    """Each row with its number, as JSON would hold it: dates and the like as text, without what is null."""
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        report.add_whole("is Parquet, and pyarrow is not installed; pip install 'pytest-rageval[parquet]'")
        return
    number = 0
    try:
        for batch in parquet.ParquetFile(path).iter_batches(BATCH):
            for row in batch.to_pylist():
                number += 1
                yield number, {name: value for name, value in _as_json(row).items() if value is not None}
    except (OSError, ValueError) as error:  # what pyarrow raises of a broken file is a ValueError
        report.add_whole(f"not valid Parquet: {error}")


def _as_json(row: Json) -> dict[str, Json]:
    written: dict[str, Json] = json.loads(json.dumps(row, default=str), parse_constant=lambda _: None)
    return written
