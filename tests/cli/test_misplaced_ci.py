"""CI files of a project below the top of its repository, where no CI reads them."""

from __future__ import annotations

import pytest
from project import Project


@pytest.mark.parametrize("ci", ["github", "gitlab"])
def test_init_says_that_ci_reads_no_file_below_the_top_of_the_repository(project: Project, ci: str):
    (project.path / ".git").mkdir()
    service = Project(project.path / "services" / "desk")
    (service.path / "pyproject.toml").unlink()
    shown = service.rageval("init", "--yes", "--ci", ci).stdout.str()
    assert "at the top of the repository alone" in shown
    assert "services/desk" in shown


def test_init_at_the_top_says_nothing_of_it(project: Project):
    (project.path / ".git").mkdir()
    (project.path / "pyproject.toml").unlink()
    assert "at the top of the repository alone" not in project.rageval("init", "--yes", "--ci", "github").stdout.str()
