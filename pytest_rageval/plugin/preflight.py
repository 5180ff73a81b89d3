"""Checks before anything runs: broken case files, overridden fixtures."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_rageval.cases.loading import CaseFile
from pytest_rageval.plugin.items import FUNCTION, fixture_definition, hands_on
from pytest_rageval.plugin.session import FIXTURES, EvalSession


def is_ours(definition: Any) -> bool:
    """Return True if this fixture definition is the plugin's, or is unknown."""
    function = getattr(definition, "func", None)
    return definition is None or getattr(function, "__module__", "") == "pytest_rageval.plugin.fixtures"


def report_problems(session: pytest.Session, files: list[CaseFile]) -> None:
    """Report broken case files as collection errors that end the session."""
    broken = [(str(file.path.relative_to(session.config.rootpath)), file.problems) for file in files if file.problems]
    for nodeid, problems in broken:
        report = pytest.CollectReport(nodeid, "failed", "\n".join(problems), [])
        session.config.hook.pytest_collectreport(report=report)
    if broken and not session.config.option.continue_on_collection_errors:
        raise session.Interrupted(f"{len(broken)} error{'s' if len(broken) > 1 else ''} during collection")


# ── overridden fixtures ───────────────────────────────────────────────────────────────────────────────────────


class Override(NamedTuple):
    """A fixture of ours that the project overrides: the conftest.py or plugin, and where that has it from."""

    place: str
    source: str


def overrides(session: EvalSession, fixture: str, case_files: Iterable[Path]) -> dict[Path, Override | None]:
    """Return by case file what overrides this fixture: the nearest conftest.py, else a plugin, None if nothing does.

    From the files' text, whatever was selected and whichever process resolves fixtures: it is part of the run's hash.
    """
    files = list(case_files)
    others = sorted(_in_plugins(session, fixture))
    conftests = {
        folder: _in_conftest(session, folder / "conftest.py", fixture)
        for file in files
        for folder in file.parents
        if folder.is_relative_to(session.root)
    }
    of_plugins = others[-1] if others else None
    return {
        file: next((override for folder in file.parents if (override := conftests.get(folder)) is not None), of_plugins)
        for file in files
    }


def _in_plugins(session: EvalSession, fixture: str) -> Iterator[Override]:
    """Yield the overrides in plugins other than conftest.py files."""
    for name, plugin in session.config.pluginmanager.list_name_plugin():
        file = Path(getattr(plugin, "__file__", None) or name)
        if name != FIXTURES and file.name != "conftest.py" and hasattr(plugin, fixture):
            place = file.relative_to(session.root).as_posix() if file.is_relative_to(session.root) else name
            yield Override(place, getattr(plugin, "__name__", name))


def _in_conftest(session: EvalSession, conftest: Path, fixture: str) -> Override | None:
    """Return the override in a conftest.py, from its text or, if that does not show it, from the loaded module."""
    place = conftest.relative_to(session.root).as_posix()
    try:
        statements = ast.parse(conftest.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return None
    for statement in statements:
        if isinstance(statement, FUNCTION) and fixture in _fixture_names(statement):
            return None if hands_on(statement, fixture) else Override(place, place)
        if isinstance(statement, ast.ImportFrom) and any(
            (name.asname or name.name) == fixture for name in statement.names
        ):
            return Override(place, statement.module or place)
    loaded = session.config.pluginmanager.get_plugin(str(conftest))
    return Override(place, place) if hasattr(loaded, fixture) else None


def _fixture_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Yield the name of the function, and the one that `@pytest.fixture(name=…)` gives it."""
    yield function.name
    for decorator in function.decorator_list:
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                yield str(keyword.value.value)


# ── who judges ────────────────────────────────────────────────────────────────────────────────────────────────

JUDGE, CLIENT = "rag_judge", "rag_client"


def judges_of_files(session: EvalSession) -> frozenset[str | None]:
    """Return the place of the `rag_judge` of each case file, such as `conftest.py::rag_judge`; None for ours."""
    given = overrides(session, JUDGE, session.all_files).values()
    return frozenset(override and f"{override.source}::{JUDGE}" for override in given)


def judges_of_tests(item: pytest.Item) -> frozenset[str | None]:
    """Return the place of the `rag_judge` of each test of this session that uses one; None for ours."""
    items = [test for test in item.session.items if JUDGE in getattr(test, "fixturenames", ())]
    return frozenset(_place_of(fixture_definition(test, JUDGE), test.config.rootpath) for test in items)


def _place_of(definition: Any, root: Path) -> str | None:
    if is_ours(definition):
        return None
    source = inspect.getsourcefile(inspect.unwrap(definition.func))
    path = Path(source or "")
    shown = path.relative_to(root).as_posix() if path.is_relative_to(root) else definition.func.__module__
    return f"{shown}::{JUDGE}"


def used_target(session: EvalSession, configured: str | None) -> str | None:
    """Return the target of the run: the configured one, and each `rag_client` of the project by its place.

    All case files count, whatever was selected: it stands in config.json, and in its hash.
    """
    places = [override and override.place for override in overrides(session, CLIENT, session.all_files).values()]
    given = [f"rag_client fixture of {place}" for place in dict.fromkeys(places) if place is not None]
    return ", ".join([*([configured] if configured and None in places else []), *given]) or configured
