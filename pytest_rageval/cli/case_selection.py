"""The cases that `rageval run` asks: named files and folders, a shard, those of an earlier run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.cases.discovery import case_files_of, find_case_files
from pytest_rageval.cases.loading import CaseFile, load_file, looks_like_cases
from pytest_rageval.comparison.case_filter import filtered_keys
from pytest_rageval.config.project import Project
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.model import EvalCase
from pytest_rageval.runs.reader import open_stored_run
from pytest_rageval.runs.shards import Shard


class BrokenCaseFiles(CaseError):
    """Case files that cannot be read: nothing is asked."""


class CaseChoice(NamedTuple):
    """The selection on the command line: places, a filter, and the run that it is applied to."""

    places: Sequence[Path] = ()
    only: str | None = None
    from_run: str = "latest"


class CaseSelection(NamedTuple):
    """The case files, all their cases, the selected ones, and the options that selected them."""

    files: tuple[CaseFile, ...]
    cases: Sequence[EvalCase]
    asked: Sequence[EvalCase]
    selected_by: Mapping[str, str]

    @property
    def paths(self) -> list[Path]:
        return [file.path for file in self.files]


def select_cases(project: Project, wanted: CaseChoice) -> CaseSelection:
    """Read the case files and select; raise BrokenCaseFiles, or SettingsError for a wrong place."""
    found_files = case_files_of(project.root, project.settings.cases, project.reports)
    named_files = _named_files(project, wanted.places, found_files)
    paths = list(dict.fromkeys([*found_files, *named_files]))
    limit = project.settings.max_line_bytes
    files = tuple(load_file(path, project.root, max_line_bytes=limit) for path in paths)
    asked_files = [file for file in files if not wanted.places or file.path in named_files]
    if problems := [problem for file in asked_files for problem in file.problems]:
        raise BrokenCaseFiles(*problems)
    cases, asked = ([case for file in some for case in file.cases] for some in (files, asked_files))
    if project.settings.shard is not None:
        shard = Shard.parse(project.settings.shard)
        asked = [case for case in asked if shard.takes(case.key)]
    if wanted.only is not None:
        run = open_stored_run(project.reports, wanted.from_run, project.baseline_file)
        keys = filtered_keys(run, wanted.only, "--only")
        asked = [case for case in asked if case.key in keys]
    return CaseSelection(files, cases, asked, _selected_by(project, wanted))


def _named_files(project: Project, places: Sequence[Path], found_files: Sequence[Path]) -> list[Path]:
    """Return the case files that places mean: a file itself, a folder those found below it, else all of cases in it."""
    named: list[Path] = []
    for place in places:
        path = Path.cwd() / place
        below = [file for file in found_files if file.is_relative_to(path)]
        if path.is_dir() and not below:  # named, but outside of the globs: search all of it
            everything = find_case_files(path, ("*.jsonl", "*.csv"))
            below = [file for file in everything if looks_like_cases(file) and not file.is_relative_to(project.reports)]
        if path.is_file():
            named.append(path)
        elif not path.is_dir():
            raise SettingsError(f"{place}: there is no such file or folder")
        elif not below:
            raise SettingsError(f"{place}: no case file is below it: no .jsonl or .csv file begins with a case")
        named += below if path.is_dir() else []
    return named


def _selected_by(project: Project, wanted: CaseChoice) -> dict[str, str]:
    written = {
        "paths": " ".join(map(str, wanted.places)),
        "--shard": project.settings.shard,
        "--only": wanted.only and f"{wanted.only} --from {wanted.from_run}",
    }
    return {option: value for option, value in written.items() if value}
