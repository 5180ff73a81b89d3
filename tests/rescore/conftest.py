"""A stored run that the tests of a module share, and a copy of its project for each of them to work in."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import StoredProject


@pytest.fixture(scope="module")
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> StoredProject:
    """A run of the module's `CASES`."""
    project = StoredProject.new(tmp_path_factory.mktemp("stored"), request.module.CASES)
    project.pytest()
    return project


@pytest.fixture
def project(run: StoredProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoredProject:
    project = run.copied(tmp_path / "p")
    monkeypatch.chdir(project.path)
    return project
