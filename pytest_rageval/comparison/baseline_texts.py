"""The texts of a baseline's cases, compressed in a file next to it.

They are for comparisons where only committed files exist, as in CI. They come from results.jsonl, masked and cut as a
run writes it; with `redact` there are none.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from pytest_rageval.comparison.case_diff import Record, records_of
from pytest_rageval.io.atomic import write_bytes
from pytest_rageval.io.sealed_lines import sealed_line, unsealed
from pytest_rageval.runs.records.line_form import RESULTS
from pytest_rageval.runs.records.record_files import record_paths
from pytest_rageval.runs.row import Row

MOST_CASES = 2_000
MOST_BYTES = 8_000_000
"""The limit of all texts uncompressed: about one megabyte as a file."""
KEPT = (
    "case_key",
    "trial",
    "outcome",
    "question",
    "answer",
    "retrieved_chunks",
    "abstention",
    "verdict",
    "error",
    "scores",
)
"""The members of a record that a comparison reads."""
_GZIP = 31  # for zlib: a header of gzip (16), and any size of window (15)


def texts_path(baseline: Path) -> Path:
    """Return the path of a baseline's texts: `baseline.texts.json.gz` next to `baseline.json`."""
    return baseline.with_name(f"{baseline.stem}.texts.json.gz")


def write_texts(baseline: Path, run_id: str, rows: Iterable[Row], folder: Path) -> None:
    """Write the texts of a run's cases, failing ones first, up to a size; remove the file if there are none."""
    ordered = sorted(rows, key=lambda row: (row.outcome == "passed", row.key))
    keys = list(dict.fromkeys(row.key for row in ordered))[:MOST_CASES]
    records: dict[str, Record] = {}
    for file in record_paths(folder, RESULTS):
        records |= records_of(file, {*keys})
    in_order = [records[key] for key in keys if key in records]
    # A redacted run records no texts: its questions are None.
    with_text = [record for record in in_order if record["question"] is not None]
    lines = [sealed_line({"run_id": run_id})]
    lines += [sealed_line(_kept(record)) for record in with_text]
    sizes = accumulate(map(len, lines))
    lines = [line for line, size in zip(lines, sizes, strict=True) if size <= MOST_BYTES]
    if len(lines) > 1:
        write_bytes(texts_path(baseline), gzip.compress(b"\n".join(lines), mtime=0))
    else:
        texts_path(baseline).unlink(missing_ok=True)


def read_texts(baseline: Path, run_id: str | None) -> Mapping[str, Record]:
    """Return the stored records by case; empty without a file or if it belongs to another run.

    Raise ValueError, with what is wrong, if the file cannot be read.
    """
    path = texts_path(baseline)
    try:
        packed = path.read_bytes() if path.stat().st_size <= MOST_BYTES else b""
        # Bounded, as a small file can unpack to any size.
        text = zlib.decompressobj(_GZIP).decompress(packed, 2 * MOST_BYTES)
        head, *records = map(unsealed, text.split(b"\n"))
        cases = {record["case_key"]: record for record in records}
    except FileNotFoundError:
        return {}
    except (OSError, zlib.error, ValueError, KeyError):
        raise ValueError(f"{path} cannot be read (was it changed?): cases are not shown as they were before") from None
    return cases if head.get("run_id") == run_id else {}


def _kept(record: Record) -> dict[str, Any]:
    """Return the members that are kept of a record; the texts of its chunks are not."""
    kept = {name: record[name] for name in KEPT}
    kept["retrieved_chunks"] = [_without_text(chunk) for chunk in record["retrieved_chunks"]]
    return kept


def _without_text(chunk: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in chunk.items() if name != "text"}
