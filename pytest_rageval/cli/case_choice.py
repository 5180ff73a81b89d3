"""The cases that a verb works on: of the files that were named, else of the project."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_rageval.cases import find_case_files, load_file
from pytest_rageval.config.project import Project
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.model import EvalCase
from pytest_rageval.text import counted


def chosen_cases(project: Project, named: Iterable[Path], least: int) -> tuple[list[EvalCase], list[Path]]:
    """The cases and their files; all problems of the files at once, or that fewer than `least` cases are there."""
    root, settings = project.root, project.settings
    files: dict[Path, None] = {}
    for path in [*named] or [root]:
        globs = settings.cases if path == root else ("*.jsonl", "*.csv")
        files |= dict.fromkeys(find_case_files(path, globs) if path.is_dir() else [path])
    loaded = [load_file(file, root, max_line_bytes=settings.max_line_bytes) for file in files]
    if problems := [problem for file in loaded for problem in file.problems]:
        raise CaseError(*problems)
    cases = [case for file in loaded for case in file.cases]
    if len(cases) < least:
        where = ", ".join(settings.cases)
        raise SettingsError(f"{counted(len(cases), 'case')} found ({where}), {least} or more are needed; write some")
    return cases, list(files)
