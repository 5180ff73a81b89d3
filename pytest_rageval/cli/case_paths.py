"""Case files that a command is given: the paths, or what the configuration names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from pytest_rageval.cases import CaseFile, find_case_files, load_file
from pytest_rageval.config.files import case_globs
from pytest_rageval.config.project import find_root
from pytest_rageval.errors import CaseError
from pytest_rageval.io.messages import shown
from pytest_rageval.model import EvalCase

PATHS = click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))


def case_files(paths: Sequence[Path]) -> list[CaseFile]:
    """The case files among the paths, or of the project; references and answers are not case files themselves."""
    here = find_root(Path.cwd())
    if not paths:
        files = find_case_files(here, case_globs(here))
        if not files:
            raise click.UsageError(f"no case files here; looked for {', '.join(case_globs(here))}")
    else:
        files = list(dict.fromkeys(file for path in paths for file in _files_at(path)))
        if not files:
            raise click.UsageError("no case files there")
    return [load_file(path, here) for path in files]


def _files_at(path: Path) -> Iterable[Path]:
    if path.is_dir():
        return find_case_files(path, ("*.jsonl", "*.csv"))
    if ".answers." in path.name:
        click.echo(f"{shown(path_text(path))}: holds answers, not cases; passed over", err=True)
        return ()
    stem, dot, _ = path.name.rpartition(".references.")
    questions = [path.with_name(f"{stem}.questions{suffix}") for suffix in (".csv", ".jsonl")] if dot else []
    return [file for file in questions if file.exists()] or [path]


def sound_cases(files: Sequence[CaseFile]) -> list[EvalCase]:
    """All cases of the files; CaseError with every problem where one of the files has any."""
    if problems := [problem for file in files for problem in file.problems]:
        raise CaseError(*problems)
    return [case for file in files for case in file.cases]


def path_text(path: Path | str) -> str:
    """A path that can be written: bytes that are not UTF-8 are escaped."""
    name = path if isinstance(path, str) else path.as_posix()
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
