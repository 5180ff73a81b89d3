"""The export formats by name, each with the function that writes it and its file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pytest_rageval.export.calibration_labels import label_lines
from pytest_rageval.export.csv_format import csv_lines
from pytest_rageval.export.export_source import ExportSource
from pytest_rageval.export.report_json import REPORT, json_lines
from pytest_rageval.export.tables import write_parquet, write_sqlite
from pytest_rageval.export.trec_files import trec_qrels_lines, trec_run_lines

TEXTS: Mapping[str, Callable[[ExportSource], Iterator[str]]] = {
    "csv": csv_lines,
    "report": json_lines,
    "json": json_lines,
    "labels": label_lines,
    "trec-run": trec_run_lines,
    "trec-qrels": trec_qrels_lines,
}
"""Formats written line by line; `json` is another name of `report`."""
FILES: Mapping[str, Callable[[ExportSource, Path], None]] = {"parquet": write_parquet, "sqlite": write_sqlite}


def file_name(form: str) -> str:
    """Return the name of a format's file in the folder of a run."""
    return REPORT if form == "report" else f"report.{form}"
