"""The package from outside: its version, its public names, and the command as a module."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from processes import python

import pytest_rageval


def test_the_version_is_that_of_the_installed_package():
    assert pytest_rageval.__version__ == version("pytest-rageval")


@pytest.mark.child_process
def test_neither_import_nor_version_of_the_package_is_paid_for_by_those_who_do_not_ask():
    code = "import sys; before = {*sys.modules}; import pytest_rageval; print({*sys.modules} - before)"
    loaded = python("-c", code, check=True).stdout
    assert "importlib.metadata" not in loaded
    assert "pydantic" not in loaded
    assert "pytest_rageval.model" not in loaded


def test_every_public_name_is_there_and_others_are_refused():
    assert all(getattr(pytest_rageval, name) is not None for name in pytest_rageval.__all__)
    with pytest.raises(AttributeError, match="module 'pytest_rageval' has no attribute 'nothing'"):
        pytest_rageval.nothing  # noqa: B018 because looking is what fails


@pytest.mark.child_process
def test_the_package_run_as_a_module_is_the_command():
    assert python("-m", "pytest_rageval", "--version").stdout == f"rageval, version {version('pytest-rageval')}\n"
    assert "python -m pytest_rageval" in python("-m", "pytest_rageval", "--help").stdout
