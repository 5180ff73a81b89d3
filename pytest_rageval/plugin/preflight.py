"""What can be known before anything runs: which case files a session will collect, and whether its target will do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.plugin import fixtures
from pytest_rageval.plugin.configured import NO_TARGET
from pytest_rageval.plugin.items import node_name

if TYPE_CHECKING:
    from pytest_rageval.cases import CaseFile
    from pytest_rageval.model import EvalCase
    from pytest_rageval.plugin.session import EvalSession


def case_files_of(config: pytest.Config, run: EvalSession) -> list[Path]:
    """Case files below the paths of the command line, as collection will find them on the workers."""
    places = [(config.invocation_params.dir / argument.split("::")[0]).resolve() for argument in config.args]
    named = [path for path in places if path.is_file() and run.owns(path)]
    folders = [path for path in places if path.is_dir()]
    found = [path for path in run.found_files if any(path.is_relative_to(folder) for folder in folders)]
    return list(dict.fromkeys([*named, *found]))


def report_problems(session: pytest.Session, files: list[CaseFile]) -> None:
    """Broken case files as collection errors that end the session, as they do where one process collects."""
    broken = [(str(file.path.relative_to(session.config.rootpath)), file.problems) for file in files if file.problems]
    for nodeid, problems in broken:
        report = pytest.CollectReport(nodeid, "failed", "\n".join(problems), [])
        session.config.hook.pytest_collectreport(report=report)
    if broken and not session.config.option.continue_on_collection_errors:
        raise session.Interrupted(f"{len(broken)} error{'s' if len(broken) > 1 else ''} during collection")


def cases_by_node_id(run: EvalSession) -> dict[str, EvalCase]:
    """All known cases by the node id that their item has."""
    return {f"{case.source.file}::{node_name(case.id)}": case for case in run.all_cases()}


def check_target(run: EvalSession) -> None:
    """Stop before the first question where none could be answered: no target, not reachable, answers missing."""
    settings = run.settings
    if settings.target is None:
        if not _may_be_overridden(run):
            raise SettingsError(NO_TARGET)
        return
    if settings.dry_run and not settings.target.startswith("answers:"):
        return
    from pytest_rageval.targets import check_spec

    problems = check_spec(
        settings.target,
        root=run.root,
        reports=run.reports,
        cases=run.all_cases(),
        is_partial_allowed=settings.allow_partial,
        mapping=settings.mapping,
    )
    if problems:
        raise CaseError(*problems)


def _may_be_overridden(run: EvalSession) -> bool:
    """Only workers of xdist resolve fixtures: does a plugin, or a conftest.py over a case file, name `rag_client`?"""
    if not run.config.pluginmanager.hasplugin("dsession"):
        return False
    plugins = run.config.pluginmanager.list_name_plugin()
    if any(hasattr(plugin, "rag_client") for name, plugin in plugins if name != fixtures.NAME):
        return True
    folders = {folder for path in run.found_files for folder in path.parents if folder.is_relative_to(run.root)}
    return any(_names_client(folder / "conftest.py") for folder in folders)


def _names_client(conftest: Path) -> bool:
    try:
        return re.search(r"\brag_client\b", conftest.read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return False
