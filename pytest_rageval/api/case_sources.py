"""Cases of a script: files, folders, cases, or records as in a case file."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_rageval.cases.discovery import find_case_files
from pytest_rageval.cases.loading import load_file
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.model import EvalCase
from pytest_rageval.text import counted

Cases = str | Path | Iterable[EvalCase | Mapping[str, Any]]
RECORDS = "cases.jsonl"
"""The file name in the source of a case that is in no file; the line is its number."""


def load_cases(*paths: str | Path) -> list[EvalCase]:
    """Load the cases of files and folders, of the project's own globs without any.

    Raises CaseError with every problem of the files, one line each.
    """
    project = find_project()
    return project_cases(project, paths)


def project_cases(project: Project, paths: Iterable[str | Path]) -> list[EvalCase]:
    """Load the cases of these files and folders, of the project's globs without any; CaseError as in `load_cases`."""
    root, settings = project
    places = [Path.cwd() / path for path in paths]
    files = (
        find_case_files(root, settings.cases) if not places else [file for place in places for file in _files(place)]
    )
    if not files:
        where = ", ".join(map(str, places)) or f"below {root}, where {', '.join(settings.cases)} were looked for"
        raise CaseError(f"no case file: {where}; write evalcases/NAME.jsonl")
    loaded = [load_file(file, root, max_line_bytes=settings.max_line_bytes) for file in dict.fromkeys(files)]
    if problems := [problem for file in loaded for problem in file.problems]:
        raise CaseError(*problems)
    return [case for file in loaded for case in file.cases]


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise CaseError(f"{place}: there is no such file or folder")
    return [path for path in sorted(place.rglob("*")) if path.suffix.lower() in (".jsonl", ".csv")]


def given_cases(cases: Cases, project: Project) -> list[EvalCase]:
    """Return the cases given to `evaluate`; raise CaseError for what is wrong with them."""
    if isinstance(cases, str | Path):
        return project_cases(project, [cases])
    given = list(cases)
    records = [(number, case) for number, case in enumerate(given, 1) if not isinstance(case, EvalCase)]
    unfit = [(number, case) for number, case in records if not isinstance(case, Mapping)]
    if unfit:
        number, value = unfit[0]
        raise CaseError(f"cases[{number - 1}]: is {type(value).__name__}, expected an EvalCase or a mapping")
    ready = [case for case in given if isinstance(case, EvalCase)]
    if records:
        if ready:
            raise CaseError("cases: are EvalCase objects and mappings; give all of them in one form")
        ready = _of_records([dict(case) for _, case in records if isinstance(case, Mapping)], project)
    keys = [case.key for case in ready]
    if doubled := sorted({key for key in keys if keys.count(key) > 1}) if len({*keys}) < len(keys) else []:
        raise CaseError(f"cases: {counted(len(doubled), 'case')} given twice, the first {doubled[0]!r}; give each once")
    return ready


def _of_records(records: list[dict[str, Any]], project: Project) -> list[EvalCase]:
    """Read records as lines of a case file: the same checks, the same messages."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / RECORDS
        try:
            lines = [json.dumps(record, ensure_ascii=False, allow_nan=False) for record in records]
        except (TypeError, ValueError) as error:
            raise CaseError(f"cases: cannot be written as JSON: {error}") from None
        path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass"))
        file = load_file(path, Path(folder), max_line_bytes=project.settings.max_line_bytes)
    if file.problems:
        raise CaseError(*file.problems)
    return list(file.cases)


def check_given(cases: list[EvalCase]) -> None:
    """Raise SettingsError if there is nothing to evaluate."""
    if not cases:
        raise SettingsError("cases: there is none; give a path, or a list of cases")
