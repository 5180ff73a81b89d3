"""The head of a run's pages: which versions it is made from, where it was started; and what an unfinished run has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.comparison.case_diff import representative_trial
from pytest_rageval.render.html.report_file import FILES
from pytest_rageval.render.html.run_cases import read_case_lines
from pytest_rageval.render.text.explain import RecordedCase, recorded_case_of
from pytest_rageval.runs.disk.reader import StoredRun
from pytest_rageval.runs.stored_plan import registry_of
from pytest_rageval.web.rendering import path_to
from pytest_rageval.web.versions.slugs import is_slug

PYTEST = "pytest (unversioned)"


class RunHead(NamedTuple):
    """What stands beside a run's id. `agent` and `dataset` with their versions, None of a run of pytest."""

    source: str
    agent: MadeFrom | None
    dataset: MadeFrom | None


class MadeFrom(NamedTuple):
    """A version that a run is made from, as its configuration names it. `address` of its page, '' where the name could
    be none of a version here."""

    slug: str
    version: int
    address: str


def head_of_run(config: Mapping[str, Any]) -> RunHead:
    """The head of a run with this config.json."""
    origin = config.get("origin")
    origin = origin if isinstance(origin, Mapping) else {}
    source = origin.get("source")
    return RunHead(
        source if isinstance(source, str) else PYTEST,
        _version("agents", origin.get("agent"), origin.get("agent_version")),
        _version("datasets", origin.get("dataset"), origin.get("dataset_version")),
    )


def _version(kind: str, name: object, version: object) -> MadeFrom | None:
    if not isinstance(name, str) or not isinstance(version, int):
        return None
    return MadeFrom(name, version, path_to(kind, name, "versions", str(version)) if is_slug(name) else "")


class UnfinishedRun(NamedTuple):
    """How far the run has come, why it is no finished one, and its files: name, is it there, what it holds."""

    state: str
    problems: Sequence[str]
    files: Sequence[tuple[str, bool, str]]


def unfinished_run(run: StoredRun, problems: Sequence[str]) -> UnfinishedRun:
    files = [(name, (run.path / name).is_file(), what) for name, what in FILES.items()]
    return UnfinishedRun(run.state, list(dict.fromkeys(problems)), files)


def unfinished_case(run: StoredRun, key: str, baseline: Path) -> RecordedCase | None:
    """A case of such a run, read without the others; None of one that is not recorded. `baseline`: the project's."""
    lines = read_case_lines(run, {key}).get(key)
    return recorded_case_of(run, representative_trial(lines.records), registry_of(run), baseline) if lines else None
