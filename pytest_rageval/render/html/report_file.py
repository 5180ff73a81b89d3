"""The file of the HTML report: its name and the result of writing it, without loading the report's code."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pytest_rageval.runs.columns import SCORES
from pytest_rageval.runs.reader import CONFIG, METRICS
from pytest_rageval.runs.records.line_form import OBSERVATIONS, RESULTS

REPORT = "report.html"
MEGABYTE = 1_000_000
FILES = {
    CONFIG: "how the run was configured",
    METRICS: "its aggregates: written when a run ends",
    SCORES: "the score of each case: written when a run ends",
    RESULTS: "a record a case",
    OBSERVATIONS: "the complete observation of each case",
}


class EndReport(NamedTuple):
    """The HTML report written at the end of a run, or why it could not be written."""

    path: Path
    problem: str | None = None
