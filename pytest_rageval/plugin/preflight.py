"""Checks before anything runs: gates that no case could meet, broken case files, overridden fixtures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_rageval.cases import CaseFile
from pytest_rageval.gates import unknown_values
from pytest_rageval.plugin.session import FIXTURES, EvalSession
from pytest_rageval.prepare import Prepared


def is_ours(definition: Any) -> bool:
    """Is this fixture definition the one of this plugin, or one that cannot be known?"""
    function = getattr(definition, "func", None)
    return definition is None or getattr(function, "__module__", "") == "pytest_rageval.plugin.fixtures"


def check_gate_conditions(prepared: Prepared, files: Sequence[CaseFile]) -> None:
    """A usage error where a written gate is for cases that do not exist: it would look at nothing, and hold.

    Silent where a file could not be read: its cases are not known.
    """
    cases = [case for file in files for case in file.cases]
    if not cases or any(file.problems for file in files):
        return
    if problems := list(unknown_values(prepared.plan.case_gates, cases)):
        raise pytest.UsageError(*prepared.mask.value(problems))


def report_problems(session: pytest.Session, files: list[CaseFile]) -> None:
    """Broken case files as collection errors that end the session, as they do where one process collects."""
    broken = [(str(file.path.relative_to(session.config.rootpath)), file.problems) for file in files if file.problems]
    for nodeid, problems in broken:
        report = pytest.CollectReport(nodeid, "failed", "\n".join(problems), [])
        session.config.hook.pytest_collectreport(report=report)
    if broken and not session.config.option.continue_on_collection_errors:
        raise session.Interrupted(f"{len(broken)} error{'s' if len(broken) > 1 else ''} during collection")


def may_override_client(session: EvalSession) -> bool:
    """Only workers of xdist resolve fixtures: does a plugin, or a conftest.py over a case file, name `rag_client`?"""
    if not session.config.pluginmanager.hasplugin("dsession"):
        return False
    plugins = session.config.pluginmanager.list_name_plugin()
    if any(hasattr(plugin, "rag_client") for name, plugin in plugins if name != FIXTURES):
        return True
    folders = {folder for path in session.found_files for folder in path.parents if folder.is_relative_to(session.root)}
    return any(_names_client(folder / "conftest.py") for folder in folders)


def _names_client(conftest: Path) -> bool:
    try:
        return re.search(r"\brag_client\b", conftest.read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return False
