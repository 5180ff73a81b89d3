from __future__ import annotations

import pytest
from project import Project


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """An empty project with a bot that knows three facts."""
    return Project(pytester)
