"""Case files of a project or of named places, loaded together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from pytest_rageval.cases.discovery import case_files_of, find_case_files, unmatched_globs
from pytest_rageval.cases.loading import CaseFile, load_file
from pytest_rageval.config.files import read_table
from pytest_rageval.config.project import Project
from pytest_rageval.errors import CaseError
from pytest_rageval.model import EvalCase

GLOBS = ("*.jsonl", "*.csv")


def files_at(places: Iterable[Path]) -> list[Path]:
    """Return the files, and all case files of the folders, each once."""
    files: dict[Path, None] = {}
    for place in places:
        below = find_case_files(place, GLOBS, is_named=True) if place.is_dir() else [place]
        files |= dict.fromkeys(below)
    return list(files)


def pattern_problems(root: Path, globs: Sequence[str], files: Sequence[Path]) -> list[str]:
    """Return a line for each pattern of the project's table that matches none of the found files."""
    unmatched = unmatched_globs(root, globs, files)
    if not unmatched:
        return []
    place, _ = read_table(root)
    return [f"{place}: cases: {glob!r} matches no file; mend the pattern, or remove it" for glob in unmatched]


def load_files(project: Project, paths: Iterable[Path]) -> list[CaseFile]:
    """Read case files as the project limits them; broken ones have problems."""
    limit = project.settings.max_line_bytes
    return [load_file(path, project.root, max_line_bytes=limit) for path in paths]


def sound_cases(files: Iterable[CaseFile]) -> list[EvalCase]:
    """Return all cases of the files; raise CaseError with every problem if one of the files has any."""
    files = [*files]
    problems = list(chain.from_iterable(file.problems for file in files))
    if problems:
        raise CaseError(*problems)
    return list(chain.from_iterable(file.cases for file in files))


def readable_cases(project: Project) -> list[EvalCase]:
    """Return the cases of the project's files, without those that cannot be read."""
    paths = case_files_of(project.root, project.settings.cases, project.reports)
    return list(chain.from_iterable(file.cases for file in load_files(project, paths)))


def conversations_of(cases: Iterable[EvalCase]) -> int:
    """Return the number of conversations of several turns."""
    return len({case.unit for case in cases if case.turn is not None and case.turn > 1})
