"""Checks before anything runs: broken case files, overridden fixtures."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_rageval.cases import CaseFile
from pytest_rageval.plugin.items import fixture_definition
from pytest_rageval.plugin.session import FIXTURES, EvalSession


def is_ours(definition: Any) -> bool:
    """Is this fixture definition the one of this plugin, or one that cannot be known?"""
    function = getattr(definition, "func", None)
    return definition is None or getattr(function, "__module__", "") == "pytest_rageval.plugin.fixtures"


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


# ── who judges ────────────────────────────────────────────────────────────────────────────────────────────────

JUDGE = "rag_judge"


def judges_of_files(session: EvalSession) -> frozenset[str | None]:
    """Where the `rag_judge` of each case file stands, as `conftest.py::rag_judge`; None for ours.

    From the files' text, whatever was selected and whichever process resolves fixtures: it is part of the run's hash.
    """
    by_folder = {
        folder: _place_in(folder / "conftest.py", session.root)
        for file in session.all_files
        for folder in file.parents
        if folder.is_relative_to(session.root)
    }
    of_plugins = next(_places_in_plugins(session), None)
    return frozenset(
        next((place for folder in file.parents if (place := by_folder.get(folder)) is not None), of_plugins)
        for file in session.all_files
    )


def judges_of_tests(item: pytest.Item) -> frozenset[str | None]:
    """Where the `rag_judge` of each test of this session stands that uses one; None for ours."""
    items = [test for test in item.session.items if JUDGE in getattr(test, "fixturenames", ())]
    return frozenset(_place_of(fixture_definition(test, JUDGE), test.config.rootpath) for test in items)


def _place_of(definition: Any, root: Path) -> str | None:
    if is_ours(definition):
        return None
    source = inspect.getsourcefile(inspect.unwrap(definition.func))
    path = Path(source or "")
    shown = path.relative_to(root).as_posix() if path.is_relative_to(root) else definition.func.__module__
    return f"{shown}::{JUDGE}"


def _places_in_plugins(session: EvalSession) -> Iterator[str]:
    """In plugins that are no conftest.py: those count below their folders alone."""
    for name, plugin in session.config.pluginmanager.list_name_plugin():
        is_conftest = Path(getattr(plugin, "__file__", None) or "").name == "conftest.py"
        if name != FIXTURES and not is_conftest and hasattr(plugin, JUDGE):
            yield f"{getattr(plugin, '__name__', name)}::{JUDGE}"


def _place_in(conftest: Path, root: Path) -> str | None:
    """Where a conftest.py has its `rag_judge` from: itself, or the module of which it is imported; None without one."""
    try:
        statements = ast.parse(conftest.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return None
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and JUDGE in _fixture_names(statement):
            return f"{conftest.relative_to(root).as_posix()}::{JUDGE}"
        if isinstance(statement, ast.ImportFrom) and any(
            (name.asname or name.name) == JUDGE for name in statement.names
        ):
            return f"{statement.module}::{JUDGE}"
    return None


def _fixture_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Its own name, and the one that `@pytest.fixture(name=…)` gives it."""
    yield function.name
    for decorator in function.decorator_list:
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                yield str(keyword.value.value)


def used_target(session: EvalSession, configured: str | None) -> str | None:
    """The target that cases are put to: the configured one, and each `rag_client` of the project by its place.

    All case files count, whatever was selected: it stands in config.json, and in its hash.
    """
    places = [overridden_in(session, "rag_client", path) for path in session.all_files]
    given = [f"rag_client fixture of {place}" for place in dict.fromkeys(places) if place is not None]
    return ", ".join([*([configured] if configured and None in places else []), *given]) or configured
