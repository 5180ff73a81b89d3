"""The thumbs of a run as labels for `rageval calibrate`."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_rageval.export.export_source import ExportSource
from pytest_rageval.io.json_text import json_text


def label_lines(source: ExportSource) -> Iterator[str]:
    """Yield a label for each answer with a thumb, as JSON on one line.

    Calibration reads the first trial of a case, so thumbs on other trials are no labels.
    """
    for record in source.records():
        thumb = record.get("thumb")
        if thumb is not None and record["trial"] == 0:
            label = {"run": source.run.run_id, "case_key": record["case_key"], "human_pass": thumb == "up"}
            yield json_text(label, None)
