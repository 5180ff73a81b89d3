"""The file of a run's page: its name, what stands beside it, and what became of it. Nothing of the page is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pytest_rageval.runs.columns import SCORES
from pytest_rageval.runs.reader import CONFIG, METRICS, OBSERVATIONS, RESULTS

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
    """The page that was written at the end of a run, or why it could not be."""

    path: Path
    problem: str | None = None
