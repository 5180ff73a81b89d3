"""Texts of a baseline's cases, compressed next to it, for comparisons where only committed files exist.

They come from results.jsonl, masked and cut as a run writes it; with `redact` there are none.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NotRequired

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from pytest_rageval.comparison.case_diff import Record, records_of
from pytest_rageval.io.atomic import write_bytes
from pytest_rageval.runs.reader import RESULTS
from pytest_rageval.runs.results_file import journals
from pytest_rageval.runs.row import Row

MOST_CASES = 2_000
MOST_BYTES = 8_000_000
"""The limit of all texts uncompressed: about one megabyte as a file."""
_GZIP = 31


class _Chunk(TypedDict):
    chunk_id: str | None
    rel_path: str | None
    heading_path: str | None
    rank: int
    score_final: float | None
    matches: list[int]


class _Gate(TypedDict):
    metric: str
    value: float | None
    threshold: str
    tag: str | None


class _Abstention(TypedDict):
    abstained: bool


class _Verdict(TypedDict):
    passed: bool
    trial_passed: NotRequired[bool | None]
    failed_gates: list[_Gate]


class _Error(TypedDict):
    kind: str
    message: str | None


class _Case(TypedDict):
    """The members of a record that a comparison reads; others are left out."""

    case_key: str
    trial: int
    outcome: str
    question: str | None
    answer: str | None
    retrieved_chunks: list[_Chunk]
    abstention: _Abstention | None
    verdict: _Verdict
    error: _Error | None
    scores: dict[str, float]


class _File(TypedDict):
    run_id: str
    cases: list[_Case]


@cache
def _reader(form: type) -> TypeAdapter[Any]:
    """Return the validator of a form, built when a baseline's texts are read or written."""
    return TypeAdapter(form)


def texts_path(baseline: Path) -> Path:
    """Return the path of a baseline's texts: `baseline.texts.json.gz` next to `baseline.json`."""
    return baseline.with_name(f"{baseline.stem}.texts.json.gz")


def write_texts(baseline: Path, run_id: str, rows: Iterable[Row], folder: Path) -> None:
    """Write the texts of a run's cases, failing ones first, up to a size; remove the file if there are none."""
    ordered = sorted(rows, key=lambda row: (row.outcome == "passed", row.key))
    keys = list(dict.fromkeys(row.key for row in ordered))[:MOST_CASES]
    files = (folder / RESULTS, *journals(folder, RESULTS))
    records = {key: record for file in files for key, record in records_of(file, {*keys}).items()}
    texts, size = list[dict[str, Any]](), 0
    for key in keys:
        if key in records and records[key]["question"] is not None:
            case = _reader(_Case).validate_python(records[key], strict=True)
            size += len(_json(case))
            if size > MOST_BYTES:
                break
            texts.append(case)
    if texts:
        content = _json({"run_id": run_id, "cases": texts})
        write_bytes(texts_path(baseline), gzip.compress(content, mtime=0))
    else:
        texts_path(baseline).unlink(missing_ok=True)


def read_texts(baseline: Path, run_id: str | None) -> Mapping[str, Record]:
    """Return the stored records by case; empty without a file or if it belongs to another run.

    Raise ValueError, with what is wrong, if the file cannot be read.
    """
    path = texts_path(baseline)
    try:
        packed = path.read_bytes() if path.stat().st_size <= MOST_BYTES else b""
        text = zlib.decompressobj(_GZIP).decompress(packed, 2 * MOST_BYTES)
        file = _reader(_File).validate_json(text, strict=True)
    except FileNotFoundError:
        return {}
    except (OSError, zlib.error, ValidationError, RecursionError):
        raise ValueError(f"{path} cannot be read (was it changed?): cases are not shown as they were before") from None
    return {case["case_key"]: case for case in file["cases"]} if file["run_id"] == run_id else {}


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8", "replace")
