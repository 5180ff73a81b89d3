"""Checks before anything runs: broken case files, overridden fixtures."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_rageval.cases.loading import CaseFile
from pytest_rageval.io.messages import escape_text
from pytest_rageval.plugin.items import fixture_definition, hands_on
from pytest_rageval.plugin.light_session import FIXTURES, LightSession


def report_patterns(session: pytest.Session, problems: Sequence[str]) -> None:
    """Report patterns that match no file as a collection error of the configuration."""
    if problems:
        report = pytest.CollectReport("rageval-cases", "failed", "\n".join(problems), [])
        session.config.hook.pytest_collectreport(report=report)


def report_problems(session: pytest.Session, files: list[CaseFile], *, ends_session: bool = True) -> None:
    """Report broken case files as collection errors; end the session at once, unless it goes on to collect."""
    broken = [(file.path.relative_to(session.config.rootpath), file.problems) for file in files if file.problems]
    for path, problems in broken:
        nodeid = escape_text(str(path))
        report = pytest.CollectReport(nodeid, "failed", "\n".join(problems), [])
        session.config.hook.pytest_collectreport(report=report)
    if broken and ends_session and not session.config.option.continue_on_collection_errors:
        raise session.Interrupted(f"{len(broken)} error{'s' if len(broken) > 1 else ''} during collection")


# ── overridden fixtures ───────────────────────────────────────────────────────────────────────────────────────


class Override(NamedTuple):
    """A fixture of ours that the project overrides: the conftest.py or plugin, and where that has it from."""

    place: str
    source: str


def overrides(session: LightSession, fixture: str, case_files: Iterable[Path]) -> dict[Path, Override | None]:
    """Return by case file what overrides this fixture: the nearest conftest.py, else a plugin, None if nothing does.

    From the loaded modules, whatever was selected and whichever process resolves fixtures: the run's hash reads it.
    """
    root = session.root
    manager = session.config.pluginmanager
    files = list(case_files)
    conftests: dict[Path, Override] = {}
    folders = set(chain.from_iterable(file.parents for file in files))
    for folder in folders:
        if not folder.is_relative_to(root):
            continue
        conftest = folder / "conftest.py"
        if (function := _function(manager.get_plugin(str(conftest)), fixture)) is not None:
            place = conftest.relative_to(root).as_posix()
            # A `conftest.py` may import its fixture: then the module is what decides.
            is_written_there = inspect.getsourcefile(function) == str(conftest)
            conftests[folder] = Override(place, place if is_written_there else function.__module__)
    of_plugins = max(_in_plugins(session, fixture), default=None)
    found: dict[Path, Override | None] = {}
    for file in files:
        nearest_first = (conftests[folder] for folder in file.parents if folder in conftests)
        found[file] = next(nearest_first, of_plugins)
    return found


def _in_plugins(session: LightSession, fixture: str) -> Iterable[Override]:
    """Yield the overrides in plugins other than conftest.py files."""
    for name, plugin in session.config.pluginmanager.list_name_plugin():
        file = Path(getattr(plugin, "__file__", None) or name)
        if name != FIXTURES and file.name != "conftest.py" and _function(plugin, fixture) is not None:
            place = file.relative_to(session.root).as_posix() if file.is_relative_to(session.root) else name
            yield Override(place, getattr(plugin, "__name__", name))


def _function(plugin: object, fixture: str) -> Callable[..., object] | None:
    """Return the function of this fixture in a plugin, unless it only hands on what it overrides."""
    for value in (getattr(plugin, fixture, None), *getattr(plugin, "__dict__", {}).values()):
        facts = getattr(value, "__dict__", {})  # `pytest.mark` among them warns of what it does not know
        name = facts.get("name")
        if isinstance(name, str) and name == fixture and "__wrapped__" in facts:
            function: Callable[..., object] = inspect.unwrap(value)
            return None if hands_on(function, fixture) else function
    return None


# ── who judges ────────────────────────────────────────────────────────────────────────────────────────────────

JUDGE = "rag_judge"
CLIENT = "rag_client"


def judges_of_files(session: LightSession) -> frozenset[str | None]:
    """Return the place of the `rag_judge` of each case file, such as `conftest.py::rag_judge`; None for ours."""
    given = overrides(session, JUDGE, session.all_files).values()
    return frozenset(override and f"{override.source}::{JUDGE}" for override in given)


def judges_of_tests(item: pytest.Item) -> frozenset[str | None]:
    """Return the place of the `rag_judge` of each test of this session that uses one; None for ours."""
    items = [test for test in item.session.items if JUDGE in getattr(test, "fixturenames", ())]
    return frozenset(_place_of(fixture_definition(test, JUDGE), test.config.rootpath) for test in items)


def _place_of(definition: Any, root: Path) -> str | None:
    """Return the place of a definition; None for the plugin's, or if it is unknown."""
    function = getattr(definition, "func", None)
    if definition is None or getattr(function, "__module__", "") == "pytest_rageval.plugin.fixtures":
        return None
    path = Path(inspect.getsourcefile(inspect.unwrap(definition.func)) or "")
    shown = path.relative_to(root).as_posix() if path.is_relative_to(root) else definition.func.__module__
    return f"{shown}::{JUDGE}"


def used_target(session: LightSession, configured: str | None) -> str | None:
    """Return the target of the run: the configured one, and each `rag_client` of the project by its place.

    All case files count, whatever was selected: it stands in config.json, and in its hash.
    """
    found = overrides(session, CLIENT, session.all_files).values()
    names: list[str] = []
    if configured and None in found:
        names.append(configured)
    places = dict.fromkeys(override.place for override in found if override is not None)
    names += [f"rag_client fixture of {place}" for place in places]
    return ", ".join(names) or configured
