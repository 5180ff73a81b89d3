"""The case files of a verb: those named, or those of the project."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from pytest_rageval.cases.discovery import find_case_files
from pytest_rageval.cases.loading import CaseFile, load_file
from pytest_rageval.config.files import case_globs
from pytest_rageval.config.project import Project, find_root
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.io.messages import escape_text
from pytest_rageval.model import EvalCase
from pytest_rageval.text import counted

PATHS = click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
GLOBS = ("*.jsonl", "*.csv")


def case_files(paths: Sequence[Path]) -> list[CaseFile]:
    """Load the case files among the paths, or of the project; skip files of references and answers."""
    here = find_root(Path.cwd())
    globs = case_globs(here)
    named = (question for path in paths for question in _questions_of(path))
    files = files_at(named) if paths else find_case_files(here, globs)
    if not files:
        raise click.UsageError("no case files there" if paths else f"no case files here; looked for {', '.join(globs)}")
    return [load_file(path, here) for path in files]


def files_at(paths: Iterable[Path]) -> list[Path]:
    """Return the files, and all case files of the folders, each once."""
    return list(dict.fromkeys(file for path in paths for file in _below(path)))


def _below(path: Path, globs: Sequence[str] = GLOBS) -> Iterable[Path]:
    return find_case_files(path, globs) if path.is_dir() else [path]


def _questions_of(path: Path) -> Iterable[Path]:
    """Return the file of questions that a file of references belongs to; nothing for a file of answers."""
    if ".answers." in path.name:
        click.echo(f"{escape_text(path_text(path))}: holds answers, not cases; passed over", err=True)
        return ()
    stem, dot, _ = path.name.rpartition(".references.")
    questions = [path.with_name(f"{stem}.questions{suffix}") for suffix in (".csv", ".jsonl")] if dot else []
    return [file for file in questions if file.exists()] or [path]


def sound_cases(files: Iterable[CaseFile]) -> list[EvalCase]:
    """Return all cases of the files; raise CaseError with every problem where one of the files has any."""
    files = [*files]
    if problems := [problem for file in files for problem in file.problems]:
        raise CaseError(*problems)
    return [case for file in files for case in file.cases]


def chosen_cases(project: Project, named: Iterable[Path], least: int) -> tuple[list[EvalCase], list[Path]]:
    """Return the cases of the named files, else of the project, and the files.

    All problems of the files are raised at once; so is that fewer than `least` cases are there.
    """
    root, settings = project.root, project.settings
    places = [*named] or [root]
    files = dict.fromkeys(file for path in places for file in _below(path, settings.cases if path == root else GLOBS))
    cases = sound_cases(load_file(file, root, max_line_bytes=settings.max_line_bytes) for file in files)
    if len(cases) < least:
        where = ", ".join(settings.cases)
        raise SettingsError(f"{counted(len(cases), 'case')} found ({where}), {least} or more are needed; write some")
    return cases, list(files)


def path_text(path: Path | str) -> str:
    """Return a path that can be written: bytes that are not UTF-8 are escaped."""
    name = path if isinstance(path, str) else path.as_posix()
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
