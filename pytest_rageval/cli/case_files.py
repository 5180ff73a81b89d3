"""The case files of a verb: those named, or those of the project; and the cases of them that a run asks."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import click

from pytest_rageval.cases.discovery import case_files_of, find_case_files
from pytest_rageval.cases.loading import CaseFile, load_file, looks_like_cases, path_text
from pytest_rageval.cases.masked_keys import without_masked_keys
from pytest_rageval.cases.project_cases import files_at, load_files, pattern_problems, sound_cases
from pytest_rageval.cli.options import EXISTING
from pytest_rageval.comparison.case_filter import filtered_keys
from pytest_rageval.config.files import case_globs
from pytest_rageval.config.project import Project, find_root
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.io.environment_secrets import secrets_of_environment
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.messages import escape_text
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.assertions import checked_metric_names
from pytest_rageval.model import EvalCase
from pytest_rageval.runs.reader import open_stored_run
from pytest_rageval.runs.shards import Shard
from pytest_rageval.text import counted

PATHS = click.argument("paths", nargs=-1, type=EXISTING)


def case_files(paths: Sequence[Path]) -> list[CaseFile]:
    """Load the case files among the paths, or of the project; skip files of references and answers."""
    here = find_root(Path.cwd())
    globs = case_globs(here)
    if paths:
        files = files_at(chain.from_iterable(map(_questions_of, paths)))
        problem = "no case files there"
    else:
        files = find_case_files(here, globs)
        problem = f"no case files here; looked for {', '.join(globs)}"
    if not files:
        raise click.UsageError(problem)
    registry = load_registry()
    mask = Mask(secrets_of_environment(os.environ))
    return [without_masked_keys(checked_metric_names(load_file(path, here), registry), mask) for path in files]


def unmatched_patterns(files: Iterable[CaseFile]) -> list[str]:
    """Return a line for each pattern of the project that matches none of its files."""
    here = find_root(Path.cwd())
    return pattern_problems(here, case_globs(here), [file.path for file in files])


def _questions_of(path: Path) -> Iterable[Path]:
    """Return the file of questions that a file of references belongs to; nothing for a file of answers."""
    if ".answers." in path.name:
        click.echo(f"{escape_text(path_text(path))}: holds answers, not cases; passed over", err=True)
        return ()
    stem, separator, _ = path.name.rpartition(".references.")
    if not separator:
        return [path]
    questions = [path.with_name(f"{stem}.questions{suffix}") for suffix in (".csv", ".jsonl")]
    return [file for file in questions if file.exists()] or [path]


def chosen_cases(project: Project, named: Collection[Path], least: int) -> tuple[list[EvalCase], list[Path]]:
    """Return the cases of the named files, else of the project, and the files.

    All problems of the files are raised at once; so is that fewer than `least` cases are there.
    """
    globs = project.settings.cases
    is_of_project = not named or project.root in named
    files = find_case_files(project.root, globs) if is_of_project else files_at(named)
    cases = sound_cases(load_files(project, files))
    if len(cases) < least:
        where = ", ".join(globs)
        raise SettingsError(f"{counted(len(cases), 'case')} found ({where}), {least} or more are needed; write some")
    return cases, files


# ── the cases of a run ────────────────────────────────────────────────────────────────────────────────────────


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
    registry = load_registry()
    mask = Mask(project.settings.secrets())
    loaded = load_files(project, paths)
    files = tuple(without_masked_keys(checked_metric_names(file, registry), mask) for file in loaded)
    asked_files = [file for file in files if not wanted.places or file.path in named_files]
    problems = list(chain.from_iterable(file.problems for file in asked_files))
    if not wanted.places:
        problems += pattern_problems(project.root, project.settings.cases, found_files)
    if problems:
        raise BrokenCaseFiles(*problems)
    cases = _cases_of(files)
    asked = _cases_of(asked_files)
    if project.settings.shard is not None:
        shard = Shard.parse(project.settings.shard)
        asked = [case for case in asked if shard.takes(case.unit)]
    if wanted.only is not None:
        run = open_stored_run(project.reports, wanted.from_run, project.baseline_file)
        keys = filtered_keys(run, wanted.only, "--only")
        asked = [case for case in asked if case.key in keys]
    return CaseSelection(files, cases, asked, _selected_by(project, wanted))


def _cases_of(files: Iterable[CaseFile]) -> list[EvalCase]:
    return list(chain.from_iterable(file.cases for file in files))


def _named_files(project: Project, places: Sequence[Path], found_files: Sequence[Path]) -> list[Path]:
    """Return the case files that places mean: a file itself, a folder those found below it, else all of cases in it."""
    named: list[Path] = []
    for place in places:
        path = Path.cwd() / place
        is_dangling_link = path.is_symlink() and not path.exists()
        if path.is_dir():
            named += _files_below(project, place, found_files)
        elif path.is_file() or is_dangling_link:
            named.append(path)
        else:
            raise SettingsError(f"{place}: there is no such file or folder")
    return named


def _files_below(project: Project, place: Path, found_files: Sequence[Path]) -> list[Path]:
    """Return the case files below a folder; without any of the project's, all files there that begin with a case."""
    folder = Path.cwd() / place
    below = [file for file in found_files if file.is_relative_to(folder)]
    if not below:
        everything = (file for file in files_at([folder]) if not file.is_relative_to(project.reports))
        below = list(filter(looks_like_cases, everything))
    if not below:
        raise SettingsError(f"{place}: no case file is below it: no .jsonl or .csv file begins with a case")
    return below


def _selected_by(project: Project, wanted: CaseChoice) -> dict[str, str]:
    written = {
        "paths": " ".join(map(str, wanted.places)),
        "--shard": project.settings.shard,
        "--only": wanted.only and f"{wanted.only} --from {wanted.from_run}",
    }
    return {option: value for option, value in written.items() if value}
