"""The report to GitHub Actions: annotations in the log, and the verdict on the job's page."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_rageval.comparison.case_list import ListedCase
from pytest_rageval.finish import Finished
from pytest_rageval.render.markdown.run_markdown import LONGEST_SUMMARY, annotation_lines, failing_cases, run_markdown
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.text import printable

ANNOTATING = "pytest_github_actions_annotate_failures"
"""A plugin that annotates failing tests itself: one annotation is enough."""
LEAST_SUMMARY = 10_000
"""Least room in bytes: with less, earlier steps of a job have filled its page."""


def report_to_github(terminal: pytest.TerminalReporter, finished: Finished, config: pytest.Config) -> None:
    """Print annotations and add to the job's summary."""
    cases = failing_cases(StoredRun(finished.folder))
    if not config.pluginmanager.hasplugin(ANNOTATING):
        in_workspace = [_placed(case, config.rootpath) for case in cases]
        settings = _in_workspace(config.inipath or config.rootpath / "pyproject.toml", "pyproject.toml")
        terminal.ensure_newline()
        for line in annotation_lines(finished.metrics, in_workspace, settings):
            terminal.write_line(line)
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            _append_summary(Path(path), finished, cases)
        except OSError as error:
            terminal.write_line(printable(f"rageval: {path}: no summary was written: {error.strerror}"), yellow=True)


def _placed(case: ListedCase, root: Path) -> ListedCase:
    file, _, line = case.place.rpartition(":")
    return case._replace(place=f"{_in_workspace(root / file, file)}:{line}") if file else case


def _in_workspace(path: Path, otherwise: str) -> str:
    """Return the path from the root of the repository, as GitHub knows it."""
    workspace = Path(os.environ.get("GITHUB_WORKSPACE") or ".").absolute()
    return path.relative_to(workspace).as_posix() if path.is_relative_to(workspace) else otherwise


def _append_summary(path: Path, finished: Finished, cases: list[ListedCase]) -> None:
    room = LONGEST_SUMMARY - (path.stat().st_size if path.exists() else 0)
    if room >= LEAST_SUMMARY:
        with path.open("a", encoding="utf-8") as file:
            file.write(run_markdown(finished.metrics, cases, longest=room) + "\n")
