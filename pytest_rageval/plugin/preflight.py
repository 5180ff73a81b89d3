"""Checks before anything runs: gates that no case could meet, broken case files, overridden fixtures."""

from __future__ import annotations

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


def overridden_in(session: EvalSession, fixture: str, case_file: Path) -> str | None:
    """Where the project gives a fixture of ours anew for a case file, None where it does not.

    On the controller of xdist as well, which resolves no fixtures, but has loaded what is above the case files. The
    nearest `conftest.py` counts, else any other plugin.
    """
    nearest: tuple[int, str] | None = None
    for name, plugin in session.config.pluginmanager.list_name_plugin():
        if name == FIXTURES or not hasattr(plugin, fixture):
            continue
        file = Path(getattr(plugin, "__file__", None) or name)
        is_conftest = file.name == "conftest.py"
        if not is_conftest or case_file.is_relative_to(file.parent):
            depth = len(file.parts) if is_conftest else 0
            shown = file.relative_to(session.root).as_posix() if file.is_relative_to(session.root) else name
            nearest = max(nearest or (0, ""), (depth, shown))
    return nearest[1] if nearest else None


def used_target(session: EvalSession, configured: str | None) -> str | None:
    """The target that cases are put to: the configured one, and each `rag_client` of the project by its place.

    All case files count, whatever was selected: it stands in config.json, and in its hash.
    """
    places = [overridden_in(session, "rag_client", path) for path in session.all_files]
    given = [f"rag_client fixture of {place}" for place in dict.fromkeys(places) if place is not None]
    return ", ".join([*([configured] if configured and None in places else []), *given]) or configured
