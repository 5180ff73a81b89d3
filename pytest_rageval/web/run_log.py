"""The end of a run's log, where it was started in the browser."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_rageval.web.site import Site

LOG, JOBS = "log.txt", "jobs"
SHOWN_LINES = 200
LARGEST_END = 512 * 1024
"""Bytes that are read from the end of the file."""


def last_lines(site: Site, run_id: str) -> list[str]:
    """The last lines of what a run printed; none where nothing kept them. The job of a run has its id."""
    name = site.stored_run(run_id).run_id
    for path in (site.settings.data / JOBS / name / LOG, site.runs / name / LOG):
        lines = _end_of(path)
        if lines:
            return lines
    return []


def _end_of(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LARGEST_END))
            return file.read().decode("utf-8", "replace").splitlines()[-SHOWN_LINES:]
    except OSError:
        return []
