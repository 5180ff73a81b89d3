"""The report to GitHub Actions: annotations in the log, and the verdict on the job's page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_rageval.comparison.listed_case import ListedCase
from pytest_rageval.config.files import OWN_FILE, SHARED_FILE
from pytest_rageval.render.markdown.annotations import annotation_lines
from pytest_rageval.render.markdown.run_markdown import run_markdown
from pytest_rageval.run.finish import FinishedRun
from pytest_rageval.text import printable
from pytest_rageval.views.run_digest import RunDigest, run_digest

ANNOTATING = "pytest_github_actions_annotate_failures"
"""A plugin that annotates failing tests itself: one annotation is enough."""
LONGEST_SUMMARY = 1_000_000
"""Bytes: GitHub drops a step's summary of more than 1 MiB."""
LEAST_SUMMARY = 40_000
"""Bytes of a document of 10,000 characters at most: with less room, earlier steps of a job have filled its page."""


def report_to_github(
    terminal: pytest.TerminalReporter, finished: FinishedRun, config: pytest.Config, baseline: Path
) -> None:
    """Print annotations and add to the job's summary. `baseline`: its file."""
    digest = run_digest(finished.stored, finished.metrics, baseline, scores=finished.cases)
    cases = digest.failing
    if not config.pluginmanager.hasplugin(ANNOTATING):
        in_workspace = [_placed(case, config.rootpath) for case in cases]
        flaky = [_placed(case, config.rootpath) for case in digest.flaky]
        settings = _file_of_gates(config, [*cases, *digest.flaky])
        # Commands count at the beginning of a line alone, and pytest's progress may stand on this one.
        terminal.ensure_newline()
        for line in annotation_lines(finished.metrics, in_workspace, flaky, settings):
            terminal.write_line(line)
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            _append_summary(Path(path), digest)
        except OSError as error:
            terminal.write_line(printable(f"rageval: {path}: no summary was written: {error.strerror}"), yellow=True)


def _placed(case: ListedCase, root: Path) -> ListedCase:
    file, _, line = (case.place or f"{case.file}:1").rpartition(":")
    return case._replace(place=f"{_in_workspace(root / file, file)}:{line}")


def _file_of_gates(config: pytest.Config, cases: Sequence[ListedCase]) -> str:
    """Return a file for annotations of the run's gates: GitHub shows none at a file that does not exist."""
    root = config.rootpath
    for path in (root / OWN_FILE, config.inipath, root / SHARED_FILE):
        if path is not None and path.is_file():
            return _in_workspace(path, path.name)
    return next((_placed(case, root).place.rpartition(":")[0] for case in cases), SHARED_FILE)


def _in_workspace(path: Path, otherwise: str) -> str:
    """Return the path from the root of the repository, as GitHub knows it."""
    workspace = Path(os.environ.get("GITHUB_WORKSPACE") or ".").absolute()
    return path.relative_to(workspace).as_posix() if path.is_relative_to(workspace) else otherwise


def _append_summary(path: Path, digest: RunDigest) -> None:
    taken = path.stat().st_size if path.exists() else 0
    if LONGEST_SUMMARY - taken >= LEAST_SUMMARY:
        # Appended: the file is shared by all that runs in the step.
        with path.open("a", encoding="utf-8") as file:
            file.write(run_markdown(digest) + "\n")
